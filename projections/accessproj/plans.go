package accessproj

import (
	_ "embed"

	"bahi/domain/access/plan"
	"bahi/domain/event"
	"bahi/projections"
)

//go:embed plans.sql
var plansDDL string

// Plans has the plans of workspaces.
var Plans = projections.Define("plans", 2, plansDDL,
	projections.On(func(b *projections.Batch, e event.Recorded[plan.Reported]) {
		b.Exec(`
			insert into plan (workspace_id, name, status, updated_at) values ($1, nullif($2, ''), $3, $4)
			on conflict (workspace_id) do update set name = excluded.name, status = excluded.status, updated_at = excluded.updated_at`,
			e.StreamID(), e.Data.Name, e.Data.Status, e.At)
	}),
)
