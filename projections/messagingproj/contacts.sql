-- People whom workspaces write to, in clear. MessagingContactDeleted removes the row.
create table contact (
  id           bigint primary key,
  workspace_id uuid not null,
  name         text, -- null where the key is destroyed before the deletion is folded
  name_folded  text, -- as searches compare it
  phone        text, -- E.164 without its plus sign
  phone_text   text, -- as it was given, if it cannot be read; phone is null
  email        text,
  source       text not null,
  opt_in       boolean not null,
  opt_in_at    timestamptz, -- since when; null: nobody has said anything
  opt_in_by    text, -- who gave or took it
  opt_in_how   text, -- evidence of who gave it; word or network where the contact did
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

-- Who is in which list.
create table member (
  contact_id bigint not null,
  list_id    bigint not null,
  primary key (contact_id, list_id)
);

-- Contacts that were found to be another one, which has their messages.
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
