-- Columns get plainer names.

alter table projection.partition rename column nth to ordinal;
alter table reactor.checkpoint rename column waits to wait_reason;
alter table knowledge.chunk rename column nth to ordinal;

comment on table public.bahi_schema is 'oldest: 13'; -- older programs use the former names
