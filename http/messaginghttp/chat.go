package messaginghttp

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"time"

	"bahi/commands"
	"bahi/domain/fault"
	"bahi/domain/messaging/message"
	"bahi/http/api"
	"bahi/readmodels/messagingview"
)

// accepted is the response to a message that the network accepted.
type accepted struct {
	MessageID         string `json:"messageId" doc:"ID of the message"`
	ProviderMessageID string `json:"providerMessageId" doc:"ID of the message at the provider"`
	Status            string `json:"status" enum:"accepted" doc:"Status of the message"`
	To                string `json:"to" doc:"Phone number in E.164 form"`
	ChannelID         int64  `json:"channelId" doc:"ID of the channel"`
}

// chat registers the operations of messages and conversations.
func (r *Routes) chat() {
	op := func(id, path, summary string) api.Op {
		return api.Op{
			ID: id, Method: "POST", Path: "/api/chat/" + path, Summary: summary, Tags: tags, Status: 200, Area: area, Limit: limit,
			Reads:  []string{"messages"},
			Errors: []int{429, 502},
		}
	}
	api.Handle(r.API, op("send-text", "send", "Send a text to a phone that wrote in the last 24 hours"),
		func(ctx context.Context, in *struct{ Body message.Text }) (*api.Body[accepted], error) {
			return r.send(ctx, in.Body.Draft)
		})
	api.Handle(r.API, op("send-image", "send-image", "Send an image by its URL to a phone that wrote in the last 24 hours"),
		func(ctx context.Context, in *struct{ Body message.Image }) (*api.Body[accepted], error) {
			return r.send(ctx, in.Body.Draft)
		})
	api.Handle(r.API, contactOp("list-messages", "GET", "/{id}/messages", "Read the conversation with a contact, newest first"),
		func(ctx context.Context, in *struct {
			ByContact
			Before string `query:"before" doc:"ID of a message; only messages before it"`
			Limit  int    `query:"limit" default:"50" minimum:"1" maximum:"200" doc:"Maximum number of records"`
		}) (*api.Body[[]messagingview.Message], error) {
			var before int64
			if in.Before != "" {
				var err error
				if before, err = message.Number("before", in.Before); err != nil {
					return nil, err
				}
			}
			workspace := api.Caller(ctx).Workspace
			if _, err := r.Views.Contact(ctx, api.At(ctx), workspace, in.ID); err != nil {
				return nil, err
			}
			rows, err := r.Views.Messages(ctx, api.At(ctx), workspace, in.ID, before, in.Limit)
			if err == nil {
				err = link(ctx, r.Files, rows)
			}
			return api.Answer(append([]messagingview.Message{}, rows...), err)
		})
	send := contactOp("send-message", "POST", "/{id}/messages", "Send a text, an image or a template to a contact")
	send.Errors = []int{409, 429, 502}
	api.Handle(r.API, send, func(ctx context.Context, in *struct {
		ByContact
		Body message.ToContact
	}) (*api.Body[messagingview.Message], error) {
		out, err := r.Messages.SendTo(ctx, api.Request(ctx), in.ID, in.Body, countSend(ctx))
		return api.Reply(ctx, out, err, func(out commands.Outcome[message.State]) messagingview.Message { return r.sent(ctx, out, in.Body) })
	})
	picture := contactOp("send-image-file", "POST", "/{id}/images",
		"Send a JPEG, PNG or WebP file to a contact. Bahi re-encodes the image without its metadata.")
	picture.Errors, picture.MaxBody, picture.EmptyFile, picture.Expensive, picture.Untried = []int{400, 409, 429, 502}, MaxPicture,
		errNotPicture, true, true
	picture.Texts = []api.Text{{Name: "channelId", Integer: true, Required: true, Doc: "ID of the channel"}, {Name: "caption",
		Doc: "Caption of the picture, at most 1024 characters"}}
	api.Handle(r.API, picture, func(ctx context.Context, in *struct {
		ByContact
		File api.File
	}) (*api.Body[messagingview.Message], error) {
		drawn, err := r.Draw(ctx, in.File.Open())
		if err != nil {
			return nil, err
		}
		channel, _ := strconv.ParseInt(in.File.Texts["channelId"], 10, 64) // 0 is the id of no channel
		b := message.ToContact{ChannelID: channel, Caption: in.File.Texts["caption"], Picture: drawn}
		out, err := r.Messages.SendTo(ctx, api.Request(ctx), in.ID, b, countSend(ctx))
		return api.Reply(ctx, out, err, func(out commands.Outcome[message.State]) messagingview.Message { return r.sent(ctx, out, b) })
	})
	read := contactOp("mark-read", "POST", "/{id}/read",
		"Mark the conversation with a contact as read. Without a message id, Bahi marks the whole conversation.")
	read.Status = 200
	api.Handle(r.API, read, func(ctx context.Context, in *struct {
		ByContact
		Body struct {
			MessageID string `json:"messageId,omitempty" doc:"ID of the last read message; absent: the newest"`
		}
	}) (*api.Body[unread], error) {
		workspace := api.Caller(ctx).Workspace
		if _, err := r.Views.Contact(ctx, api.At(ctx), workspace, in.ID); err != nil {
			return nil, err
		}
		var upTo int64
		if in.Body.MessageID != "" {
			var err error
			if upTo, err = message.Number("messageId", in.Body.MessageID); err != nil {
				return nil, err
			}
		}
		out, err := r.Messages.Read(ctx, api.Request(ctx), in.ID, upTo)
		if err != nil {
			return nil, err
		}
		c, err := r.Views.Contact(ctx, api.At(ctx).After(out.Position), workspace, in.ID)
		return api.Reply(ctx, out, err, func(commands.Outcome[message.State]) unread { return unread{c.Unread} })
	})
}

// MaxPicture is the maximum size of a picture to send, in bytes (CONTRACT.md N11).
const MaxPicture = 16 << 20

// errNotPicture reports a file that is not a picture.
var errNotPicture = fault.New(fault.Malformed, "File must be an image")

// unread is the number of unread messages of a contact.
type unread struct {
	Unread int64 `json:"unread" doc:"Number of unread messages of the contact"`
}

// fileLink is the lifetime of a link to a file.
const fileLink = time.Hour

// link adds links to stored files.
func link(ctx context.Context, files Files, rows []messagingview.Message) error {
	for i := range rows {
		if rows[i].File == nil {
			continue
		}
		link, err := files.URL(ctx, *rows[i].File, fileLink)
		if err != nil {
			return err
		}
		rows[i].MediaURL = &link
	}
	return nil
}

// sent returns the row of a sent message. If the tables lag, it returns the values of the command.
func (r *Routes) sent(ctx context.Context, out commands.Outcome[message.State], b message.ToContact) messagingview.Message {
	id := out.Number()
	row, err := r.Views.Message(ctx, api.At(ctx).After(out.Position), api.Caller(ctx).Workspace, id)
	if err == nil {
		rows := []messagingview.Message{row}
		if link(ctx, r.Files, rows) == nil { // otherwise the response has the stored link, which is valid for some days
			row = rows[0]
		}
		return row
	}
	d, _ := b.Draft()
	row = messagingview.Message{
		ID: message.Name(out.ID), Direction: "out", ChannelID: b.ChannelID, Type: "text", Text: orNull(d.Text), MediaURL: orNull(d.Image),
		Status: out.State.Status, At: out.CreatedAt,
		By: strings.Replace(api.Caller(ctx).String(), "api_key:", "key:", 1),
	}
	switch {
	case d.Template != 0:
		row.Type = "template"
	case d.Image != "", d.Picture != nil:
		row.Type = "image"
	}
	return row
}

// countSend returns a function that counts a send for the rate limit of a channel.
func countSend(ctx context.Context) func(channel int64) error {
	return func(channel int64) error { return api.CountFor(ctx, "chat_send", strconv.FormatInt(channel, 10)) }
}

// send sends a valid message.
func (r *Routes) send(ctx context.Context, draft func() (message.Draft, error)) (*api.Body[accepted], error) {
	d, err := draft()
	if err != nil {
		return nil, err
	}
	out, err := r.Messages.Send(ctx, api.Request(ctx), d, countSend(ctx))
	return api.Reply(ctx, out, err, func(commands.Outcome[message.State]) accepted {
		return accepted{MessageID: message.Name(out.ID), ProviderMessageID: cmp.Or(out.State.ProviderID, out.State.NetworkID),
			Status: "accepted", To: d.To, ChannelID: d.Channel}
	})
}
