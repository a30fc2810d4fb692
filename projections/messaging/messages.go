package messaging

import (
	_ "embed"

	"bahi/domain/event"
	"bahi/domain/messaging/contact"
	"bahi/domain/messaging/message"
	"bahi/domain/messaging/network"
	"bahi/projections"
)

//go:embed messages.sql
var messagesDDL string

const insertMessage = `
	insert into message (id, workspace_id, channel_id, contact_id, inbound, type, text, media_url, status, at, actor)
	values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`

// Messages has the conversations of contacts, one row a message.
var Messages = projections.Define("messages", 1, messagesDDL,
	projections.On(func(b *projections.Batch, e event.Recorded[message.Queued]) {
		b.Exec(insertMessage, e.StreamID(), e.Meta.Workspace, e.Data.Channel, e.Data.Contact, false, e.Data.Type, e.Data.Text, e.Data.Image, message.Waiting, e.At, e.Meta.Actor)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[message.Received]) {
		b.Exec(insertMessage, e.StreamID(), e.Meta.Workspace, e.Data.Channel, e.Data.Contact, true, e.Data.Type, e.Data.Text, e.Data.Image, message.Inbound, e.Data.SentAt, e.Meta.Actor)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[message.Accepted]) {
		b.Exec(`update message set status = 'sent', reason = null, code = null, title = null, details = null where id = $1 and status = 'queued'`, e.StreamID())
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[message.Failed]) {
		status := message.NotSent
		if e.Data.Reason == network.Unknown {
			status = message.Waiting
		}
		b.Exec(`update message set status = $2, reason = $3, code = nullif($4::bigint, 0), title = $5, details = $6 where id = $1`,
			e.StreamID(), status, string(e.Data.Reason), e.Data.Code, e.Data.Title, e.Data.Details)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[message.Requeued]) {
		b.Exec(`update message set status = 'queued', reason = null, code = null, title = null, details = null where id = $1`, e.StreamID())
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[message.Reported]) {
		s := e.Data.Evolve(message.State{})
		b.Exec(`update message set status = $2, reason = nullif($3, ''), code = nullif($4::bigint, 0), title = null, details = null where id = $1`,
			e.StreamID(), s.Status, string(s.Reason), s.Code)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[contact.Deleted]) {
		b.Exec(`delete from message where contact_id = $1`, e.StreamID())
	}),
)
