-- The signed checkpoints of the log: package projections/auditproj. They must not be lost, because nobody can sign them again, and they
-- never change except as described below.

create schema audit;

-- The keys that sign checkpoints. The key in the log's newest AuditKeyRotated signs, or without that event the first key.
-- since and until are the time of signing, for readers of this table.
create table audit.key (
  number     int generated always as identity primary key, -- order of creation
  verifier   text collate "C" not null unique, -- name, key id and public key, in the signed-note format
  vault_name text collate "C" unique, -- name of the private key in the vault; null: a setting contains it
  made_at    timestamptz not null,
  since      timestamptz, -- null: it never signed
  until      timestamptz
);

-- Every signed checkpoint. A witness's signature is added to the note; an accepted restore that lost the log's tail abandons the
-- checkpoints that the log no longer contains.
create table audit.checkpoint (
  number    bigint primary key, -- order of signing, without gaps: a missing number means a removed checkpoint
  size      bigint not null check (size > 0), -- events that it covers
  root      bytea not null,
  position  bigint not null, -- position of the last event
  event_id  uuid not null,   -- id of the last event
  signed_at timestamptz not null,
  note      text not null,   -- C2SP tlog-checkpoint, with its signatures
  abandoned bigint           -- position of the CheckpointRestoreAccepted; null: the log has all events that the checkpoint covers
);

create unique index checkpoint_size_idx on audit.checkpoint (size) where abandoned is null;

-- The last number of a checkpoint. Checkpoints up to imported belong to another database's log, and some may be missing.
create table audit.numbering (
  only_row boolean primary key default true check (only_row),
  last     bigint not null,
  imported bigint not null
);

insert into audit.numbering (last, imported) values (0, 0);
