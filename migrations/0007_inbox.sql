-- Webhook calls of providers until their effect is in the log: package commands/inbox.

create schema inbox;

create table inbox.call (
  id           uuid primary key,
  endpoint     text collate "C" not null,
  key_hash     bytea not null,  -- keyed hash of the provider's id of the call, or of its body
  received_at  timestamptz not null,
  content_type text not null,
  body         bytea,           -- encrypted, with its own wrapped key; null: removed
  verdict      text not null,   -- waiting, handled, ignored, parked
  effect       text,
  error        text,            -- error of the last attempt
  subjects     text[] not null default '{}', -- data subjects with values in the body: it is removed with their keys
  settled_at   timestamptz,     -- time of the verdict; null: the call waits
  held_for     bigint[] not null default '{}', -- channels that may have the sender: the call is handled again after their confirmation
  constraint call_waiting_or_settled check ((verdict = 'waiting') = (settled_at is null))
);

create unique index call_endpoint_key_hash_idx on inbox.call (endpoint, key_hash);
create index call_received_at_idx on inbox.call (received_at, id);
create index call_verdict_received_at_idx on inbox.call (verdict, received_at) where verdict in ('waiting', 'parked');
create index call_with_body_idx on inbox.call (received_at) where body is not null;
create index call_held_for_idx on inbox.call using gin (held_for) where held_for <> '{}';
