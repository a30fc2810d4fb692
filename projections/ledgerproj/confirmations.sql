-- The contact of each account that has one.
create table party (
  account_id bigint primary key,
  contact_id bigint -- null: the contact was removed
);

create table confirmation (
  id           bigint primary key,
  workspace_id uuid not null,
  kind         text, -- kind of the accounts; null: the request named the accounts
  as_of        date not null,
  position     bigint not null, -- position at which the balances were read
  channel_id   bigint not null,
  template_id  bigint not null,
  campaign_id  bigint not null,
  created_at   timestamptz not null,
  created_by   text not null,
  document     boolean not null -- the messages have the statement as an attached file
);

-- The accounts of confirmations. The tables of campaigns have the delivery status of their messages.
create table asked (
  confirmation_id bigint not null,
  account_id      bigint not null,
  workspace_id    uuid not null,
  channel_id      bigint not null,
  ledger          text not null,
  contact_id      bigint, -- null: none
  message_id      bigint, -- null: no message is sent
  skipped         text,   -- reason why no message is sent
  cash            numeric(38,2) not null,
  fine            numeric(38,3) not null,
  outcome         text,   -- confirmed or disputed
  answer_id       bigint, -- message of the contact; null: a user recorded the outcome
  answered_at     timestamptz,
  answered_by     text,
  note            text,   -- the user's note; MessagingContactDeleted removes it
  primary key (confirmation_id, account_id)
);

create index asked_contact_id_idx on asked (contact_id); -- the fold selects the requests to a contact

-- after fill

create index confirmation_workspace_id_id_idx on confirmation (workspace_id, id);
create index asked_workspace_id_channel_id_idx on asked (workspace_id, channel_id) where outcome is null and message_id is not null;
