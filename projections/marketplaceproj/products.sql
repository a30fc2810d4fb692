-- Products of companies. Active products are public. ProductDeleted and CompanyDeleted remove rows.
create table product (
  id               uuid primary key,
  ordinal          bigint not null, -- number in the order of creation
  company_id       uuid not null,
  workspace_id     uuid not null,
  sku              text,
  sku_key          text, -- normalised SKU
  name             text not null,
  description      text,
  category         text,
  category_key     text, -- category in the form in which filters compare it
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

-- Companies that may have products, with the last change of their products.
create table catalog (
  company_id   uuid primary key,
  workspace_id uuid not null,
  company_name text not null,
  changed      bigint not null, -- log position of the change
  changed_at   timestamptz not null
);

-- Number of products of each list. A list selects by company (id 0: all), category (empty key: all) and is_active. A bucket counts the
-- products with ordinals from 256 * bucket to 256 * bucket + 255.
create table tally (
  company_id   uuid not null,
  category_key text not null,
  is_active    boolean not null,
  bucket       bigint not null,
  products     bigint not null,
  primary key (company_id, category_key, is_active, bucket)
);

-- Ordinal of the next product.
create table counter (next bigint not null);
insert into counter (next) values (1);

-- Present and former words of products, by trigram.
create table trigram (
  gram text not null,
  word text not null,
  size int not null, -- number of trigrams of the word
  primary key (gram, word)
);

-- after fill

create unique index product_ordinal_idx on product (ordinal);
create index product_is_active_ordinal_idx on product (is_active, ordinal);
create index product_category_key_is_active_ordinal_idx on product (category_key, is_active, ordinal);
create index product_company_id_is_active_ordinal_idx on product (company_id, is_active, ordinal);
create index product_company_id_category_key_is_active_ordinal_idx on product (company_id, category_key, is_active, ordinal);
create index product_company_id_sku_key_idx on product (company_id, sku_key) where sku_key is not null;
create index product_words_idx on product using gin (words);
