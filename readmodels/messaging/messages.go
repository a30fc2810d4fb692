package messaging

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/messaging/message"
	"bahi/domain/messaging/network"
	"bahi/readmodels"
)

// Message is a message to or from a contact.
type Message struct {
	ID        string        `json:"id"`
	Direction string        `json:"direction" enum:"in,out"`
	ChannelID int64         `json:"channelId"`
	Type      string        `json:"type" enum:"text,image"`
	Text      *string       `json:"text"`
	MediaURL  *string       `json:"mediaUrl"`
	Status    string        `json:"status" enum:"queued,sent,failed,delivered,read,received"`
	Error     *MessageError `json:"error"`
	At        time.Time     `json:"at"`
	By        string        `json:"by" doc:"contact, user:<id> or key:<id>"`
}

// MessageError says why a message is not known to be sent.
type MessageError struct {
	Code    string  `json:"code" doc:"A stable word for programs"`
	Title   *string `json:"title" doc:"In the network's words"`
	Details *string `json:"details"`
}

// Messages lists the conversation with a contact, newest first: at most limit messages before one, before the end for 0.
func (v *Views) Messages(ctx context.Context, workspace uuid.UUID, contact, before int64, limit int) ([]Message, error) {
	return readmodels.Rows(ctx, v.Reader, asMessage, `
		select id, inbound, channel_id, type, text, media_url, status, reason, title, details, at, actor from messages.message
		where contact_id = $1 and workspace_id = $2 and ($3::bigint = 0 or id < $3) order by id desc limit $4`, contact, workspace, before, limit)
}

func asMessage(row pgx.CollectableRow) (m Message, err error) {
	var (
		id      string
		inbound bool
		reason  *string
		failed  MessageError
	)
	err = row.Scan(&id, &inbound, &m.ChannelID, &m.Type, &m.Text, &m.MediaURL, &m.Status, &reason, &failed.Title, &failed.Details, &m.At, &m.By)
	m.ID, m.Direction, m.By = message.Name(id), "out", strings.Replace(m.By, "api_key:", "key:", 1)
	if inbound {
		m.Direction, m.By = "in", "contact"
	}
	if reason != nil {
		failed.Code = (&network.Failure{Reason: network.Reason(*reason)}).Fault().Code
		m.Error = &failed
	}
	return m, err
}

// Heard returns when a contact last wrote to a channel, by the network's time: the zero time for never.
func (v *Views) Heard(ctx context.Context, workspace uuid.UUID, channel, contact int64) (time.Time, error) {
	at, err := readmodels.Rows(ctx, v.Reader, pgx.RowTo[time.Time], `
		select at from messages.message where inbound and contact_id = $1 and channel_id = $2 and workspace_id = $3 order by at desc limit 1`, contact, channel, workspace)
	if err != nil || len(at) == 0 {
		return time.Time{}, err
	}
	return at[0], nil
}

// OnChat reports whether a workspace's messages prove that a phone is on the chat network: the person wrote, or got a message.
func (v *Views) OnChat(ctx context.Context, workspace uuid.UUID, phone string) (bool, error) {
	return v.proven(ctx, workspace, phone, `(m.inbound or m.status in ('delivered', 'read'))`)
}

// Wrote reports whether a person with a phone has written to a workspace by chat.
func (v *Views) Wrote(ctx context.Context, workspace uuid.UUID, phone string) (bool, error) {
	return v.proven(ctx, workspace, phone, `m.inbound`)
}

func (v *Views) proven(ctx context.Context, workspace uuid.UUID, phone, how string) (bool, error) {
	return readmodels.Row(ctx, v.Reader, nil, pgx.RowTo[bool], `
		select exists (select from messaging_contacts.contact c join messages.message m on m.contact_id = c.id
			join channels.channel h on h.id = m.channel_id and h.type = 'chat'
			where c.phone = $1 and c.workspace_id = $2 and `+how+`)`, phone, workspace)
}
