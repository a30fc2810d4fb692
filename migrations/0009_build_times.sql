-- How long the phases of a build took that follow its fill: what is left of the next one is reckoned from it.
alter table projection.generation
  add column filled_at  timestamptz, -- when the fill of the tables ended
  add column after_fill interval;    -- from then until the generation was read; null: it was not measured
