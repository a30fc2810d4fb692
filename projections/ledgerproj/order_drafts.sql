-- Orders that came by chat and wait for their review.
create table order_draft (
  id            bigint primary key,
  workspace_id  uuid not null,
  sender        text not null,
  phone_number  text,             -- null: erased
  phone_text    text,             -- as it was given, if it cannot be read; phone_number is null
  raw_message   text,             -- null: erased
  media         text,             -- JSON; null: none, or erased
  warnings      text,             -- as above
  cut           boolean not null,
  created_at    timestamptz not null,
  client_id     bigint,
  date          text,             -- 2025-03-31
  delivery_date text,
  notes         text,
  revision      bigint not null
);

create table order_draft_entry (
  id           bigint primary key,
  draft_id     bigint not null,
  workspace_id uuid not null,
  item_name    text,            -- null: erased
  weight_mg    bigint,
  quantity     bigint,
  client_id    bigint,
  client_name  text,            -- null: none, or erased
  slip_number  text,
  parser       text not null,
  confidence   bigint not null, -- thousandths of a percent
  proposals    text not null    -- JSON
);

-- The confirmations of drafts, also of deleted ones: the outbox.
create table order_draft_reply (
  draft_id     bigint primary key,
  workspace_id uuid not null,
  sender       text not null,
  phone_number text,
  text         text,        -- null: it is not sent yet
  status       text,
  at           timestamptz
);

-- Handlers look for these also while the tables are filled.
create index order_draft_sender_idx on order_draft (sender);
create index order_draft_reply_sender_idx on order_draft_reply (sender);
create index order_draft_entry_draft_id_id_idx on order_draft_entry (draft_id, id);

-- after fill

create index order_draft_workspace_id_id_idx on order_draft (workspace_id, id);
create index order_draft_entry_workspace_id_slip_number_idx on order_draft_entry (workspace_id, (case when slip_number ~ '^[0-9]{1,9}$' then slip_number::bigint end));
create index order_draft_entry_workspace_id_lower_idx on order_draft_entry (workspace_id, lower(slip_number));
create index order_draft_reply_at_idx on order_draft_reply (at, draft_id);
