-- The registry of projections: the generations of their tables, the position of each, and which one is live. The tables are in
-- separate schemas, <name>_g<generation>.

create schema projection;

-- A generation is one of: live; kept (keep_until is set: it was live, and still follows the log for a rollback); scratch (of a check,
-- never live); otherwise it is being built, and building is true while tables or indexes are missing. A build can be watched, paused, and
-- resumed after a crash.
create table projection.generation (
  name           text not null,
  generation     int not null,
  version        int not null,
  ddl_sha256     text not null,
  live           boolean not null default false, -- reads of this version use it
  building       boolean not null default true,  -- some tables or indexes are missing
  store_id       uuid not null,                  -- the log that it follows
  position       bigint not null default 0,      -- all events up to here are in the tables
  event_id       uuid,                           -- id of the event at that position, which identifies the log
  owner          uuid,                           -- the runner that may write
  error          text,                           -- reason why it is parked
  error_at       timestamptz,
  error_position bigint,
  error_type     text,                           -- type of the event at which it is parked
  error_program  text,                           -- version of the program that failed
  created_at     timestamptz not null default now(),
  phase          text,                           -- phase of a build; package projections
  total          bigint not null default 0,      -- position up to which the build fills
  rate           double precision not null default 0, -- events per second
  paused         boolean not null default false, -- an operator has paused it
  throttle       int check (throttle > 0),       -- maximum events per second; null: no limit
  partitions     int not null default 1 check (partitions > 0), -- parallel parts of the fill, each with its own position
  accepted       boolean not null default false, -- it may replace the live generation despite differences
  differences    json,                           -- differences from the live generation, which it therefore does not replace
  scratch        boolean not null default false,
  keep_for       interval not null default interval '0', -- how long the replaced generation is kept
  keep_until     timestamptz,
  filled_at      timestamptz,                    -- end of the fill of the tables
  after_fill     interval,                       -- time from the fill's end until the generation was live; null: not measured
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
  event_id   uuid, -- id of the event at that position
  primary key (name, generation, nth),
  foreign key (name, generation) references projection.generation on delete cascade
) with (fillfactor = 50);
