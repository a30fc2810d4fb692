// Package marketplace has the projections of the marketplace area.
package marketplace

import (
	_ "embed"

	"bahi/domain/event"
	"bahi/domain/marketplace/apikey"
	"bahi/projections"
)

//go:embed api_keys.sql
var apiKeysDDL string

// APIKeys lists the keys of workspaces, without anything that opens.
var APIKeys = projections.Define("api_keys", 1, apiKeysDDL,
	projections.On(func(b *projections.Batch, e event.Recorded[apikey.Created]) {
		b.Exec(`
			insert into api_key (id, workspace_id, name, permissions, created_by, expires_at, created_at) values ($1, $2, $3, $4, $5, $6, $7)`,
			e.StreamID(), e.Data.Workspace, e.Data.Name, e.Data.Permissions, e.Data.By, e.Data.ExpiresAt, e.At)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[apikey.Revoked]) {
		b.Exec(`update api_key set revoked_at = $2 where id = $1`, e.StreamID(), e.At)
	}),
)
