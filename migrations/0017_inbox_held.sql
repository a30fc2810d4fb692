-- Calls that name a sender which several channels of the deployment could have: they are handled again once one of them is known to have it.
alter table inbox.call add column held_for bigint[] not null default '{}'; -- channels
create index call_held_for_idx on inbox.call using gin (held_for) where held_for <> '{}';
