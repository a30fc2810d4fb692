-- Calls of providers are claimed for a while and retried by the inbox itself: package commands/inbox.

alter table inbox.call
  add due_at   timestamptz default now(), -- of a call that waits: from then on a process may claim it
  add claim    uuid,                      -- the newest one; only its owner writes a verdict
  add attempts int not null default 0;
