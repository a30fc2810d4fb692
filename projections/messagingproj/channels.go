package messagingproj

import (
	_ "embed"
	"encoding/json"

	"bahi/domain/event"
	"bahi/domain/messaging/channel"
	"bahi/domain/patch"
	"bahi/projections"
)

//go:embed channels.sql
var channelsDDL string

// Channels has the channels of workspaces.
var Channels = projections.Define("channels", 6, channelsDDL,
	projections.On(func(b *projections.Batch, e event.Recorded[channel.Created]) {
		s := e.Data.Evolve(channel.State{})
		b.Exec(`
			insert into channel (id, workspace_id, name, type, status, settings, has_api_key, has_access_token, secret_settings,
				created_at, updated_at, revision, key)
			values ($1, $2, $3, $4, $5, jsonb_strip_nulls($6), $7, $8, $9, $10, $10, $11, nullif($12, ''))`,
			e.StreamID(), e.Meta.Workspace, s.Name, s.Type, s.Status, settings(e.Data.Settings), !s.APIKey.Value.IsZero(),
			!s.AccessToken.Value.IsZero(),
			s.SecretSettings(), e.At, e.Revision, s.Key)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[channel.Edited]) {
		b.Exec(`update channel set settings = jsonb_strip_nulls(settings || $2) where id = $1`, e.StreamID(), settings(e.Data.Settings))
		if set, cleared := e.Data.SecretSettings(), e.Data.ClearedSettings(); len(set)+len(cleared) > 0 {
			b.Exec(`update channel set secret_settings = (
				select coalesce(array_agg(distinct name), '{}') from unnest(secret_settings || $2::text[]) n (name) where name <> all($3::text[]))
					where id = $1`, e.StreamID(), set, cleared)
		}
		b.Set("channel", e.StreamID(), "name", e.Data.Name, "has_api_key", there(e.Data.APIKey), "has_access_token", there(e.Data.AccessToken),
			"updated_at", e.At, "revision", e.Revision)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[channel.Reported]) {
		b.Exec(`update channel set status = $2, last_error = nullif($3, ''), identified = $4, updated_at = $5, revision = $6 where id = $1`,
			e.StreamID(), e.Data.Status, e.Data.Error, e.Data.IdentityKey != "", e.At, e.Revision)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[channel.Confirmed]) {
		b.Set("channel", e.StreamID(), "identified", true, "updated_at", e.At, "revision", e.Revision)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[channel.Deleted]) {
		b.Exec(`delete from channel where id = $1`, e.StreamID())
	}),
)

// settings returns a change as JSON: the changed settings, null for removed ones.
func settings(c channel.Change) string {
	text, _ := json.Marshal(c) //nolint:errchkjson // texts and lists of texts
	return string(text)
}

// there reports whether a secret exists after a change.
func there(f patch.Field[event.Secret]) patch.Field[bool] {
	if !f.Present() {
		return patch.Field[bool]{}
	}
	return patch.Set(f.State == patch.Given)
}
