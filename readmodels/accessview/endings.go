package accessview

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"bahi/readmodels"
)

// Ended is a data subject that is due for erasure.
type Ended struct {
	Subject string
	Listed  bool // tables have its values
}

// Ended returns the subjects that are due for erasure and have readable values, by the records of the vault.
func (v *Views) Ended(ctx context.Context, at *readmodels.At, now time.Time) ([]Ended, error) {
	return readmodels.Rows(ctx, v.Reader.From(at, "endings"), pgx.RowToStructByPos[Ended], `
		select e.subject, e.listed from endings.pending_erasure e
		where e.due <= $1 and exists (select from vault.key k where k.subject = e.subject and k.destroyed_at is null)
		order by e.subject`, now)
}
