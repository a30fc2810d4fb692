-- What bots search, made by jobs from the files and pages whose bytes are in the blob store: package commands/messagingcmd/knowledge.

create schema knowledge;

-- What an index has of a bot's word: a number, which Postgres sorts and stores in half the time of a word.
create function knowledge.key(bot bigint, word text) returns bigint language sql immutable strict parallel safe
  return ('x' || encode(substring(sha256(convert_to(bot || ' ' || word, 'UTF8')) for 8), 'hex'))::bit(64)::bigint;

create table knowledge.chunk (
  source_id bigint not null,
  nth       integer not null,  -- in its source, from 0
  bot_id    bigint not null,
  text      text not null,
  keys      bigint[] not null, -- key() of its words, in their order
  marks     bytea not null,    -- of each key its first four bytes, and a byte that says how often the chunk has the word
  model     text,              -- that made the vector; null: there is none
  embedding real[],
  primary key (source_id, nth)
);

-- A search reads these often, and unpacking would take most of it.
alter table knowledge.chunk alter column keys set storage external;
alter table knowledge.chunk alter column marks set storage external;

create index chunk_bot_id_idx on knowledge.chunk (bot_id);
create index chunk_of_bot_idx on knowledge.chunk using gin (keys);

-- The words of a bot's chunks; the empty word counts all chunks. A source that has most of a bot's words updates all rows of a page at
-- once: half of the page is free for their new versions, so that the indexes do not change.
create table knowledge.term (
  bot_id bigint not null,
  word   text collate "C" not null,
  chunks bigint not null, -- that have it
  seeks  bigint[] not null default '{}', -- key() of some of its trigrams: each word that is similar enough has one of them
  primary key (bot_id, word)
) with (fillfactor = 45);

create index term_of_bot_idx on knowledge.term using gin (seeks);

-- Who answers a contact at the moment: one job of all nodes. A lease ends by itself if its node dies.
create table knowledge.lease (
  contact_id bigint primary key,
  holder     uuid not null,
  until      timestamptz not null
);
