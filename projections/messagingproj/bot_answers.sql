-- Replies of bots. Their texts are in the messages.
create table answer (
  id           text primary key, -- id of the stream botanswer
  workspace_id uuid not null,
  bot_id       bigint not null,
  contact_id   bigint not null,  -- 0: a trial of the bot
  upto         bigint not null,  -- position of the newest message to which the bot replies
  reply        bigint not null,  -- id of the sent message; 0: none
  tokens       bigint not null,
  calls        bigint not null,
  handed_over  boolean not null,
  at           timestamptz not null
);

-- Calls of tools and webhooks by bots, without arguments and results.
create table call (
  id           text primary key,
  position     bigint not null,
  workspace_id uuid not null,
  bot_id       bigint not null,
  contact_id   bigint not null,
  kind         text not null,
  name         text not null,
  webhook_id   bigint not null, -- 0: a tool
  status       integer,         -- HTTP status
  duration_ms  bigint,          -- null: the call runs
  error        text,
  at           timestamptz not null
);

-- after fill

create index answer_contact_id_upto_idx on answer (contact_id, upto);
create index answer_bot_id_at_idx on answer (bot_id, at);
create index call_bot_id_position_idx on call (bot_id, position);
