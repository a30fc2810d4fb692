-- The checkpoints of reactors. A reactor has effects outside the database, so it has one checkpoint and no generations. Its jobs are in
-- the schema river, which River's own migrations create.

create schema reactor;

create table reactor.checkpoint (
  name           text primary key,
  store_id       uuid not null,   -- the log that it follows
  position       bigint not null, -- all events up to here have their effect
  event_id       uuid,            -- id of the event at that position, which identifies the log
  owner          uuid,            -- the runner that may write
  error          text,            -- reason why it is parked
  error_at       timestamptz,
  error_position bigint,
  error_type     text,            -- type of the event at which it is parked
  error_program  text,            -- version of the program that failed
  waits          text,            -- reason to wait without an operator, such as an unavailable broker
  created_at     timestamptz not null default now()
) with (fillfactor = 50); -- rows change often and stay on their page
