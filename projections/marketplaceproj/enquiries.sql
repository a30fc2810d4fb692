-- Enquiries to companies, with the buyer's data in plaintext. BuyerErased sets the personal columns to null.
create table enquiry (
  id              uuid primary key,
  position        bigint not null, -- position of EnquirySent
  workspace_id    uuid not null,
  company_id      uuid not null,
  product_id      uuid,
  buyer           text not null, -- id of the data subject
  user_name       text,
  user_email      text,
  user_phone      text,
  message         text,
  quantity        bigint,
  source_platform text not null,
  spam            boolean not null,
  status          text not null,
  notes           text,
  crm_lead_id     text,
  notifications   jsonb not null, -- by port: status, time and error
  created_at      timestamptz not null,
  updated_at      timestamptz not null,
  revision        bigint not null -- of the enquiry's stream
);

-- Status changes of enquiries.
create table status_change (
  enquiry_id   uuid not null,
  ordinal      bigint not null, -- revision of the enquiry's stream after the change
  workspace_id uuid not null,
  moved_from   text,
  moved_to     text not null,
  at           timestamptz not null,
  actor        text not null,
  reason       text not null,
  primary key (enquiry_id, ordinal)
);

-- Notices of enquiries, sent by chat or to the CRM.
create table notice (
  enquiry_id uuid not null,
  port       text not null,
  buyer      text not null,
  at         timestamptz not null,
  recipient  text not null,
  text       text,
  status     text not null,
  primary key (enquiry_id, port)
);

-- after fill

create index enquiry_workspace_id_created_at_id_idx on enquiry (workspace_id, created_at desc, id desc);
create index enquiry_company_id_created_at_id_idx on enquiry (company_id, created_at desc, id desc);
create index enquiry_workspace_id_position_idx on enquiry (workspace_id, position);
create index enquiry_buyer_idx on enquiry (buyer);
create index enquiry_user_email_idx on enquiry (user_email);
create index enquiry_user_phone_idx on enquiry (user_phone);
create index notice_port_at_idx on notice (port, at desc);
create index notice_buyer_idx on notice (buyer);
