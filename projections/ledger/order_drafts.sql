-- Orders that came by chat and wait for their review.
create table order_draft (
  id           bigint primary key,
  workspace_id uuid not null,
  sender       text not null,
  phone_number text,          -- null: erased
  raw_message  text,          -- as above
  media        text,          -- JSON; null: none, or erased
  entries      text not null, -- JSON
  cut          boolean not null,
  created_at   timestamptz not null,
  revision     bigint not null
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

-- An erasure looks for these also while the tables are filled.
create index order_draft_sender_idx on order_draft (sender);
create index order_draft_reply_sender_idx on order_draft_reply (sender);

-- after fill

create index order_draft_workspace_id_id_idx on order_draft (workspace_id, id);
create index order_draft_reply_at_idx on order_draft_reply (at, draft_id);
