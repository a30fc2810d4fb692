-- Plans of workspaces, from the newest event of the billing provider.
create table plan (
  workspace_id uuid primary key,
  name         text,
  status       text not null,
  updated_at   timestamptz not null
);
