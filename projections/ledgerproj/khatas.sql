-- Uploaded khata pages and their status. The blob store has the files and the recognised entries.
create table khata (
  id           bigint primary key,
  workspace_id uuid not null,
  pipeline     text not null,
  blob         text not null,
  content_type text not null,
  size_bytes   bigint not null,
  status       text not null, -- processing, done, failed
  unsubmitted  boolean not null generated always as (first_row = 0 and status <> 'failed') stored,
  error        text,          -- reason of the failure
  pages        int not null,  -- 0: unknown
  pages_done   int not null,
  entry_count  int not null,
  removed      boolean not null,
  first_row    bigint not null, -- first of the submitted rows, which have consecutive ids; 0: none is submitted
  row_count    bigint not null,
  actor        text not null, -- the uploader
  created_at   timestamptz not null,
  revision     bigint not null
);
-- after fill

create index khata_workspace_id_id_idx on khata (workspace_id, id);
create index khata_workspace_id_unsubmitted_idx on khata (workspace_id, id) where unsubmitted;
create index khata_created_at_idx on khata (created_at) where not removed;
