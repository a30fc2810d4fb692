-- The words of a chunk become a tsvector, which Postgres indexes and counts itself.

-- The trigrams of a bot's word, with two blanks before it and one after it, independent of the database's locale.
create function knowledge.trigrams(bot bigint, word text) returns text[] language sql immutable strict parallel safe cost 1000
  return array(select bot || '/' || substr('  ' || word || ' ', n, 3) from generate_series(1, length(word) + 1) n);

create temporary table known on commit drop as select bot_id, knowledge.key(bot_id, word) as key, word from knowledge.term;
create index on known (key);

alter table knowledge.chunk add column words tsvector not null default ''; -- words of the title and the text: domain/wording
alter table knowledge.chunk alter column words set storage external;
update knowledge.chunk c set words = (
  select string_agg(c.bot_id || '/' || known.word || ':' || t.positions, ' ')::tsvector
  from unnest(c.keys) with ordinality k (key, nth) join known on known.bot_id = c.bot_id and known.key = k.key
  cross join lateral (select string_agg(n::text, ',') as positions from generate_series(1, get_byte(c.marks, 5 * k.nth::int - 1)) n) t
) where keys <> '{}';
alter table knowledge.chunk alter column words drop default, drop column keys, drop column marks;
create index chunk_of_bot_idx on knowledge.chunk using gin (words);

alter table knowledge.term add column written boolean not null default false; -- a chunk has the word itself, not only words with this stem
update knowledge.term set written = true where seeks <> '{}';
alter table knowledge.term drop column seeks;
create index term_of_bot_idx on knowledge.term using gin (knowledge.trigrams(bot_id, word)) where written and word !~ '[0-9]';

drop function knowledge.key;

comment on table public.bahi_schema is 'oldest: 11'; -- older programs read the dropped columns
