-- A search of one bot reads what that bot knows: the words of the indexes carry their bot.

create function knowledge.of_bot(bot bigint, words tsvector) returns tsvector language sql immutable strict parallel safe cost 1000
  return array_to_tsvector(array(select bot || ' ' || word from unnest(tsvector_to_array(words)) word));

create function knowledge.of_bot(bot bigint, grams text[]) returns text[] language sql immutable strict parallel safe cost 1000
  return array(select bot || ' ' || gram from unnest(grams) gram);

create index chunk_of_bot_idx on knowledge.chunk using gin (knowledge.of_bot(bot_id, words));
create index term_of_bot_idx on knowledge.term using gin (knowledge.of_bot(bot_id, grams));
drop index knowledge.chunk_words_idx;
drop index knowledge.term_grams_idx;

-- Which values are frequent would cost a minute of each ANALYZE, and no plan depends on it.
alter index knowledge.chunk_of_bot_idx alter column 1 set statistics 0;
alter index knowledge.term_of_bot_idx alter column 1 set statistics 0;

-- Each source counts most of a bot's words again: there is room for it on their page, so that the indexes do not change.
alter table knowledge.term set (fillfactor = 70);
