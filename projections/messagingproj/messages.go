package messagingproj

import (
	_ "embed"
	"time"

	"bahi/domain/event"
	"bahi/domain/messaging/contact"
	"bahi/domain/messaging/message"
	"bahi/projections"
)

//go:embed messages.sql
var messagesDDL string

// Messages has the conversations of contacts, one row a message.
var Messages = projections.Define("messages", 9, messagesDDL+projections.RowCountDDL("conversation", "unread > 0", "workspace_id"),
	projections.Apply(turnTypes(), foldTurns),
	projections.On(func(b *projections.Batch, e event.Recorded[message.Edited]) {
		b.Exec(`update message set text = $2, edited_at = $3, position = $4 where id = $1`, e.StreamID(), e.Data.Text,
			byNetwork(e.Data.At, e.At), int64(e.Position))
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[message.Revoked]) {
		b.Exec(`update message set text = null, media_url = null, file = null, file_type = null, deleted_at = $2, position = $3 where id = $1`,
			e.StreamID(), byNetwork(e.Data.At, e.At), int64(e.Position))
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[message.FileStored]) {
		b.Exec(`update message set file = $2, file_type = $3, position = $4 where id = $1 and deleted_at is null`, e.StreamID(), e.Data.Key,
			e.Data.ContentType, int64(e.Position))
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[message.MarkedRead]) {
		b.Exec(`
			update conversation c set read_at = m.at, read_arrived = m.arrived_at, read_began = m.began, unread = (
				select count(*) from message n where n.contact_id = $1 and n.inbound and (n.at, n.arrived_at, n.began) > (m.at, m.arrived_at, m.began)
					and n.type <> 'reaction')
			from message m where m.id = $2 and c.contact_id = $1 and (c.read_at is null or (c.read_at, c.read_arrived, c.read_began) < (m.at,
				m.arrived_at, m.began))`,
			e.Data.Contact, e.StreamID())
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[contact.Absorbed]) {
		b.Exec(`update message set contact_id = $1 where contact_id = $2`, e.StreamID(), e.Data.Contact)
		b.Exec(`
			insert into conversation as c (contact_id, workspace_id, last_at, unread) select $1, workspace_id, last_at, unread from conversation
				where contact_id = $2
			on conflict (contact_id) do update set last_at = greatest(c.last_at, excluded.last_at),
				unread = c.unread + excluded.unread`, e.StreamID(), e.Data.Contact)
		b.Exec(`delete from conversation where contact_id = $1`, e.Data.Contact)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[contact.Deleted]) {
		b.Exec(`delete from message where contact_id = $1`, e.StreamID())
		b.Exec(`delete from conversation where contact_id = $1`, e.StreamID())
	}),
).WithBatchDelay(messagesGather)

// byNetwork returns the network's time of an event, or else the time of its recording.
func byNetwork(told, recorded time.Time) time.Time {
	if told.IsZero() {
		return recorded
	}
	return told
}

// messagesGather is the maximum delay of a message while no request reads messages. Meanwhile other messages and its own receipts may
// arrive. Folding many messages costs little more than folding one.
const messagesGather = 50 * time.Millisecond
