-- When the sealed values of subjects are to be forgotten. Whether they were, the vault says.
create table ending (
  subject text primary key,
  due     timestamptz not null,
  listed  boolean not null -- tables show its values
);

-- after fill

create index ending_due_idx on ending (due);
