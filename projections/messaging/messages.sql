-- Messages to and from contacts, in clear. MessagingContactDeleted removes those of the contact.
create table message (
  id           bigint primary key,
  workspace_id uuid not null,
  channel_id   bigint not null,
  contact_id   bigint not null,
  inbound      boolean not null,
  type         text not null,
  text         text,
  media_url    text,
  status       text not null,
  reason       text, -- why it is not known to be sent
  code         bigint, -- the network's
  title        text, -- in the network's words
  details      text,
  at           timestamptz not null, -- by the network, where it came in
  actor        text not null
);

-- after fill

create index message_contact_id_id_idx on message (contact_id, id);
create index message_contact_id_channel_id_at_idx on message (contact_id, channel_id, at) where inbound;
