-- The registry of projections: the generations of their tables, the position of each, and which one is live. The tables are in
-- separate schemas, <name>_g<generation>.

create schema projection;

create table projection.generation (
  name          text not null,
  generation    int not null,
  version       int not null,
  ddl_sha256    text not null,
  live          boolean not null default false, -- the one that is read, for this version
  building      boolean not null default true,  -- not all tables and indexes are there yet
  store_id      uuid not null,                  -- the log that it follows
  position      bigint not null default 0,      -- all events up to here are in the tables
  event_id      uuid,                           -- of the event at that position, to know the log by
  owner         uuid,                           -- the runner that may write
  error         text,                           -- why it is parked
  error_at      timestamptz,
  error_position bigint,
  created_at    timestamptz not null default now(),
  primary key (name, generation)
) with (fillfactor = 50); -- rows change often and stay on their page

create unique index generation_live_idx on projection.generation (name, version) where live;
