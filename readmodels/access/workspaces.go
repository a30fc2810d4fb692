package access

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/readmodels"
)

// InvitationsTo returns all invitations, of whatever time and workspace, that were sent to an address with
// one of these keyed hashes.
func (v *Views) InvitationsTo(ctx context.Context, emailKeys []string) ([]uuid.UUID, error) {
	return readmodels.Rows(ctx, v.Reader, pgx.RowTo[uuid.UUID],
		`select i.id from workspaces.invitation i where i.email_key = any($1) order by i.id`, emailKeys)
}
