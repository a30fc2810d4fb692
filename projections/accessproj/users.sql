-- Users, with their names and addresses in plaintext. UserErased sets the personal columns to null.
create table account (
  id             uuid primary key,
  workspace_id   uuid not null,
  email          text,
  email_key      text, -- keyed hash of the email address
  first_name     text,
  last_name      text,
  phone          text,
  auth_provider  text not null,
  email_verified boolean not null,
  operator       boolean not null default false,
  picture        text, -- key of the image in the blob store
  created_at     timestamptz not null,
  last_login_at  timestamptz,
  delete_after   timestamptz,
  revision       bigint not null, -- of the user's own stream
  erased_at      timestamptz
);

-- after fill

create index account_workspace_id_idx on account (workspace_id);
create index account_created_at_idx on account (created_at, id);
create index account_delete_after_idx on account (delete_after) where erased_at is null and delete_after is not null;
