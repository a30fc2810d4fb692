-- Campaigns of workspaces.
create table campaign (
  id              bigint primary key,
  workspace_id    uuid not null,
  name            text not null,
  type            text not null,
  template_id     bigint not null,
  channel_id      bigint not null,
  audience        text not null,
  schedule        text,
  scheduled_at    timestamptz,
  template_params json,
  steps           json,
  trigger         json,
  recurrence      json,
  status          text not null,
  reason          text, -- reason of a pause or a failure
  paused_until    timestamptz,
  next_run_at     timestamptz,
  created_at      timestamptz not null,
  updated_at      timestamptz not null,
  started_at      timestamptz,
  completed_at    timestamptz,
  revision        bigint not null -- of the campaign's stream
);

create table run (
  campaign_id  bigint not null,
  run          int not null,
  started_at   timestamptz not null,
  completed_at timestamptz,
  primary key (campaign_id, run)
);

-- Counts of a block's recipients by status, so that reads need not count the recipients.
create table block (
  id          text primary key, -- id of the block's stream
  campaign_id bigint not null,
  run         int not null,
  total       bigint not null,
  sent        bigint not null default 0,
  delivered   bigint not null default 0,
  read        bigint not null default 0,
  failed      bigint not null default 0,
  skipped     bigint not null,
  responded   bigint not null default 0
);

-- Ranges of message ids. The messages of one append have consecutive ids, so a list of recipients needs no further index.
create table frozen (
  first_id    bigint primary key,
  last_id     bigint not null,
  campaign_id bigint not null,
  run         int not null
);

-- The messages of campaigns, sent or unsent.
create table recipient (
  id          bigint primary key, -- id of the message
  campaign_id bigint not null,
  block_id    text not null,
  channel_id  bigint not null,
  contact_id  bigint not null,
  step        int not null, -- step of the campaign, from 0
  due_at      timestamptz not null,
  state       text not null, -- open, calling, held, sent, delivered, read, refused, failed, skipped
  since       timestamptz not null,
  called_at   timestamptz,
  response_id bigint -- message with the response to a survey
);

create index recipient_contact_id_id_idx on recipient (contact_id, id); -- the fold selects the campaign message to which a message responds

-- after fill

create index campaign_workspace_id_id_idx on campaign (workspace_id, id);
create index campaign_status_idx on campaign (status) where status in ('scheduled', 'active', 'paused');
create index block_campaign_id_run_idx on block (campaign_id, run);
create index recipient_campaign_id_id_idx on recipient (campaign_id, id) where state in ('open', 'held', 'calling');
create index recipient_campaign_id_idx on recipient (campaign_id) where state = 'refused';
create index frozen_campaign_id_first_id_idx on frozen (campaign_id, first_id);
create index recipient_channel_id_called_at_idx on recipient (channel_id, called_at);
create index recipient_campaign_id_response_id_idx on recipient (campaign_id, response_id) where response_id is not null;
