package access

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/readmodels"
)

// InvitationsToForget returns the invitations that are over by now, accepted, withdrawn or expired, whose
// addresses can be read still. The vault itself says whether they can, so nothing else has to note that
// one was forgotten; its subjects are those of workspace.InvitationSubject.
func (v *Views) InvitationsToForget(ctx context.Context, now time.Time) ([]uuid.UUID, error) {
	return readmodels.Rows(ctx, v.Reader, pgx.RowTo[uuid.UUID], `
		select i.id from workspaces.invitation i
		where (i.ended_at is not null or i.expires_at <= $1)
		and exists (select from vault.key k where k.subject = 'invitation-' || i.id and k.destroyed_at is null)
		order by i.id`, now)
}

// InvitationsTo returns all invitations, of whatever time and workspace, that were sent to an address with
// one of these keyed hashes.
func (v *Views) InvitationsTo(ctx context.Context, emailKeys []string) ([]uuid.UUID, error) {
	return readmodels.Rows(ctx, v.Reader, pgx.RowTo[uuid.UUID],
		`select i.id from workspaces.invitation i where i.email_key = any($1) order by i.id`, emailKeys)
}
