-- Bots of workspaces.
create table bot (
  id               bigint primary key,
  workspace_id     uuid not null,
  owner_id         text, -- user who created the bot; null: an API key created it, or the user is erased
  name             text not null,
  description      text not null,
  system_prompt    text not null,
  color_theme      text not null,
  fallback_message text,
  active           boolean not null,
  channel_ids      bigint[] not null,
  tools            bigint[] not null,
  created_at       timestamptz not null,
  updated_at       timestamptz not null,
  revision         bigint not null -- of the bot's stream
);

-- Sources of a bot's knowledge: files and web pages.
create table source (
  id           bigint primary key,
  bot_id       bigint not null,
  workspace_id uuid not null,
  url          text, -- null: a file
  name         text, -- name of a file, or title of a page
  media_type   text,
  size         bigint,
  status       text not null,
  error        text,
  chunk_count  bigint not null,
  fetched_at   timestamptz,
  created_at   timestamptz not null
);

-- Endpoints that bots may call. No column contains a secret.
create table webhook (
  id           bigint primary key,
  bot_id       bigint not null,
  workspace_id uuid not null,
  name         text not null,
  url          text not null,
  method       text not null,
  description  text not null,
  headers      text[] not null, -- names
  query_params text[] not null, -- names
  json_data    text[] not null, -- names
  parameters   jsonb not null,
  active       boolean not null,
  created_at   timestamptz not null,
  updated_at   timestamptz not null,
  revision     bigint not null -- of the webhook's stream
);

-- after fill

create index bot_workspace_id_id_idx on bot (workspace_id, id);
create index bot_owner_id_idx on bot (owner_id);
create index source_bot_id_id_idx on source (bot_id, id);
create index webhook_bot_id_id_idx on webhook (bot_id, id);
