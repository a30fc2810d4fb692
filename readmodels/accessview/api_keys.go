// Package access reads the projections of people, sessions, API keys and workspaces.
package accessview

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/actor"
	"bahi/readmodels"
)

// Views reads people, API keys, workspaces and invitations.
type Views struct {
	Reader *readmodels.Reader
}

// APIKey is a key without its secret.
type APIKey struct {
	ID          uuid.UUID         `json:"id"`
	WorkspaceID uuid.UUID         `json:"workspace_id"`
	Name        string            `json:"name"`
	Permissions actor.Permissions `json:"permissions"`
	CreatedBy   string            `json:"created_by" doc:"Such as user:<id> or api_key:<id>"`
	ExpiresAt   *time.Time        `json:"expires_at"`
	CreatedAt   time.Time         `json:"created_at"`
	RevokedAt   *time.Time        `json:"revoked_at"`
}

// APIKeys lists a workspace's keys, oldest first, revoked ones included.
func (v *Views) APIKeys(ctx context.Context, at *readmodels.At, workspace uuid.UUID) ([]APIKey, error) {
	return readmodels.Rows(ctx, v.Reader.From("api_keys"), at, pgx.RowToStructByName[APIKey], `
		select id, workspace_id, name, permissions, created_by, expires_at, created_at, revoked_at from api_keys.api_key
		where workspace_id = $1 order by created_at, id`, workspace)
}
