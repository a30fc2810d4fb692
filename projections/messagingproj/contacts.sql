-- Contacts of workspaces, in plaintext. MessagingContactDeleted removes the row.
create table contact (
  id           bigint primary key,
  workspace_id uuid not null,
  name         text, -- null if the key was destroyed before the fold of the deletion
  name_folded  text, -- name in the form in which searches compare it
  phone        text, -- E.164 without its plus sign
  phone_text   text, -- the number as sent, if it is invalid; phone is null then
  email        text,
  source       text not null,
  opt_in       boolean not null,
  opt_in_at    timestamptz, -- time of the newest opt-in or opt-out; null: none
  opt_in_by    text, -- actor of the opt-in or opt-out
  opt_in_how   text, -- evidence of an opt-in by others; word or network: the contact opted in or out
  reply_bot    boolean not null,
  status       text not null,
  created_at   timestamptz not null,
  updated_at   timestamptz not null,
  revision     bigint not null -- of the contact's stream
);

-- Lists of contacts.
create table list (
  id           bigint primary key,
  workspace_id uuid not null,
  name         text not null,
  created_at   timestamptz not null
);

-- Contacts of lists.
create table member (
  contact_id bigint not null,
  list_id    bigint not null,
  primary key (contact_id, list_id)
);

-- Contacts that were merged into another contact, which has their messages.
create table merged (
  id           bigint primary key,
  workspace_id uuid not null,
  into_id      bigint not null
);

-- after fill

create index contact_workspace_id_id_idx on contact (workspace_id, id);
create index contact_phone_idx on contact (phone);
create index contact_email_idx on contact (email);
create index list_workspace_id_id_idx on list (workspace_id, id);
create index member_list_id_idx on member (list_id);
create index merged_into_id_idx on merged (into_id);
