-- When the sealed values of subjects are to be forgotten. Whether they were, the vault says.
create table pending_erasure (
  subject text primary key,
  due     timestamptz not null,
  listed  boolean not null -- tables show its values
);

-- after fill

create index pending_erasure_due_idx on pending_erasure (due);
