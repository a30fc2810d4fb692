package messaging

import (
	"context"
	"strconv"
	"strings"

	"bahi/commands"
	"bahi/domain/fault"
	"bahi/domain/messaging/message"
	"bahi/domain/person"
	"bahi/http/api"
	views "bahi/readmodels/messaging"
)

// Accepted is the answer to a message that the network took.
type Accepted struct {
	MessageID         string `json:"messageId"`
	ProviderMessageID string `json:"providerMessageId"`
	Status            string `json:"status" enum:"accepted"`
	To                string `json:"to"`
	ChannelID         int64  `json:"channelId"`
}

// Chat registers what sends messages, and shows conversations.
func (r *Routes) Chat() {
	op := func(id, path, summary string) api.Op {
		return api.Op{
			ID: id, Method: "POST", Path: "/api/chat/" + path, Summary: summary, Tags: tags, Status: 200, Area: area, Limit: limit, Reads: []string{"messages"},
			Errors: []int{429, 502},
		}
	}
	api.Handle(r.API, op("send-text", "send", "Send a text to a phone that wrote in the last 24 hours"),
		func(ctx context.Context, in *struct{ Body message.Text }) (*api.Body[Accepted], error) {
			return r.send(ctx, in.Body.Draft)
		})
	api.Handle(r.API, op("send-image", "send-image", "Send an image, by its URL, to a phone that wrote in the last 24 hours"),
		func(ctx context.Context, in *struct{ Body message.Image }) (*api.Body[Accepted], error) {
			return r.send(ctx, in.Body.Draft)
		})
	api.Handle(r.API, contactOp("list-messages", "GET", "/{id}/messages", "Read the conversation with a contact, newest first"),
		func(ctx context.Context, in *struct {
			ByContact
			Before string `query:"before" doc:"Id of a message: those before it"`
			Limit  int    `query:"limit" default:"50" minimum:"1" maximum:"200"`
		}) (*api.Body[[]views.Message], error) {
			var before int64
			if in.Before != "" {
				number, found := strings.CutPrefix(in.Before, message.Name(""))
				parsed, err := strconv.ParseInt(number, 10, 64)
				if before = parsed; !found || err != nil || before < 1 {
					return nil, fault.Fields(fault.Field{Field: "before", Message: "expected the id of a message, as in msg_8121"})
				}
			}
			workspace := api.Caller(ctx).Workspace
			if _, err := r.Views.Contact(ctx, workspace, in.ID); err != nil {
				return nil, err
			}
			rows, err := r.Views.Messages(ctx, workspace, in.ID, before, in.Limit)
			return api.Answer(append([]views.Message{}, rows...), err)
		})
}

// send sends a message that is in order.
func (r *Routes) send(ctx context.Context, draft func() (message.Draft, error)) (*api.Body[Accepted], error) {
	d, err := draft()
	if err != nil {
		return nil, err
	}
	out, err := r.Messages.Send(ctx, api.Request(ctx), d, func(channel int64) error {
		return api.CountFor(ctx, "chat_send", strconv.FormatInt(channel, 10))
	})
	return api.Reply(ctx, out, err, func(commands.Outcome[message.State]) Accepted {
		to, _ := person.Dialled("to", d.To) // it was sent there
		return Accepted{MessageID: message.Name(out.ID), ProviderMessageID: out.State.ProviderID, Status: "accepted", To: to, ChannelID: d.Channel}
	})
}
