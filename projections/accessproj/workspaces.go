package accessproj

import (
	_ "embed"

	"bahi/domain/access/workspace"
	"bahi/domain/event"
	"bahi/projections"
)

//go:embed workspaces.sql
var workspacesDDL string

const joins = `insert into member (workspace_id, user_id, permissions, joined_at, revision) values ($1, $2, $3, $4, $5)`

const ends = `update invitation set ended_at = $2 where id = $1`

// Workspaces has the members and invitations of workspaces.
var Workspaces = projections.Define("workspaces", 3, workspacesDDL,
	projections.On(func(b *projections.Batch, e event.Recorded[workspace.Created]) {
		b.Exec(joins, e.StreamID(), e.Data.Owner, workspace.Owner, e.At, e.Revision)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[workspace.Invited]) {
		b.Exec(`insert into invitation (id, workspace_id, email_key, expires_at) values ($1, $2, $3, $4)`,
			e.Data.Invitation, e.StreamID(), e.Data.EmailKey, e.Data.ExpiresAt)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[workspace.Withdrawn]) {
		b.Exec(ends, e.Data.Invitation, e.At)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[workspace.Joined]) {
		b.Exec(ends, e.Data.Invitation, e.At)
		b.Exec(joins, e.StreamID(), e.Data.User, e.Data.Permissions, e.At, e.Revision)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[workspace.Changed]) {
		b.Exec(`update member set permissions = $3, revision = $4 where workspace_id = $1 and user_id = $2`,
			e.StreamID(), e.Data.User, e.Data.To, e.Revision)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[workspace.Removed]) {
		b.Exec(`delete from member where workspace_id = $1 and user_id = $2`, e.StreamID(), e.Data.User)
	}),
)
