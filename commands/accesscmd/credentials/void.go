package credentials

import (
	"context"
	"fmt"

	"github.com/google/uuid"
)

// Void ends a subject's token early, as if it were spent. A missing token is no error.
func (m *Mailed) Void(ctx context.Context, kind Kind, subject uuid.UUID) error {
	_, err := m.db.pool.Exec(ctx, `
		update account.mailed_token set spent = true, expires_at = $3 where subject_id = $1 and kind = $2 and not spent`,
		subject, kind.name, m.now().Add(keptSpent))
	if err != nil {
		return fmt.Errorf("void a token to %s: %w", kind.name, err)
	}
	return nil
}
