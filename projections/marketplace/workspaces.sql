-- Who belongs to which workspace.
create table member (
  workspace_id uuid not null,
  user_id      uuid not null,
  permissions  json not null,
  joined_at    timestamptz not null,
  primary key (workspace_id, user_id)
);

-- after fill

create index member_user_id_idx on member (user_id);
