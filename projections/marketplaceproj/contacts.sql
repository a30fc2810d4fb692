-- People to turn to at companies, in clear. ContactDeleted removes the row.
create table contact (
  id           uuid primary key,
  workspace_id uuid not null, -- all zeros for one without a company
  company_id   uuid,
  hidden       boolean not null default false, -- its company was deleted
  first_name   text, -- null where the key is destroyed before the deletion is folded
  last_name    text,
  email        text,
  phone        text,
  designation  text,
  created_at   timestamptz not null,
  updated_at   timestamptz not null,
  revision     bigint not null -- of the contact's stream
);

-- Which contact of a company is the first to turn to.
create table primary_contact (
  company_id uuid primary key,
  contact_id uuid
);

-- after fill

create index contact_company_id_created_at_id_idx on contact (company_id, created_at desc, id desc);
create index contact_email_idx on contact (email);
create index contact_phone_idx on contact (phone);
