-- Drafts of orders that arrived by chat. A user reviews them.
create table order_draft (
  id            bigint primary key,
  workspace_id  uuid not null,
  sender        text not null,
  phone_number  text,             -- null: erased
  phone_text    text,             -- the number as sent, if it is invalid; phone_number is null then
  raw_message   text,             -- null: erased
  media         text,             -- JSON; null: none, or erased
  warnings      text,             -- JSON; null: none, or erased
  cut           boolean not null, -- the message had more entries than the limit
  created_at    timestamptz not null,
  client_id     bigint,
  date          text,             -- as in 2025-03-31
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

-- The outbox of confirmations to the senders of drafts, even of deleted drafts.
create table order_draft_reply (
  draft_id     bigint primary key,
  workspace_id uuid not null,
  sender       text not null,
  phone_number text,
  text         text,        -- null: not sent yet
  status       text,
  at           timestamptz
);

-- Handlers need these indexes even during the fill.
create index order_draft_sender_idx on order_draft (sender);
create index order_draft_reply_sender_idx on order_draft_reply (sender);
create index order_draft_entry_draft_id_id_idx on order_draft_entry (draft_id, id);

-- after fill

create index order_draft_workspace_id_id_idx on order_draft (workspace_id, id);
create index order_draft_entry_workspace_id_slip_number_idx on order_draft_entry (workspace_id, (case when slip_number ~ '^[0-9]{1,9}$' then slip_number::bigint end));
create index order_draft_entry_workspace_id_lower_idx on order_draft_entry (workspace_id, lower(slip_number));
create index order_draft_reply_at_idx on order_draft_reply (at, draft_id);
