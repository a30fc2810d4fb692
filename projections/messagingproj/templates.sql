-- Templates of chat channels, from the newest response of their networks.
create table template (
  id           bigint primary key,
  workspace_id uuid not null,
  channel_id   bigint not null,
  provider_id  text not null,
  name         text not null,
  language     text not null,
  category     text not null,
  status       text not null, -- status at the network
  format       text not null,
  parameters   text[] not null, -- parameters of the body and of other components
  body         text not null
);

-- after fill

create index template_workspace_id_id_idx on template (workspace_id, id);
create index template_channel_id_idx on template (channel_id);
