// Package accessview reads the projections of users, API keys and workspaces.
package accessview

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/actor"
	"bahi/readmodels"
)

// Views reads users, API keys, workspaces and invitations.
type Views struct {
	Reader *readmodels.Reader
}

// APIKey is a key without its secret.
type APIKey struct {
	ID          uuid.UUID         `json:"id" doc:"ID of the API key"`
	WorkspaceID uuid.UUID         `json:"workspace_id" doc:"ID of the workspace"`
	Name        string            `json:"name" doc:"Name of the API key"`
	Permissions actor.Permissions `json:"permissions" doc:"Permissions by area"`
	CreatedBy   string            `json:"created_by" doc:"Such as user:<id> or api_key:<id>"`
	ExpiresAt   *time.Time        `json:"expires_at" doc:"Time of expiry; null: none"`
	CreatedAt   time.Time         `json:"created_at" doc:"Time when the API key was created"`
	RevokedAt   *time.Time        `json:"revoked_at" doc:"Time of the revocation; null: not revoked"`
}

// APIKeys lists a workspace's keys, oldest first, revoked ones included.
func (v *Views) APIKeys(ctx context.Context, at *readmodels.At, workspace uuid.UUID) ([]APIKey, error) {
	return readmodels.Rows(ctx, v.Reader.From(at, "api_keys"), pgx.RowToStructByName[APIKey], `
		select id, workspace_id, name, permissions, created_by, expires_at, created_at, revoked_at from api_keys.api_key
		where workspace_id = $1 order by created_at, id`, workspace)
}
