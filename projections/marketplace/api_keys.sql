create table api_key (
  id           uuid primary key,
  workspace_id uuid not null,
  name         text not null,
  permissions  json not null,
  created_by   text not null, -- as package actor names them
  expires_at   timestamptz,
  created_at   timestamptz not null,
  revoked_at   timestamptz
);

-- after fill

create index api_key_workspace_id_created_at_idx on api_key (workspace_id, created_at);
