package opshttp

import (
	"context"
	"encoding/base64"
	"net/http"
	"unicode/utf8"

	"github.com/google/uuid"

	"bahi/http/api"
	"bahi/readmodels/opsview"
)

// inbox has the calls of providers. Its errors are refusals.
type inbox interface {
	// Body returns a call's body, nil if it was removed.
	Body(ctx context.Context, id uuid.UUID) ([]byte, error)
	// Replay queues a call again if it is parked, had no effect, or waits after a failure.
	Replay(ctx context.Context, id uuid.UUID) error
}

// byWebhook identifies a call.
type byWebhook struct {
	ID uuid.UUID `path:"webhook_id" doc:"The call's id"`
}

// WebhookBody is a call with its body.
type WebhookBody struct {
	opsview.Webhook

	Body       *string `json:"body" doc:"Received body; null if it was removed or is not UTF-8"`
	BodyBase64 *string `json:"body_base64" doc:"Received body in base64 if it is not UTF-8"`
}

// Webhooks registers the operations on the webhook calls of providers.
func (r *Routes) Webhooks() {
	type page = struct {
		Total int64 `header:"X-Total-Count"`
		Body  []opsview.Webhook
	}
	api.Handle(r.API, api.Op{
		ID: "list-webhooks", Method: "GET", Path: "/ops/webhooks", Summary: "List the webhook calls of providers with their results",
		Tags: tags, Operator: true, StrictQuery: true,
	}, func(ctx context.Context, in *struct {
		Endpoint string `query:"endpoint" maxLength:"128" doc:"Only this endpoint"`
		Verdict  string `query:"verdict" enum:"waiting,handled,ignored,parked" doc:"Only this result"`
		Page     int    `query:"page" default:"1" minimum:"1" maximum:"1000000000" doc:"From 1"`
		PageSize int    `query:"page_size" default:"50" minimum:"1" maximum:"1000" doc:"Calls per page"`
	}) (*page, error) {
		calls, total, err := r.Views.Webhooks(ctx,
			opsview.WebhookSelection{Endpoint: in.Endpoint, Verdict: in.Verdict, Page: in.Page, PageSize: in.PageSize})
		if err != nil {
			return nil, err
		}
		return &page{total, calls}, nil
	})
	api.Handle(r.API, api.Op{
		ID: "get-webhook", Method: "GET", Path: "/ops/webhooks/{webhook_id}", Summary: "Read a webhook call with its body",
		Tags: tags, Operator: true,
	}, func(ctx context.Context, in *byWebhook) (*api.Body[WebhookBody], error) {
		call, err := r.Views.Webhook(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		body, err := r.Inbox.Body(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		out := WebhookBody{Webhook: call}
		switch {
		case body == nil:
		case utf8.Valid(body):
			out.Body = new(string(body))
		default:
			out.BodyBase64 = new(base64.StdEncoding.EncodeToString(body))
		}
		return api.Answer(out, nil)
	})
	api.Handle(r.API, api.Op{
		ID: "replay-webhook", Method: "POST", Path: "/ops/webhooks/{webhook_id}/replay",
		Summary: "Replay a parked, ignored or failed webhook call",
		Tags:    tags, Operator: true, Status: http.StatusAccepted, NoKey: true,
	}, func(ctx context.Context, in *byWebhook) (*api.Body[opsview.Webhook], error) {
		if err := r.Inbox.Replay(ctx, in.ID); err != nil {
			return nil, err
		}
		return api.Answer(r.Views.Webhook(ctx, in.ID))
	})
}
