-- A projection is rebuilt while it serves reads. With these columns a build can be watched, paused, and resumed after a crash.
--
-- A generation is one of: live; kept (keep_until is set: it was live, and follows the log, ready for a rollback); scratch (of a check,
-- never live); otherwise it is being built, and building says that tables or indexes are missing.

alter table projection.generation
  add column phase       text,              -- of a build; package projections
  add column total       bigint not null default 0, -- the log's head as of which the build fills
  add column rate        double precision not null default 0, -- events a second
  add column paused      boolean not null default false, -- an operator has paused it
  add column throttle    int check (throttle > 0), -- the most events a second; null: as many as it can
  add column partitions  int not null default 1 check (partitions > 0), -- that fill it, each with a place of its own
  add column accepted    boolean not null default false, -- it may take the live one's place though it differs
  add column differences json,              -- from the live one, which keep it from taking its place
  add column scratch     boolean not null default false,
  add column keep_for    interval not null default interval '0', -- how long the one that it replaces is kept
  add column keep_until  timestamptz,
  add column error_type  text,              -- of the event at fault
  add column error_program text;            -- the version of the program that met the error

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

alter table reactor.checkpoint
  add column error_type    text,
  add column error_program text;
