-- Messaging channels of workspaces. No column contains a secret. Some columns report whether a secret is set.
create table channel (
  id                  bigint primary key,
  workspace_id        uuid not null,
  name                text not null,
  type                text not null,
  status              text not null, -- from the newest response of the network
  last_error          text,
  settings            jsonb not null,
  has_api_key         boolean not null,
  has_access_token    boolean not null,
  secret_settings     text[] not null, -- names of the secret settings that are set
  created_at          timestamptz not null,
  updated_at          timestamptz not null,
  revision            bigint not null, -- of the channel's stream
  identified          boolean not null default false, -- the channel has proved that it owns the sender in its settings
  key                 text -- key of the chat widget; null: the channel has no widget
);

-- after fill

create index channel_workspace_id_id_idx on channel (workspace_id, id);
create index channel_sender_idx on channel ((settings ->> 'senderId')) where type = 'chat';
create index channel_app_idx on channel ((settings ->> 'appName')) where type = 'chat';
create index channel_key_idx on channel (key);
