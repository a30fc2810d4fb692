-- The times at which data subjects are to be erased. The vault knows which subjects are erased.
create table pending_erasure (
  subject text primary key,
  due     timestamptz not null,
  listed  boolean not null -- tables contain personal data of the subject
);

-- after fill

create index pending_erasure_due_idx on pending_erasure (due);
