package accessview

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"bahi/readmodels"
)

// Ended is a subject whose values are to be forgotten.
type Ended struct {
	Subject string
	Listed  bool // tables show its values
}

// Ended returns the subjects that are due for erasure and have readable values. Only the vault records which values are readable.
func (v *Views) Ended(ctx context.Context, at *readmodels.At, now time.Time) ([]Ended, error) {
	return readmodels.Rows(ctx, v.Reader.From(at, "endings"), pgx.RowToStructByPos[Ended], `
		select e.subject, e.listed from endings.ending e
		where e.due <= $1 and exists (select from vault.key k where k.subject = e.subject and k.destroyed_at is null)
		order by e.subject`, now)
}
