-- The signed checkpoints of the log: package projections/auditproj. They must not be lost, because nobody can sign them again, and they
-- never change except as described below.

create schema audit;

-- The keys that sign checkpoints. The log says which one signs: the one that the newest AuditKeyRotated names, otherwise the first.
-- since and until repeat that for readers of this table.
create table audit.key (
  number     int generated always as identity primary key, -- the order in which they were made
  verifier   text collate "C" not null unique, -- name, key id and public key, as the signed-note format has them
  vault_name text collate "C" unique, -- of the private key in the vault; null: a setting gives it
  made_at    timestamptz not null,
  since      timestamptz, -- null: it was made, and never signed
  until      timestamptz
);

-- Every signed checkpoint. A witness's signature is added to the note; an accepted restore that lost the log's tail abandons the
-- checkpoints that the log no longer contains.
create table audit.checkpoint (
  number    bigint primary key, -- the order in which they were signed, without gaps: a missing number means a removed checkpoint
  size      bigint not null check (size > 0), -- events that it covers
  root      bytea not null,
  position  bigint not null, -- of the last of them
  event_id  uuid not null,   -- and its id
  signed_at timestamptz not null,
  note      text not null,   -- C2SP tlog-checkpoint, with its signatures
  abandoned bigint           -- position of the CheckpointRestoreAccepted; null: the log has all that it covers
);

create unique index checkpoint_size_idx on audit.checkpoint (size) where abandoned is null;

-- The last number of a checkpoint. Those up to imported came with another database's log, and need not all be there.
create table audit.numbering (
  only_row boolean primary key default true check (only_row),
  last     bigint not null,
  imported bigint not null
);

insert into audit.numbering (last, imported) values (0, 0);
