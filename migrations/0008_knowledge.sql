-- The search index of bots. Jobs build it from the files and pages in the blob store: package commands/messagingcmd/knowledge.

create schema knowledge;

-- The number of a bot's word in an index. Postgres sorts and stores a number in half the time of a word.
create function knowledge.key(bot bigint, word text) returns bigint language sql immutable strict parallel safe
  return ('x' || encode(substring(sha256(convert_to(bot || ' ' || word, 'UTF8')) for 8), 'hex'))::bit(64)::bigint;

create table knowledge.chunk (
  source_id bigint not null,
  nth       integer not null,  -- index in its source, from 0
  bot_id    bigint not null,
  text      text not null,
  keys      bigint[] not null, -- key() of its words, in their order
  marks     bytea not null,    -- for each key, its first four bytes and a byte with the word's number of occurrences
  model     text,              -- model of the vector; null: there is none
  embedding real[],
  primary key (source_id, nth)
);

-- A search reads these columns often, and decompression would take most of its time.
alter table knowledge.chunk alter column keys set storage external;
alter table knowledge.chunk alter column marks set storage external;

create index chunk_bot_id_idx on knowledge.chunk (bot_id);
create index chunk_of_bot_idx on knowledge.chunk using gin (keys);

-- The words of a bot's chunks; the empty word counts all chunks. A source that has most of a bot's words updates all rows of a page at
-- once: half of the page is free for their new versions, so that the indexes do not change.
create table knowledge.term (
  bot_id bigint not null,
  word   text collate "C" not null,
  chunks bigint not null, -- number of chunks with the word
  seeks  bigint[] not null default '{}', -- key() of some of its trigrams: each sufficiently similar word has one of these
  primary key (bot_id, word)
) with (fillfactor = 45);

create index term_of_bot_idx on knowledge.term using gin (seeks);

-- The job that replies to a contact at the moment, one on all nodes. A lease expires if its node dies.
create table knowledge.lease (
  contact_id bigint primary key,
  holder     uuid not null,
  until      timestamptz not null
);
