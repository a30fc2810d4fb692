-- What bots search, made by jobs from the files and pages whose bytes are in the blob store: package commands/messaging/knowledge.

create schema knowledge;

create table knowledge.chunk (
  source_id bigint not null,
  nth       integer not null,  -- in its source, from 0
  bot_id    bigint not null,
  text      text not null,
  words     tsvector not null, -- as they are written, and as English stems
  model     text,              -- that made the vector; null: there is none
  embedding real[],
  primary key (source_id, nth)
);

create index chunk_bot_id_idx on knowledge.chunk (bot_id);
create index chunk_words_idx on knowledge.chunk using gin (words);

-- The words of a bot's chunks; the empty word counts all chunks.
create table knowledge.term (
  bot_id bigint not null,
  word   text collate "C" not null,
  chunks bigint not null,      -- that have it
  grams  text[] not null default '{}',
  primary key (bot_id, word)
);

create index term_grams_idx on knowledge.term using gin (grams);

-- Who answers a contact at the moment: one job of all nodes. A lease ends by itself if its node dies.
create table knowledge.lease (
  contact_id bigint primary key,
  holder     uuid not null,
  until      timestamptz not null
);
