// Package accessproj has the projections of users, API keys and workspaces.
package accessproj

import (
	_ "embed"

	"bahi/domain/access/apikey"
	"bahi/domain/event"
	"bahi/projections"
)

//go:embed api_keys.sql
var apiKeysDDL string

// APIKeys lists the keys of workspaces, without their secrets. Revoking a key revokes the keys that it created.
var APIKeys = projections.Define("api_keys", 3, apiKeysDDL,
	projections.On(func(b *projections.Batch, e event.Recorded[apikey.Created]) {
		b.Exec(`
			insert into api_key (id, workspace_id, name, permissions, created_by, parent_key_id, expires_at, created_at, revoked_at)
			values ($1, $2, $3, $4, $5, $6, $7, $8, (select $8::timestamptz from api_key m where m.id = $6 and m.revoked_at is not null))`,
			e.StreamID(), e.Data.Workspace, e.Data.Name, e.Data.Permissions, e.Data.By, e.Data.ParentKey(), e.Data.ExpiresAt, e.At)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[apikey.Revoked]) {
		b.Exec(`
			with recursive ended as (
				select id from api_key where id = $1
				union select k.id from api_key k join ended on k.parent_key_id = ended.id
			)
			update api_key set revoked_at = $2 where id in (select id from ended) and revoked_at is null`, e.StreamID(), e.At)
	}),
)
