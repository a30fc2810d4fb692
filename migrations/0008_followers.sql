-- For what a reactor waits that goes on by itself: a broker that is away.
alter table reactor.checkpoint add column waits text;

-- How many seconds each phase of a build took, and since when it is in the one that it is in. The next build is estimated from it.
alter table projection.generation
  add column phase_seconds jsonb not null default '{}',
  add column phase_at      timestamptz not null default now();
