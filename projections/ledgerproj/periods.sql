-- The seals of closed periods, also those of periods that were reopened.
create table period (
  position          bigint primary key, -- of the event that closed it
  workspace_id      uuid not null,
  from_date         date, -- null: all earlier rows belong to the period
  through           date not null,
  digest            text not null,
  log_size          bigint not null,
  log_root          text not null,
  read_position     bigint not null, -- at which the balances were read
  closed_at         timestamptz not null,
  closed_by         text not null,
  reopened_position bigint, -- null: it is closed
  reopened_at       timestamptz,
  reopened_by       text,
  reopen_reason     text
);
-- after fill

create index period_workspace_id_position_idx on period (workspace_id, position);
