create table api_key (
  id           uuid primary key,
  workspace_id uuid not null,
  name         text not null,
  permissions  json not null,
  created_by   text not null, -- as package actor names them
  made_by      uuid not null, -- the key that did, all zeros for none
  expires_at   timestamptz,
  created_at   timestamptz not null,
  revoked_at   timestamptz -- itself, or a key above it
);

-- after fill

create index api_key_workspace_id_created_at_idx on api_key (workspace_id, created_at);
create index api_key_made_by_idx on api_key (made_by);
