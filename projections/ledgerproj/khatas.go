package ledgerproj

import (
	_ "embed"

	"bahi/domain/event"
	"bahi/domain/ledger/khata"
	"bahi/projections"
)

//go:embed khatas.sql
var khatasDDL string

// Khatas has the uploaded khatas. [Books] has the submitted rows.
var Khatas = projections.Define("khatas", 5, khatasDDL+projections.RowCountDDL("khata", "true", "workspace_id", "unsubmitted"),
	projections.On(func(b *projections.Batch, e event.Recorded[khata.Uploaded]) {
		b.Exec(`
			insert into khata (id, workspace_id, pipeline, blob, content_type, size_bytes, status, pages, pages_done, entry_count, removed,
				first_row, row_count, actor, created_at, revision)
			values ($1, $2, $3, $4, $5, $6, 'processing', 0, 0, 0, false, 0, 0, $7, $8, $9)`,
			e.StreamID(), e.Meta.Workspace, e.Data.Pipeline, e.Data.Blob, e.Data.Type, e.Data.Size, e.Meta.Actor, e.At, e.Revision)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[khata.PageRead]) {
		b.Exec(`update khata set pages = $2, pages_done = $3, revision = $4 where id = $1`, e.StreamID(), e.Data.Of, e.Data.Page, e.Revision)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[khata.Read]) {
		b.Exec(`update khata set status = 'done', pages = $2, pages_done = $2, entry_count = $3, revision = $4 where id = $1`,
			e.StreamID(), e.Data.Pages, e.Data.Entries, e.Revision)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[khata.Failed]) {
		b.Exec(`update khata set status = 'failed', error = $2, revision = $3 where id = $1`, e.StreamID(), e.Data.Reason, e.Revision)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[khata.Submitted]) {
		b.Exec(`update khata set first_row = $2, row_count = $3, revision = $4 where id = $1`, e.StreamID(), e.Data.First, e.Data.Rows,
			e.Revision)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[khata.Removed]) {
		b.Exec(`update khata set removed = true, revision = $2 where id = $1`, e.StreamID(), e.Revision)
	}),
)
