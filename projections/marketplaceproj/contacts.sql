-- Contacts at companies, in plaintext. ContactDeleted removes the row.
create table contact (
  id           uuid primary key,
  workspace_id uuid not null, -- all zeros: the contact has no company
  company_id   uuid,
  hidden       boolean not null default false, -- the contact's company is deleted
  first_name   text, -- null if the key was destroyed before the fold of the deletion
  last_name    text,
  email        text,
  phone        text,
  designation  text,
  created_at   timestamptz not null,
  updated_at   timestamptz not null,
  revision     bigint not null -- of the contact's stream
);

-- Primary contacts of companies.
create table primary_contact (
  company_id uuid primary key,
  contact_id uuid
);

-- after fill

create index contact_company_id_created_at_id_idx on contact (company_id, created_at desc, id desc);
create index contact_email_idx on contact (email);
create index contact_phone_idx on contact (phone);
