-- The public directory of companies. CompanyDeleted removes the row.
create table company (
  id            uuid primary key,
  workspace_id  uuid not null,
  slug          text not null,
  name          text not null,
  description   text,
  category      text,
  category_key  text, -- category in the form in which filters compare it
  sub_category  text,
  website       text,
  domain        text,
  claims_domain boolean not null,
  address_line1 text,
  city          text,
  city_key      text, -- city in the form in which filters compare it
  state         text,
  country       text,
  pincode       text,
  gstin         text,
  phone         text,
  email_key     text not null default '', -- keyed hash of the address for enquiries
  verified      boolean not null,
  name_words         text[] not null default '{}',
  category_words     text[] not null default '{}',
  sub_category_words text[] not null default '{}',
  city_words         text[] not null default '{}',
  description_words  text[] not null default '{}',
  words text[] not null generated always as (name_words || category_words || sub_category_words || city_words || description_words) stored,
  created_at    timestamptz not null,
  updated_at    timestamptz not null,
  revision      bigint not null -- of the company's stream
);

-- Versions of companies' names. A printed statement as known at a position has the company's name at that position.
create table company_name (
  company_id    uuid not null,
  workspace_id  uuid not null,
  name          text not null,
  created_at    timestamptz not null, -- time of the company's creation
  from_position bigint not null,
  to_position   bigint not null default 9223372036854775807,
  primary key (company_id, from_position)
);

-- Present and former words of companies, by trigram.
create table trigram (
  gram text not null,
  word text not null,
  size int not null, -- number of trigrams of the word
  primary key (gram, word)
);

-- after fill

create unique index company_slug_idx on company (slug);
create index company_created_at_id_idx on company (created_at desc, id desc);
create index company_workspace_id_created_at_id_idx on company (workspace_id, created_at, id);
create index company_name_workspace_id_idx on company_name (workspace_id);
create index company_category_key_created_at_id_idx on company (category_key, created_at desc, id desc);
create index company_city_key_created_at_id_idx on company (city_key, created_at desc, id desc);
create index company_domain_idx on company (domain);
create index company_email_key_idx on company (email_key) where email_key <> '';
create index company_words_idx on company using gin (words);
