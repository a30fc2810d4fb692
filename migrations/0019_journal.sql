-- The format of the log's events, and the stream in EventStoreDB that is the log's journal; null: it has none. A log with a journal is
-- never served without it.
alter table log.identity
  add column format int not null default 1,
  add column journal text;
