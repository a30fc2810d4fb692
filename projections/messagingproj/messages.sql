-- Messages to and from contacts, in clear. MessagingContactDeleted removes those of the contact.
create table message (
  id           bigint primary key,
  workspace_id uuid not null,
  channel_id   bigint not null,
  contact_id   bigint not null,
  inbound      boolean not null,
  type         text not null,
  text         text,
  media_url    text, -- of an image that goes out
  file         text, -- key of one that came in and is kept; null: none is
  file_type    text,
  status       text not null,
  reason       text, -- why it is not known to be sent
  code         bigint, -- the network's
  title        text, -- in the network's words
  details      text,
  provider_id  text, -- of the one who took it
  network_id   text, -- where that is another
  at           timestamptz not null, -- by the network, where it came in
  arrived_at   timestamptz not null, -- the order of those of one time
  reacts       text, -- the network's id of the message to which it is a reaction
  edited_at    timestamptz,
  deleted_at   timestamptz, -- when the contact took it back
  actor        text not null,
  began        bigint not null, -- position of its first event
  position     bigint not null  -- of its last one
);

create index message_contact_id_at_arrived_at_began_idx on message (contact_id, at, arrived_at, began); -- the fold counts what is unread
create index message_contact_id_reacts_idx on message (contact_id, reacts) where reacts is not null; -- the fold looks for reactions to one message

-- What lists of contacts show of their conversations.
create table conversation (
  contact_id   bigint primary key,
  workspace_id uuid not null,
  last_at      timestamptz not null, -- of the last message, without reactions
  unread       bigint not null, -- messages that came in after read_at, without reactions
  read_at      timestamptz, -- of the message up to which people have read
  read_arrived timestamptz,
  read_began   bigint
);

-- Messages other than templates that reached their contacts, by the quarter of an hour: the days of every time zone begin with one. Networks bill them.
-- Those of a deleted contact stay counted.
create table reply (
  channel_id   bigint not null,
  workspace_id uuid not null,
  quarter      timestamptz not null, -- its begin
  count        bigint not null,
  primary key (channel_id, quarter)
);

-- after fill

create index message_contact_id_channel_id_at_idx on message (contact_id, channel_id, at) where inbound and type <> 'reaction';
create index message_workspace_id_position_idx on message (workspace_id, position);
create index message_provider_id_idx on message (provider_id);
create index message_network_id_idx on message (network_id);
create index conversation_workspace_id_last_at_idx on conversation (workspace_id, last_at);
create index conversation_workspace_id_last_at_contact_id_idx on conversation (workspace_id, last_at, contact_id) where unread > 0;
