-- Who belongs to which workspace.
create table member (
  workspace_id uuid not null,
  user_id      uuid not null,
  permissions  json not null,
  joined_at    timestamptz not null,
  revision     bigint not null, -- of the newest event about them, in the workspace's stream
  primary key (workspace_id, user_id)
);

-- Invitations of all times, without their addresses: the keys of those end with the invitations.
create table invitation (
  id           uuid primary key,
  workspace_id uuid not null,
  email_key    text not null,
  expires_at   timestamptz not null,
  ended_at     timestamptz -- accepted, or withdrawn
);

-- after fill

create index member_user_id_idx on member (user_id);
create index invitation_email_key_idx on invitation (email_key);
