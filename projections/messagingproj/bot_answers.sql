-- What bots have answered. What was said is in the messages.
create table answer (
  id           text primary key, -- of the botanswer's stream
  workspace_id uuid not null,
  bot_id       bigint not null,
  contact_id   bigint not null,  -- 0: the bot was tried
  upto         bigint not null,  -- position of the newest message that is answered
  reply        bigint not null,  -- the message that was sent; 0: none
  tokens       bigint not null,
  calls        bigint not null,
  handed_over  boolean not null,
  at           timestamptz not null
);

-- What bots have called, without arguments and results.
create table call (
  id           text primary key,
  position     bigint not null,
  workspace_id uuid not null,
  bot_id       bigint not null,
  contact_id   bigint not null,
  kind         text not null,
  name         text not null,
  webhook_id   bigint not null, -- 0: a tool
  status       integer,         -- of HTTP
  duration_ms  bigint,          -- null: it has not ended
  error        text,
  at           timestamptz not null
);

-- after fill

create index answer_contact_id_upto_idx on answer (contact_id, upto);
create index answer_bot_id_at_idx on answer (bot_id, at);
create index call_bot_id_position_idx on call (bot_id, position);
