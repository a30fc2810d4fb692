package accessview

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/readmodels"
)

// Plan is the plan of a workspace by the billing provider's last report. Its fields are null without a report.
type Plan struct {
	Name      *string    `json:"plan" doc:"Name of the plan at the billing provider; null: none"`
	Status    *string    `json:"status" doc:"Status at the provider: active, trialing, past_due, canceled"`
	UpdatedAt *time.Time `json:"updatedAt" doc:"Time of the provider's newest event"`
}

// Plan returns the plan of a workspace.
func (v *Views) Plan(ctx context.Context, at *readmodels.At, workspace uuid.UUID) (p Plan, err error) {
	rows, err := readmodels.Rows(ctx, v.Reader.From(at, "plans"), pgx.RowToStructByPos[Plan],
		`select name, status, updated_at from plans.plan where workspace_id = $1`, workspace)
	if len(rows) > 0 {
		p = rows[0]
	}
	return p, err
}
