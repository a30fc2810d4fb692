-- The vault: the keys of all encrypted values, each wrapped by the master key, which is
-- not in the database. A loss of the vault or of the log is permanent: package eventstore/vault.

create schema vault;

-- The master key that wraps the other keys. A node with another master key refuses to start.
create table vault.master (
  only_row boolean primary key default true check (only_row),
  key_id   text not null, -- derived from the key; reveals nothing about it
  since    timestamptz not null default now()
);

-- The key that seals the values of one subject. The row of a destroyed key stays, so
-- that the subject never gets another key.
create table vault.key (
  subject      text collate "C" not null,
  key_version  int not null check (key_version > 0),
  wrapped      bytea,
  created_at   timestamptz not null default now(),
  destroyed_at timestamptz,
  primary key (subject, key_version),
  constraint key_wrapped_or_destroyed check ((wrapped is null) <> (destroyed_at is null))
);

create index key_destroyed_at_idx on vault.key (destroyed_at) where destroyed_at is not null;

-- Keys that all nodes share for one purpose, such as signing or hashing.
create table vault.named (
  name       text collate "C" primary key,
  wrapped    bytea not null,
  created_at timestamptz not null default now()
);
