package credentials

import (
	"context"
	"fmt"

	"github.com/google/uuid"
)

// Void ends a token before its time. That there is none is no error.
func (m *Mailed) Void(ctx context.Context, kind Kind, subject uuid.UUID) error {
	_, err := m.db.pool.Exec(ctx, `delete from account.mailed_token where subject_id = $1 and kind = $2`, subject, kind.name)
	if err != nil {
		return fmt.Errorf("void a token to %s: %w", kind.name, err)
	}
	return nil
}
