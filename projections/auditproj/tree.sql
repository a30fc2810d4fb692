-- The Merkle tree of the log, stored as the roots of its perfect subtrees. An append needs only these roots.
create table tree (
  only_row boolean primary key default true check (only_row),
  size     bigint not null, -- number of leaves
  hashes   bytea not null   -- one hash for each set bit of the size, largest subtree first
) with (fillfactor = 50);

-- The tiles of the tree, in the layout of C2SP tlog-tiles. An append only adds hashes at the end of a tile, so the tiles also contain
-- the tree at each earlier size.
create table tile (
  level  smallint not null, -- level 0 contains the hashes of leaves
  index  bigint not null,
  hashes bytea not null,    -- up to 256 hashes, concatenated
  primary key (level, index)
);

-- Hashes cannot be compressed.
alter table tile alter column hashes set storage external;

-- Leaves whose event has another position than index + 1.
create table leaf (
  index    bigint primary key,
  position bigint not null unique
);

-- The map of accounts. Each entry has a Merkle tree of its events: the number of leaves and the roots of the perfect subtrees.
create table entry (
  entry   text collate "C" primary key,
  size    bigint not null,
  hashes  bytea not null,  -- as in the table tree
  changed bigint not null, -- position of the entry's newest event
  span    bigint not null  -- changed / 8192
) with (fillfactor = 50);

-- A span covers 8,192 positions, so most updates of an entry change no index.
create index entry_span_idx on entry (span);
