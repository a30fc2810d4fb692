-- What workspaces pay for, as the billing provider last said.
create table plan (
  workspace_id uuid primary key,
  name         text,
  status       text not null,
  updated_at   timestamptz not null
);
