-- Members of workspaces.
create table member (
  workspace_id uuid not null,
  user_id      uuid not null,
  permissions  json not null,
  joined_at    timestamptz not null,
  revision     bigint not null, -- revision of the workspace's stream at the newest event about the member
  primary key (workspace_id, user_id)
);

-- All invitations, without email addresses. Bahi destroys the key of an address when the invitation ends.
create table invitation (
  id           uuid primary key,
  workspace_id uuid not null,
  email_key    text not null,
  expires_at   timestamptz not null,
  ended_at     timestamptz -- time of the acceptance or the withdrawal
);

-- after fill

create index member_user_id_idx on member (user_id);
create index invitation_email_key_idx on invitation (email_key);
