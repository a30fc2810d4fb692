-- The vault: the keys of all encrypted values, each wrapped by the master key, which is
-- not in the database. The vault must not be lost, as the log must not: package eventstore/vault.

create schema vault;

-- The master key that wraps the others. A node with another one refuses to start.
create table vault.master (
  only_row boolean primary key default true check (only_row),
  key_id   text not null, -- derived from the key; reveals nothing about it
  since    timestamptz not null default now()
);

-- The key that the values of one subject are sealed with. A destroyed key leaves its row behind, so
-- that the subject never gets another.
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
