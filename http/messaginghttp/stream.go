package messaginghttp

import (
	"context"
	"strconv"

	"bahi/domain/event"
	"bahi/http/api"
	"bahi/readmodels"
	"bahi/readmodels/messagingview"
)

// liveMessage is a new message.
type liveMessage struct {
	messagingview.Message

	ContactID int64 `json:"contactId" doc:"ID of the contact"`
}

// liveStatus is a changed message.
type liveStatus liveMessage

// Stream registers the live stream of a workspace's messages.
func (r *Routes) Stream() {
	api.Stream(r.API, api.Op{
		ID: "follow-messages", Method: "GET", Path: "/api/messages/stream",
		Summary: "Stream the messages of the workspace and their statuses. Last-Event-ID resumes the stream.",
		Tags:    tags, Area: area, Limit: limit,
	}, map[string]any{"message": liveMessage{}, "status": liveStatus{}}, func(ctx context.Context, in *struct {
		Last string `header:"Last-Event-ID" doc:"ID of the last received event; absent: only new events"`
	}) (api.Source, error) {
		head, err := r.Live.log.Head(ctx)
		if err != nil {
			return nil, err
		}
		after := head
		if in.Last != "" {
			n, err := strconv.ParseUint(in.Last, 10, 63)
			if err != nil {
				return nil, errLastEvent
			}
			if after = event.Position(n); after > head {
				return nil, readmodels.ErrBeyondHead
			}
		}
		workspace := api.Caller(ctx).Workspace
		return func(ctx context.Context, send func(api.Event) error) error {
			return r.Live.follow(ctx, workspace, after, func(parts []part) error {
				texts := make([][]byte, len(parts))
				for i, p := range parts {
					texts[i] = p.encoded()
				}
				return send(api.Event{Encoded: texts})
			})
		}, nil
	})
}
