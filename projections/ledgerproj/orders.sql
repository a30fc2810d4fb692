-- Orders of clients, and the takadas that deliver them.

-- Accounts of clients and karigars, to which orders and takadas refer.
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
  slip_folded     text not null,   -- normalised slip number; empty: none
  weight_mg       bigint not null, -- weight of all items
  delivered_mg    bigint not null, -- weight of the takadas that are not deleted
  takadas         bigint not null, -- number of these takadas
  state           text not null,   -- JSON of the domain's State
  revision        bigint not null,
  deleted         boolean not null,
  draft_id        bigint           -- draft from which the order was converted; null: none
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

-- All versions of orders (kind clientorder) and takadas (kind takada), by the position of their event.
create table record_version (
  kind         text not null,
  id           bigint not null,
  position     bigint not null,
  workspace_id uuid not null,
  client_id    bigint not null, -- client of the order
  state        text,            -- JSON of the record; null: deleted
  revision     bigint,          -- revision of the record's stream; null: an event of another stream deleted the record
  actor        text not null,
  reason       text,
  recorded_at  timestamptz not null,
  primary key (kind, id, position)
);

-- Deletions need these indexes even during the fill.
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
