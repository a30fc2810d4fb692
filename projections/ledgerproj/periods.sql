-- The seals of all periods that were closed, even if they are open again.
create table period (
  position          bigint primary key, -- position of the event that closed the period
  workspace_id      uuid not null,
  from_date         date, -- null: all earlier rows belong to the period
  through           date not null,
  digest            text not null,
  log_size          bigint not null,
  log_root          text not null,
  read_position     bigint not null, -- position at which the balances were read
  closed_at         timestamptz not null,
  closed_by         text not null,
  reopened_position bigint, -- null: the period is closed
  reopened_at       timestamptz,
  reopened_by       text,
  reopen_reason     text
);
-- after fill

create index period_workspace_id_position_idx on period (workspace_id, position);
