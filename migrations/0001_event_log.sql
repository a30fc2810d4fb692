-- The event log. Its rows are never changed or deleted.
--
-- Positions are assigned under the log's lock, an advisory lock that every append holds until it commits. Appends that know the newest
-- event share the lock, and the primary key accepts one of them. So positions have no gaps, and commit order is position order: a
-- reader at position N has seen all events up to N.

create schema log;

-- The log's id, the format of its events, and the stream of its journal in EventStoreDB; null: it has none. A log with a journal is
-- never served without it.
create table log.identity (
  only_row boolean primary key default true check (only_row),
  store_id uuid not null default gen_random_uuid(),
  format   int not null default 3,
  journal  text
);

insert into log.identity default values;

create table log.event (
  position    bigint primary key,
  revision    bigint not null,
  recorded_at timestamptz not null,
  id          uuid not null,
  open_ended  boolean not null, -- appended without an exact expected revision
  stream      text collate "C" not null,
  type        text collate "C" not null,
  data        json not null, -- json, not jsonb: it keeps the exact bytes
  meta        json not null
) with (autovacuum_vacuum_insert_scale_factor = 0.05);

create unique index event_stream_revision_idx on log.event (stream, revision);

-- The revision identifies a retry of an append with an exact revision. Other retries are looked up by event id.
create unique index event_stream_id_idx on log.event (stream, id) where open_ended;

-- The position of the newest event, 0 in an empty log.
create function log.head() returns bigint
language sql stable
return coalesce((select position from log.event order by position desc limit 1), 0);

-- The last position recorded at or before a time, by bisection: times increase with positions.
create function log.position_at(moment timestamptz) returns bigint
language plpgsql stable as $$
declare
  low  bigint := 0;
  high bigint := log.head();
  mid  bigint;
begin
  while low < high loop
    mid := (low + high + 1) / 2;
    if (select recorded_at from log.event where position = mid) <= moment then
      low := mid;
    else
      high := mid - 1;
    end if;
  end loop;
  return low;
end
$$;
