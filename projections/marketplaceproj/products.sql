-- What companies sell, which is public as long as it is active. ProductDeleted and CompanyDeleted remove rows.
create table product (
  id               uuid primary key,
  nth              bigint not null, -- in the order of creation
  company_id       uuid not null,
  workspace_id     uuid not null,
  sku              text,
  sku_key          text, -- as SKUs are compared
  name             text not null,
  description      text,
  category         text,
  category_key     text, -- as filters compare it
  sub_category     text,
  price_amount     bigint not null,
  price_currency   text not null,
  moq              bigint not null,
  origin_country   text,
  importer_name    text,
  importer_address text,
  images           text[] not null default '{}',
  availability     text not null,
  is_active        boolean not null,
  name_words        text[] not null default '{}',
  category_words    text[] not null default '{}',
  description_words text[] not null default '{}',
  words text[] not null generated always as (name_words || category_words || description_words) stored,
  created_at       timestamptz not null,
  updated_at       timestamptz not null,
  revision         bigint not null -- of the product's stream
);

-- The companies whose products there may be, and when those last changed.
create table catalog (
  company_id   uuid primary key,
  workspace_id uuid not null,
  company_name text not null,
  changed      bigint not null, -- position in the log
  changed_at   timestamptz not null
);

-- How many products each list has, in pieces: those of a bucket have numbers from 256 times its own on. A list is that of a company, or of all
-- (the id is 0), of a category, or of all (the key is empty), and of active products, or of the others.
create table tally (
  company_id   uuid not null,
  category_key text not null,
  is_active    boolean not null,
  bucket       bigint not null,
  products     bigint not null,
  primary key (company_id, category_key, is_active, bucket)
);

-- The number that the next product gets.
create table counter (next bigint not null);
insert into counter (next) values (1);

-- Words that products have or had, by their trigrams.
create table trigram (
  gram text not null,
  word text not null,
  size int not null, -- trigrams of the word
  primary key (gram, word)
);

-- after fill

create unique index product_nth_idx on product (nth);
create index product_is_active_nth_idx on product (is_active, nth);
create index product_category_key_is_active_nth_idx on product (category_key, is_active, nth);
create index product_company_id_is_active_nth_idx on product (company_id, is_active, nth);
create index product_company_id_category_key_is_active_nth_idx on product (company_id, category_key, is_active, nth);
create index product_company_id_sku_key_idx on product (company_id, sku_key) where sku_key is not null;
create index product_words_idx on product using gin (words);
