package messagingview

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/event"
	"bahi/domain/messaging/message"
	"bahi/domain/messaging/network"
	"bahi/readmodels"
)

// Message is a message to or from a contact.
type Message struct {
	ID        string        `json:"id" doc:"ID of the message"`
	Direction string        `json:"direction" enum:"in,out" doc:"Direction: inbound or outbound"`
	ChannelID int64         `json:"channelId" doc:"ID of the channel"`
	Type      string        `json:"type" doc:"text, image, template; inbound also file, audio, video, reaction or another type of a network"`
	Text      *string       `json:"text" doc:"Text"`
	MediaURL  *string       `json:"mediaUrl" doc:"URL of the file; a link to a file that Bahi stores is valid for an hour"`
	Status    string        `json:"status" enum:"queued,sent,failed,delivered,read,received" doc:"Status of the message"`
	Error     *MessageError `json:"error" doc:"Error; null: none"`
	At        time.Time     `json:"at" doc:"Time of the message"`
	EditedAt  *time.Time    `json:"editedAt,omitempty" doc:"Time when the contact edited the message; null: never"`
	DeletedAt *time.Time    `json:"deletedAt,omitempty" doc:"Time when the contact deleted the message; null: never"`
	By        string        `json:"by" doc:"Sender: contact, user:<id>, key:<id>, bot:<id> or campaign:<id>"`

	File     *string        `json:"-"` // key of its file in the blob store; nil: none
	FileType *string        `json:"-"`
	Contact  int64          `json:"-"`
	Began    event.Position `json:"-"`
	Position event.Position `json:"-"` // position of its last event
	arrived  time.Time
}

// MessageError is the reason why a message was not sent, or may not have been.
type MessageError struct {
	Code    string  `json:"code" doc:"Stable code of the error"`
	Title   *string `json:"title" doc:"Title from the network"`
	Details *string `json:"details" doc:"Text from the network; null: none"`
}

const messageFields = `select id, inbound, channel_id, type, text, media_url, status, reason, title, details, at, edited_at, deleted_at,
	actor, file, file_type, contact_id, began, position, arrived_at`

const messageColumns = messageFields + ` from messages.message`

// shown excludes reactions that were removed or replaced, and removals.
const shown = `not (type = 'reaction' and text is null)`

// Messages lists at most limit messages of the conversation with a contact before a message (0: the newest), newest first by the network's
// time. The query does not search by the workspace, because Postgres would read all of its messages to join two indexes.
func (v *Views) Messages(ctx context.Context, at *readmodels.At, workspace uuid.UUID, contact, before int64, limit int) ([]Message, error) {
	return readmodels.Rows(ctx, v.Reader.From(at, "messages"), asMessage, messageFields+` from (
			select * from messages.message where contact_id = $1 and `+shown+` and (at, arrived_at, began) < (
				case when $3::bigint = 0 then 'infinity' else (select at from messages.message where id = $3) end,
				case when $3::bigint = 0 then 'infinity' else (select arrived_at from messages.message where id = $3) end,
				case when $3::bigint = 0 then 0 else (select began from messages.message where id = $3) end)
			order by at desc, arrived_at desc, began desc limit $4) message
		where workspace_id = $2 order by at desc, arrived_at desc, began desc`, contact, workspace, before, limit)
}

// Message reads a message of a workspace, or returns [message.ErrNotFound].
func (v *Views) Message(ctx context.Context, at *readmodels.At, workspace uuid.UUID, id int64) (Message, error) {
	return readmodels.Row(ctx, v.Reader.From(at, "messages"), message.ErrNotFound, asMessage,
		messageColumns+` where id = $1 and workspace_id = $2`, id, workspace)
}

// MessagesSince lists the messages of a workspace that were added or changed after a position, by their last changes.
func (v *Views) MessagesSince(ctx context.Context, at *readmodels.At, workspace uuid.UUID, after event.Position, limit int) ([]Message,
	error) {
	return readmodels.Rows(ctx, v.Reader.From(at, "messages"), asMessage,
		messageColumns+` where workspace_id = $1 and position > $2 and (deleted_at is not null or `+shown+`)
		order by position limit $3`, workspace, int64(after), limit)
}

// LastHeard returns the newest message of a contact, 0 for none.
func (v *Views) LastHeard(ctx context.Context, workspace uuid.UUID, contact int64) (int64, error) {
	return first(readmodels.Rows(ctx, v.Reader.From(nil, "messages"), pgx.RowTo[int64], `
		select id from messages.message where inbound and type <> 'reaction' and contact_id = $1 and workspace_id = $2 order by at desc,
			arrived_at desc, began desc limit 1`, contact, workspace))
}

// MessagesNamed returns the messages of a channel by the network's ids. A separate query searches each kind of id by its own index, because
// Postgres may otherwise read all messages of the channel or the workspace.
func (v *Views) MessagesNamed(ctx context.Context, workspace uuid.UUID, channel int64, ids []string) (map[string]int64, error) {
	return v.messagesNamed(ctx, nil, workspace, channel, ids)
}

func (v *Views) messagesNamed(ctx context.Context, at *readmodels.At, workspace uuid.UUID, channel int64,
	ids []string) (map[string]int64, error) {
	type named struct {
		Name string
		ID   int64
	}
	// Postgres refuses such a text
	ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return strings.ContainsRune(id, 0) })
	found, err := readmodels.Rows(ctx, v.Reader.From(at, "messages"), pgx.RowToStructByPos[named], `
		with named as materialized (
			select provider_id as name, id, channel_id, workspace_id from messages.message where provider_id = any($3)
			union all select network_id, id, channel_id, workspace_id from messages.message where network_id = any($3))
		select name, min(id) from named where channel_id = $2 and workspace_id = $1 group by name`, workspace, channel, ids)
	byName := make(map[string]int64, len(found))
	for _, n := range found {
		byName[n.Name] = n.ID
	}
	return byName, err
}

// MessagesAtHand is [Views.MessagesNamed] without waiting for recent writes.
func (v *Views) MessagesAtHand(ctx context.Context, workspace uuid.UUID, channel int64, ids []string) (map[string]int64, error) {
	return v.messagesNamed(ctx, new(readmodels.At).AsKnownAt(0), workspace, channel, ids)
}

func first[T any](rows []T, err error) (one T, _ error) {
	if len(rows) > 0 {
		one = rows[0]
	}
	return one, err
}

func asMessage(row pgx.CollectableRow) (m Message, err error) {
	var (
		id              string
		inbound         bool
		reason          *string
		failed          MessageError
		began, position int64
	)
	err = row.Scan(&id, &inbound, &m.ChannelID, &m.Type, &m.Text, &m.MediaURL, &m.Status, &reason, &failed.Title, &failed.Details,
		&m.At, &m.EditedAt, &m.DeletedAt, &m.By,
		&m.File, &m.FileType, &m.Contact, &began, &position, &m.arrived)
	m.Began, m.Position = event.Position(began), event.Position(position)
	m.ID, m.Direction, m.By = message.Name(id), "out", strings.Replace(m.By, "api_key:", "key:", 1)
	if inbound {
		m.Direction, m.By = "in", "contact"
	}
	if reason != nil {
		failed.Code = network.Reason(*reason).Word()
		m.Error = &failed
	}
	return m, err
}

// Heard returns when a contact last wrote to a channel, by the network's time. It returns the zero time for never. Reactions do not count.
func (v *Views) Heard(ctx context.Context, workspace uuid.UUID, channel, contact int64) (time.Time, error) {
	return first(readmodels.Rows(ctx, v.Reader.From(nil, "messages"), pgx.RowTo[time.Time], `
		select at from messages.message where inbound and type <> 'reaction' and contact_id = $1 and channel_id = $2 and workspace_id = $3
			order by at desc limit 1`, contact, channel, workspace))
}

// OnChat reports whether a phone has sent or received a message of a workspace on the chat network.
func (v *Views) OnChat(ctx context.Context, at *readmodels.At, workspace uuid.UUID, phone string) (bool, error) {
	return v.proven(ctx, at, workspace, phone, `(m.inbound or m.status in ('delivered', 'read'))`)
}

// Wrote reports whether a person with a phone has written to a workspace by chat.
func (v *Views) Wrote(ctx context.Context, at *readmodels.At, workspace uuid.UUID, phone string) (bool, error) {
	return v.proven(ctx, at, workspace, phone, `m.inbound`)
}

func (v *Views) proven(ctx context.Context, at *readmodels.At, workspace uuid.UUID, phone, how string) (bool, error) {
	return readmodels.Row(ctx, v.Reader.From(at, "channels", "messages", "messaging_contacts"), nil, pgx.RowTo[bool], `
		select exists (select from messaging_contacts.contact c join messages.message m on m.contact_id = c.id
			join channels.channel h on h.id = m.channel_id and h.type = 'chat'
			where c.phone = $1 and c.workspace_id = $2 and `+how+`)`, phone, workspace)
}
