-- Calls of providers are claimed for a while and retried by the inbox itself: package commands/inbox.

alter table inbox.call
  add due_at   timestamptz, -- of a call that waits: from then on a process may claim it
  add claim    uuid,        -- the newest one; only its owner writes a verdict
  add attempts int not null default 0;

update inbox.call set due_at = received_at where verdict = 'waiting';

alter table inbox.call add constraint call_due_while_waiting check ((verdict = 'waiting') = (due_at is not null));
