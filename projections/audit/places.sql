-- Where events of the log begin, and when: one every 256 events, and one in every second that has events. A log in
-- EventStoreDB can be read only from such a place, and has no other index by time.
create table place (
  position bigint primary key,
  at       timestamptz not null -- the latest time up to there: clocks may go back
);

-- What the next place depends on.
create table last_place (
  only_row boolean primary key default true check (only_row),
  noted    timestamptz not null, -- time of the last place
  latest   timestamptz not null, -- latest time of an event
  since    int not null          -- number of events since the last place
) with (fillfactor = 50);

-- after fill

create index place_at_position_idx on place (at, position);
