-- The registry of projections: the generations of their tables, the position of each, and which one is live. The tables are in
-- separate schemas, <name>_g<generation>.

create schema projection;

-- A generation is one of: live; kept (keep_until is set: it was live, and follows the log, ready for a rollback); scratch (of a check,
-- never live); otherwise it is being built, and building says that tables or indexes are missing. A build can be watched, paused, and
-- resumed after a crash.
create table projection.generation (
  name           text not null,
  generation     int not null,
  version        int not null,
  ddl_sha256     text not null,
  live           boolean not null default false, -- the one that is read, for this version
  building       boolean not null default true,  -- not all tables and indexes are there yet
  store_id       uuid not null,                  -- the log that it follows
  position       bigint not null default 0,      -- all events up to here are in the tables
  event_id       uuid,                           -- of the event at that position, to know the log by
  owner          uuid,                           -- the runner that may write
  error          text,                           -- why it is parked
  error_at       timestamptz,
  error_position bigint,
  error_type     text,                           -- of the event at fault
  error_program  text,                           -- the version of the program that met the error
  created_at     timestamptz not null default now(),
  phase          text,                           -- of a build; package projections
  total          bigint not null default 0,      -- the log's head as of which the build fills
  rate           double precision not null default 0, -- events a second
  paused         boolean not null default false, -- an operator has paused it
  throttle       int check (throttle > 0),       -- the most events a second; null: as many as it can
  partitions     int not null default 1 check (partitions > 0), -- that fill it, each with a place of its own
  accepted       boolean not null default false, -- it may take the live one's place though it differs
  differences    json,                           -- from the live one, which keep it from taking its place
  scratch        boolean not null default false,
  keep_for       interval not null default interval '0', -- how long the one that it replaces is kept
  keep_until     timestamptz,
  filled_at      timestamptz,                    -- when the fill of the tables ended
  after_fill     interval,                       -- from then until the generation was read; null: it was not measured
  primary key (name, generation)
) with (fillfactor = 50); -- rows change often and stay on their page

create unique index generation_live_idx on projection.generation (name, version) where live;

-- Two builds of one version would replace each other.
create unique index generation_build_idx on projection.generation (name, version)
  where not live and keep_until is null and not scratch;

-- The position of each part of a fill. A part has its own transactions, so one may be ahead of another.
create table projection.partition (
  name       text not null,
  generation int not null,
  nth        int not null, -- from 0
  position   bigint not null default 0,
  event_id   uuid, -- of the event at that position
  primary key (name, generation, nth),
  foreign key (name, generation) references projection.generation on delete cascade
) with (fillfactor = 50);
