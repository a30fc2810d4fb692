-- The checkpoints of reactors. A reactor has effects outside the database, so it has one checkpoint and no generations. Its jobs are in
-- the schema river, which River's own migrations create.

create schema reactor;

create table reactor.checkpoint (
  name           text primary key,
  store_id       uuid not null,   -- the log that it follows
  position       bigint not null, -- all events up to here have had their effect
  event_id       uuid,            -- of the event at that position, to know the log by
  owner          uuid,            -- the runner that may write
  error          text,            -- why it is parked
  error_at       timestamptz,
  error_position bigint,
  error_type     text,            -- of the event at fault
  error_program  text,            -- the version of the program that met the error
  waits          text,            -- what it waits for without an operator: a broker that is unavailable, for example
  created_at     timestamptz not null default now()
) with (fillfactor = 50); -- rows change often and stay on their page
