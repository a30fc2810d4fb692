-- Scanned pages of the books: what became of each file. The files, and what was read of them, are kept elsewhere.
create table khata (
  id           bigint primary key,
  workspace_id uuid not null,
  pipeline     text not null,
  blob         text not null,
  content_type text not null,
  size_bytes   bigint not null,
  status       text not null, -- processing, done, failed
  waits        boolean not null generated always as (first_row = 0 and status <> 'failed') stored, -- for its submission
  error        text,          -- why it failed
  pages        int not null,  -- 0: not known yet
  pages_done   int not null,
  entry_count  int not null,
  removed      boolean not null,
  first_row    bigint not null, -- of those that were submitted, whose ids follow one another; 0: none was
  row_count    bigint not null,
  actor        text not null, -- who uploaded it
  created_at   timestamptz not null,
  revision     bigint not null
);
-- after fill

create index khata_workspace_id_id_idx on khata (workspace_id, id);
create index khata_workspace_id_waits_idx on khata (workspace_id, id) where waits;
create index khata_created_at_idx on khata (created_at) where not removed;
