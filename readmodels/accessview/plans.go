package accessview

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/readmodels"
)

// Plan is what a workspace pays for, as the billing provider last said. Its fields are null for a workspace of which the provider has said
// nothing.
type Plan struct {
	Name      *string    `json:"plan" doc:"The billing provider's name of the plan; null: none"`
	Status    *string    `json:"status" doc:"The provider's word: active, trialing, past_due, canceled"`
	UpdatedAt *time.Time `json:"updatedAt" doc:"Time of the provider's newest event"`
}

// Plan returns what a workspace pays for.
func (v *Views) Plan(ctx context.Context, at *readmodels.At, workspace uuid.UUID) (p Plan, err error) {
	rows, err := readmodels.Rows(ctx, v.Reader.From(at, "plans"), pgx.RowToStructByPos[Plan],
		`select name, status, updated_at from plans.plan where workspace_id = $1`, workspace)
	if len(rows) > 0 {
		p = rows[0]
	}
	return p, err
}
