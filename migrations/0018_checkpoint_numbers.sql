-- Checkpoints are numbered without gaps, in the transaction that stores them, so that a missing number means a removed checkpoint.
-- Those up to imported came with another database's log, or from before this migration, and need not all be there.
create table audit.numbering (
  only_row boolean primary key default true check (only_row),
  last     bigint not null,
  imported bigint not null
);
insert into audit.numbering (last, imported) select coalesce(max(number), 0), coalesce(max(number), 0) from audit.checkpoint;
alter table audit.checkpoint alter column number drop identity;
comment on table public.bahi_schema is 'oldest: 18'; -- an older program does not number checkpoints
