package ledgerproj

import (
	_ "embed"

	"bahi/domain/event"
	"bahi/domain/ledger/period"
	"bahi/projections"
)

//go:embed periods.sql
var periodsDDL string

// Periods has the seals of closed periods.
var Periods = projections.Define("periods", 2, periodsDDL,
	projections.On(func(b *projections.Batch, e event.Recorded[period.Closed]) {
		var from *string
		if e.Data.From != nil {
			from = new(e.Data.From.String())
		}
		b.Exec(`
			insert into period (position, workspace_id, from_date, through, digest, log_size, log_root, read_position, closed_at, closed_by)
			values ($1, $2, $3::text::date, $4::text::date, $5, $6, $7, $8, $9, $10)`,
			int64(e.Position), e.Meta.Workspace, from, e.Data.Through.String(), e.Data.Digest,
			int64(e.Data.LogSize), e.Data.LogRoot, int64(e.Data.Position), e.At, e.Meta.Actor)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[period.Reopened]) {
		b.Exec(`
			update period set reopened_position = $3, reopened_at = $4, reopened_by = $5, reopen_reason = $6
			where workspace_id = $1 and through = $2::text::date and reopened_position is null`,
			e.Meta.Workspace, e.Data.Through.String(), int64(e.Position), e.At, e.Meta.Actor, e.Data.Reason)
	}),
)
