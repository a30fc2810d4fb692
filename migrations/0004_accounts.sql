-- Passwords, sessions, their tokens, and mailed tokens. The log does not contain them.
-- Tokens are stored as hashes, and the keys that sign them are in the
-- vault: package commands/accesscmd/credentials.

create schema account;

-- A user without a row signs in through an identity provider, or not at all.
create table account.password (
  user_id    uuid primary key,
  hash       text not null,       -- Argon2id with its parameters and salt, in PHC's string format
  changed_at timestamptz not null -- by the user; another hash of the same password is no change
);

-- The keys that sign tokens: the newest key signs, all keys verify. The private keys are in the vault, named jwt/<kid>.
create table account.signing_key (
  kid            uuid primary key,
  number         bigint generated always as identity, -- order of creation
  made_at        timestamptz not null,
  verifies_until timestamptz -- null: it has no successor yet
);

create unique index signing_key_number_idx on account.signing_key (number);

-- A session begins with a sign-in. Its refresh tokens are a family: each token but the first replaced its predecessor.
create table account.session (
  family_id    uuid primary key,     -- the tokens' sid
  user_id      uuid not null,
  signed_in_at timestamptz not null,
  refreshed_at timestamptz not null, -- when its newest tokens were issued
  ends_at      timestamptz not null, -- refreshing does not change it
  revoked_at   timestamptz           -- permanently
);

create index session_user_id_idx on account.session (user_id);
create index session_ends_at_idx on account.session (ends_at);

create table account.refresh_token (
  jti_sha256  bytea primary key,
  family_id   uuid not null references account.session on delete cascade,
  issued_at   timestamptz not null,
  expires_at  timestamptz not null,
  replaced_at timestamptz,
  replaced_by bytea,
  constraint refresh_token_replaced_by_another check ((replaced_at is null) = (replaced_by is null))
);

create index refresh_token_family_id_idx on account.refresh_token (family_id);
create index refresh_token_expires_at_idx on account.refresh_token (expires_at);

-- Mailed tokens; each works once, and replaces the previous token. A used token stays for a while, so that the job that mailed it does not
-- create it again.
create table account.mailed_token (
  subject_id    uuid not null, -- the user; for an invitation, the invitation
  kind          text not null,
  number        bigint not null, -- number of the job that mails it
  token_sha256  bytea not null,
  issued_at     timestamptz not null,
  expires_at    timestamptz not null,
  spent         boolean not null default false,
  claimed_until timestamptz,   -- it is in use
  claim         uuid,          -- id of the use
  primary key (subject_id, kind),
  constraint mailed_token_claimed_by_one check ((claimed_until is null) = (claim is null))
);

create unique index mailed_token_token_sha256_idx on account.mailed_token (token_sha256);
create index mailed_token_expires_at_idx on account.mailed_token (expires_at);

-- The number of tokens of a kind that were mailed to an address within an hour of the first.
create table account.mailing (
  recipient_id uuid not null, -- derived from the address's keyed hash
  kind         text not null,
  mails        integer not null,
  ends_at      timestamptz not null,
  primary key (recipient_id, kind)
);

create index mailing_ends_at_idx on account.mailing (ends_at);
