package messaging

import (
	_ "embed"
	"time"

	"bahi/domain/event"
	"bahi/domain/messaging/contact"
	"bahi/domain/messaging/message"
	"bahi/domain/messaging/network"
	"bahi/projections"
)

//go:embed messages.sql
var messagesDDL string

// begun adds a message, and what its conversation shows of it.
func begun[E any](b *projections.Batch, e event.Recorded[E], said message.Content, channel, contact int64, status, provider string, at time.Time) {
	inbound := status == message.Inbound
	b.Exec(`
		insert into message (id, workspace_id, channel_id, contact_id, inbound, type, text, media_url, status, provider_id, at, actor, began, position)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, nullif($10, ''), $11, $12, $13, $13)`,
		e.StreamID(), e.Meta.Workspace, channel, contact, inbound, said.Type, said.Text, said.Image, status, provider, at, e.Meta.Actor, int64(e.Position))
	unread := 0
	if inbound && said.Type != "reaction" {
		unread = 1
	}
	b.Exec(`
		insert into conversation as c (contact_id, workspace_id, last_at, unread) values ($1, $2, $3, $4)
		on conflict (contact_id) do update set last_at = greatest(c.last_at, excluded.last_at),
			unread = c.unread + case when c.read_at is null or excluded.last_at > c.read_at then excluded.unread else 0 end`,
		contact, e.Meta.Workspace, at, unread)
}

// settled notes what is known of sending a message. Empty words are none.
func settled[E any](b *projections.Batch, e event.Recorded[E], status string, reason network.Reason, code int, title, details event.Personal) {
	b.Exec(`update message set status = $2, reason = nullif($3, ''), code = nullif($4::bigint, 0), title = $5, details = $6, position = $7 where id = $1`,
		e.StreamID(), status, string(reason), code, title, details, int64(e.Position))
}

// Messages has the conversations of contacts, one row a message.
var Messages = projections.Define("messages", 3, messagesDDL,
	projections.On(func(b *projections.Batch, e event.Recorded[message.Queued]) {
		begun(b, e, e.Data.Content, e.Data.Channel, e.Data.Contact, message.Waiting, "", e.At)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[message.Received]) {
		begun(b, e, e.Data.Content, e.Data.Channel, e.Data.Contact, message.Inbound, e.Data.ProviderID, e.Data.SentAt)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[message.Accepted]) {
		b.Exec(`update message set provider_id = $2, position = $3 where id = $1`, e.StreamID(), e.Data.ProviderID, int64(e.Position))
		b.Exec(`update message set status = 'sent', reason = null, code = null, title = null, details = null where id = $1 and status = 'queued'`, e.StreamID())
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[message.Failed]) {
		status := message.NotSent
		if e.Data.Reason == network.Unknown {
			status = message.Waiting
		}
		settled(b, e, status, e.Data.Reason, e.Data.Code, e.Data.Title, e.Data.Details)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[message.Requeued]) {
		settled(b, e, message.Waiting, "", 0, event.Personal{}, event.Personal{})
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[message.Reported]) {
		s := e.Data.Evolve(message.State{})
		settled(b, e, s.Status, s.Reason, s.Code, e.Data.Title, e.Data.Details)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[message.Identified]) {
		b.Exec(`update message set network_id = $2 where id = $1`, e.StreamID(), e.Data.NetworkID)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[message.Revised]) {
		b.Exec(`update message set text = $2, edited_at = $3, position = $4 where id = $1`, e.StreamID(), e.Data.Text, e.At, int64(e.Position))
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[message.Revoked]) {
		b.Exec(`update message set text = null, media_url = null, file = null, file_type = null, deleted_at = $2, position = $3 where id = $1`, e.StreamID(), e.At, int64(e.Position))
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[message.Filed]) {
		b.Exec(`update message set file = $2, file_type = $3, position = $4 where id = $1 and deleted_at is null`, e.StreamID(), e.Data.Key, e.Data.ContentType, int64(e.Position))
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[message.Seen]) {
		b.Exec(`
			update conversation set read_at = $2, unread = (
				select count(*) from message where contact_id = $1 and inbound and at > $2 and type <> 'reaction')
			where contact_id = $1 and (read_at is null or read_at < $2)`, e.Data.Contact, e.Data.At)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[contact.Absorbed]) {
		b.Exec(`update message set contact_id = $1 where contact_id = $2`, e.StreamID(), e.Data.Contact)
		b.Exec(`
			insert into conversation as c (contact_id, workspace_id, last_at, unread) select $1, workspace_id, last_at, unread from conversation where contact_id = $2
			on conflict (contact_id) do update set last_at = greatest(c.last_at, excluded.last_at), unread = c.unread + excluded.unread`, e.StreamID(), e.Data.Contact)
		b.Exec(`delete from conversation where contact_id = $1`, e.Data.Contact)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[contact.Deleted]) {
		b.Exec(`delete from message where contact_id = $1`, e.StreamID())
		b.Exec(`delete from conversation where contact_id = $1`, e.StreamID())
	}),
)
