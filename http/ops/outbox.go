package ops

import (
	"context"
	"time"

	"bahi/http/api"
)

// Captured is what an embedded provider keeps instead of sending it.
type Captured interface {
	// Captured returns messages, newest first, without the newest skip of them and at most limit, and how
	// many there are.
	Captured(ctx context.Context, skip, limit int) ([]Message, int, error)
}

// Message is a message that was kept.
type Message struct {
	ID      string    `json:"id"`
	Time    time.Time `json:"time" doc:"When it would have been sent"`
	To      string    `json:"to"`
	Subject string    `json:"subject"`
	Text    string    `json:"text"`
}

// Outbox registers what the embedded providers keep. It is people's mail, with links that open their
// accounts.
func (r *Routes) Outbox() {
	type page = struct {
		Total int `header:"X-Total-Count"`
		Body  []Message
	}
	api.Handle(r.API, api.Op{
		ID: "list-outbox", Method: "GET", Path: "/ops/outbox", Summary: "List messages that were kept because no provider is configured",
		Tags: tags, Operator: true, StrictQuery: true,
	}, func(ctx context.Context, in *struct {
		Port     string `query:"port" required:"true" enum:"mail,chat,crm"`
		Page     int    `query:"page" default:"1" minimum:"1" maximum:"1000000000" doc:"From 1"`
		PageSize int    `query:"page_size" default:"50" minimum:"1" maximum:"1000" doc:"Messages of a page"`
	}) (*page, error) {
		from, kept := r.Captured[in.Port]
		if !kept {
			return &page{Body: []Message{}}, nil
		}
		messages, total, err := from.Captured(ctx, (in.Page-1)*in.PageSize, in.PageSize)
		if err != nil {
			return nil, err
		}
		return &page{Total: total, Body: messages}, nil
	})
}
