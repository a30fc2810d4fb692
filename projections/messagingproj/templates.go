package messagingproj

import (
	_ "embed"

	"bahi/domain/event"
	"bahi/domain/messaging/channel"
	"bahi/domain/messaging/template"
	"bahi/projections"
)

//go:embed templates.sql
var templatesDDL string

// Templates has the templates of chat channels, until their channel is deleted.
var Templates = projections.Define("templates", 2, templatesDDL,
	projections.On(func(b *projections.Batch, e event.Recorded[template.Listed]) {
		d := e.Data
		b.Exec(`
			insert into template (id, workspace_id, channel_id, provider_id, name, language, category, status, format, parameters, body)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
			on conflict (id) do update set name = excluded.name, language = excluded.language, category = excluded.category,
				status = excluded.status,
				format = excluded.format, parameters = excluded.parameters, body = excluded.body`,
			e.StreamID(), e.Meta.Workspace, d.Channel, d.ProviderID, d.Name, d.Language, d.Category, d.Status, d.Format,
			append([]string{}, d.Places()...), d.Body)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[template.StatusMoved]) {
		b.Exec(`update template set status = $2 where id = $1`, e.StreamID(), e.Data.Status)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[channel.Deleted]) {
		b.Exec(`delete from template where channel_id = $1`, e.StreamID())
	}),
)
