package opshttp

import (
	"context"
	"strconv"

	"bahi/commands"
	"bahi/domain/messaging/channel"
	"bahi/http/api"
	"bahi/http/messaginghttp"
	"bahi/readmodels/messagingview"
)

// channels sets the senders of channels.
type channels interface {
	Confirm(ctx context.Context, req commands.Request, id string) (commands.Outcome[channel.State], error)
}

// senders registers the operation that assigns a sender to a channel.
func (r *Routes) senders() {
	api.Handle(r.API, api.Op{
		ID: "confirm-channel", Method: "POST", Path: "/ops/channels/{channel_id}/confirm", Tags: tags, Operator: true, Status: 200,
		Summary: "Confirm the sender of a channel. Bahi then delivers the stored calls of this sender.",
	}, func(ctx context.Context, in *struct {
		ID int64 `path:"channel_id" minimum:"1" doc:"The channel's id, of any workspace"`
	}) (*api.Tagged[messagingview.Channel], error) {
		out, err := r.Networks.Confirm(ctx, api.Request(ctx), strconv.FormatInt(in.ID, 10))
		return api.WriteResult(ctx, out, err, messaginghttp.ShownChannel)
	})
}
