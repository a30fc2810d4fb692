-- Whose rows a projection changed, and where: an answer that was read before that is still the answer. A generation tells this for the
-- positions behind told_from up to told_to. It is of use where told_to is the generation's position: a program that does not tell leaves it behind.
-- Rows of a generation that is gone may stay behind, and only make answers be read again.
alter table projection.generation
  add column told_from bigint,
  add column told_to   bigint;

create table projection.change (
  name         text not null,
  generation   int not null,
  workspace_id uuid not null,
  position     bigint not null, -- of the end of the last batch that changed rows of the workspace
  primary key (name, generation, workspace_id)
) with (fillfactor = 50);
