create table api_key (
  id           uuid primary key,
  workspace_id uuid not null,
  name         text not null,
  permissions  json not null,
  created_by   text not null, -- the actor, in the form of package actor
  parent_key_id uuid not null, -- API key that created this key; all zeros: a user did
  expires_at   timestamptz,
  created_at   timestamptz not null,
  revoked_at   timestamptz -- earliest revocation of this key or of a key above it
);

-- after fill

create index api_key_workspace_id_created_at_idx on api_key (workspace_id, created_at);
create index api_key_parent_key_id_idx on api_key (parent_key_id);
