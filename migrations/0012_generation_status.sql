-- A generation has one status. Package projections has the allowed changes. Unused columns are dropped.

alter table projection.generation add column status text not null default 'requested' check (status in (
  'requested', 'filling', 'indexing', 'catching up', 'comparing', 'differs', -- of a build
  'live',      -- reads of its version use it
  'kept',      -- it was live, and still follows the log for a rollback
  'scratch')); -- tables of a check, or to be dropped
update projection.generation set status = case
  when live then 'live' when keep_until is not null then 'kept' when scratch then 'scratch' else coalesce(phase, 'requested') end;

drop index projection.generation_live_idx, projection.generation_build_idx;
alter table projection.generation drop column live, drop column building, drop column phase, drop column scratch, drop column error_type,
  drop column created_at, add check ((keep_until is not null) = (status = 'kept'));
create unique index generation_live_idx on projection.generation (name, version) where status = 'live';
-- Two builds of one version would replace each other.
create unique index generation_build_idx on projection.generation (name, version) where status not in ('live', 'kept', 'scratch');

alter table reactor.checkpoint drop column error_type, drop column created_at;

comment on table public.bahi_schema is 'oldest: 12'; -- older programs read the dropped columns
