-- Messages to and from contacts, in plaintext. MessagingContactDeleted removes the messages of the contact.
create table message (
  id           bigint primary key,
  workspace_id uuid not null,
  channel_id   bigint not null,
  contact_id   bigint not null,
  inbound      boolean not null,
  type         text not null,
  text         text,
  media_url    text, -- URL of an outbound image
  file         text, -- blob key of an inbound file; null: none is stored
  file_type    text,
  status       text not null,
  reason       text, -- reason why the message is not sent, or why that is unknown
  code         bigint, -- the network's error code
  title        text, -- the network's error title
  details      text,
  provider_id  text, -- message id of the provider that accepted the message
  network_id   text, -- message id of the network, if it differs
  at           timestamptz not null, -- inbound: the time by the network
  arrived_at   timestamptz not null, -- orders messages of equal time
  reacts       text, -- reactions: network id of the other message
  edited_at    timestamptz,
  deleted_at   timestamptz, -- time at which the contact revoked the message
  actor        text not null,
  began        bigint not null, -- position of the message's first event
  position     bigint not null  -- position of the message's last event
);

create index message_contact_id_at_arrived_at_began_idx on message (contact_id, at, arrived_at, began); -- the fold counts unread messages
create index message_contact_id_reacts_idx on message (contact_id, reacts) where reacts is not null; -- the fold selects the reactions to a message

-- Conversations, as lists of contacts show them.
create table conversation (
  contact_id   bigint primary key,
  workspace_id uuid not null,
  last_at      timestamptz not null, -- time of the last message that is not a reaction
  unread       bigint not null, -- number of inbound messages after read_at, without reactions
  read_at      timestamptz, -- time of the newest message that is marked as read
  read_arrived timestamptz,
  read_began   bigint
);

-- Number of delivered messages that are not templates, for bills of networks. A quarter of an hour is the unit, because in every time
-- zone a day starts with one. The messages of deleted contacts remain counted.
create table reply (
  channel_id   bigint not null,
  workspace_id uuid not null,
  quarter      timestamptz not null, -- start of the quarter of an hour
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
