-- The contact of each account that has one.
create table party (
  account_id bigint primary key,
  contact_id bigint -- null: it was taken away
);

create table confirmation (
  id           bigint primary key,
  workspace_id uuid not null,
  kind         text, -- of the accounts; null: they were named
  as_of        date not null,
  position     bigint not null, -- at which the balances were read
  channel_id   bigint not null,
  template_id  bigint not null,
  campaign_id  bigint not null,
  created_at   timestamptz not null,
  created_by   text not null,
  document     boolean not null -- the messages carry the statement as a file
);

-- One row for each account that was to be asked. What became of its message is in the tables of campaigns.
create table asked (
  confirmation_id bigint not null,
  account_id      bigint not null,
  workspace_id    uuid not null,
  channel_id      bigint not null,
  ledger          text not null,
  contact_id      bigint, -- null: none
  message_id      bigint, -- null: none is sent
  skipped         text,   -- why
  cash            numeric(38,2) not null,
  fine            numeric(38,3) not null,
  outcome         text,   -- confirmed or disputed
  answer_id       bigint, -- message of the contact; null: a person decided
  answered_at     timestamptz,
  answered_by     text,
  note            text,   -- of the person; MessagingContactDeleted removes it
  primary key (confirmation_id, account_id)
);

create index asked_contact_id_idx on asked (contact_id); -- the fold looks for the requests of a contact

-- after fill

create index confirmation_workspace_id_id_idx on confirmation (workspace_id, id);
create index asked_workspace_id_channel_id_idx on asked (workspace_id, channel_id) where outcome is null and message_id is not null;
