-- What clients ordered, and the takadas that deliver it.

-- Clients and karigars: the accounts that orders and takadas name.
create table account (
  id               bigint primary key,
  ledger           text not null,
  workspace_id     uuid not null,
  name             text not null,
  opened_position  bigint not null,
  deleted_position bigint -- null: open
);

create table client_order (
  id              bigint primary key,
  workspace_id    uuid not null,
  client_id       bigint not null,
  date            date not null,
  slip_folded     text not null,   -- as slips are compared; empty: none
  weight_mg       bigint not null, -- of all items
  delivered_mg    bigint not null, -- of the takadas that are there
  takadas         bigint not null, -- how many these are
  state           text not null,   -- JSON of the domain's State
  revision        bigint not null,
  deleted         boolean not null,
  draft_id        bigint           -- that it was made of; null: it was not ordered by chat
);

create table takada (
  id              bigint primary key,
  workspace_id    uuid not null,
  order_id        bigint not null,
  karigars        bigint[] not null,
  state           text not null,
  revision        bigint not null,
  deleted         boolean not null
);

-- Every version of orders (kind clientorder) and takadas (kind takada), with the position of the event that made it.
create table record_version (
  kind         text not null,
  id           bigint not null,
  position     bigint not null,
  workspace_id uuid not null,
  client_id    bigint not null, -- whose order it was
  state        text,            -- JSON of the record; null: it was deleted
  revision     bigint,          -- of its own stream; null: another stream's event deleted it
  actor        text not null,
  reason       text,
  recorded_at  timestamptz not null,
  primary key (kind, id, position)
);

-- A deletion looks for these also while the tables are filled.
create index client_order_client_id_idx on client_order (client_id) where not deleted;
create index takada_order_id_idx on takada (order_id) where not deleted;

-- after fill

-- The series of slip numbers (CONTRACT.md I11).
create index client_order_workspace_id_slip_number_idx on client_order (workspace_id, (case when slip_folded ~ '^[0-9]{1,9}$' then slip_folded::bigint end)) where not deleted;
create index client_order_draft_id_idx on client_order (draft_id) where draft_id is not null;
create index client_order_workspace_id_id_idx on client_order (workspace_id, id) where not deleted;
create index client_order_workspace_id_client_id_id_idx on client_order (workspace_id, client_id, id) where not deleted;
create index client_order_workspace_id_slip_folded_date_idx on client_order (workspace_id, slip_folded, date) where not deleted;
create index takada_workspace_id_id_idx on takada (workspace_id, id) where not deleted;
create index record_version_position_idx on record_version (position);
create index record_version_client_id_position_idx on record_version (client_id, position);
