-- The Merkle tree over the log: the roots of the perfect trees in it, which is all that it needs to grow.
create table tree (
  only_row boolean primary key default true check (only_row),
  size     bigint not null, -- leaves
  hashes   bytea not null   -- one for each bit that is set in the size, the largest tree's first
) with (fillfactor = 50);

-- Its tiles, as C2SP tlog-tiles lays them out. A tile grows at its end and is never changed, so that the tree
-- as it was at any earlier size is in them too.
create table tile (
  level  smallint not null, -- 0 has the hashes of leaves
  index  bigint not null,
  hashes bytea not null,    -- up to 256, one behind the other
  primary key (level, index)
);

-- Hashes cannot be compressed.
alter table tile alter column hashes set storage external;

-- Which event is which leaf, where that is not told by its position: leaf 0 is the event at position 1, and so on.
create table leaf (
  index    bigint primary key,
  position bigint not null unique
);

-- The entries of the map of accounts: the number and the compact hashes of the leaves of each entry's events.
create table entry (
  entry   text collate "C" primary key,
  size    bigint not null,
  hashes  bytea not null,  -- as those of the tree
  changed bigint not null, -- position of its newest event
  span    bigint not null  -- changed / 8192
) with (fillfactor = 50);

-- A span lasts for 8,192 positions, so most updates of an entry change no index.
create index entry_span_idx on entry (span);
