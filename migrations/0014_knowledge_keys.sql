-- What the indexes of knowledge have is numbers, which Postgres sorts and stores in half the time of words: key() of each word of a chunk, and of some
-- trigrams of a word. commands/messaging/knowledge makes them. An older program goes on with words and grams, and its chunks are read again (keys is null).

create function knowledge.key(bot bigint, word text) returns bigint language sql immutable strict parallel safe
  return ('x' || encode(substring(sha256(convert_to(bot || ' ' || word, 'UTF8')) for 8), 'hex'))::bit(64)::bigint;

alter table knowledge.chunk add column keys bigint[];    -- of its words, in their order; in place of words, which newer programs leave empty
alter table knowledge.chunk add column marks bytea;      -- of each key its first four bytes, and a byte that says how often the chunk has the word: what a search compares
alter table knowledge.chunk alter column keys set storage external;
alter table knowledge.chunk alter column marks set storage external;
alter table knowledge.term add column seeks bigint[] not null default '{}'; -- in place of grams: each word that is similar enough has one of them

drop index knowledge.chunk_of_bot_idx;
drop index knowledge.term_of_bot_idx;

update knowledge.chunk c set (keys, marks) = (
  select coalesce(array_agg(key order by key), '{}'), coalesce(string_agg(substring(int8send(key) for 4) || substring(int2send(least(cardinality(positions), 255)::smallint) from 2), '' order by key), '')
  from (select knowledge.key(c.bot_id, lexeme) as key, positions from unnest(c.words)) w
);

update knowledge.term t set seeks = (
  select array_agg(knowledge.key(t.bot_id, gram)) from (
    select gram from unnest(t.grams) gram order by gram like ' %', knowledge.key(t.bot_id, gram) limit cardinality(t.grams) - ceil(0.45 * cardinality(t.grams)) + 1
  ) g
) where t.grams <> '{}';

create index chunk_of_bot_idx on knowledge.chunk using gin (keys);
create index term_of_bot_idx on knowledge.term using gin (seeks);
