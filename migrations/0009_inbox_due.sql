-- The inbox claims webhook calls for a while, and retries them: package commands/inbox.

alter table inbox.call
  add due_at   timestamptz default now(), -- time from which a process may claim a waiting call
  add claim    uuid,                      -- the newest claim; only its owner writes a verdict
  add attempts int not null default 0;
