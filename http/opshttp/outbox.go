package opshttp

import (
	"context"
	"time"

	"github.com/google/uuid"

	"bahi/http/api"
)

// Captured is an embedded provider that stores messages instead of sending them.
// It returns at most limit messages, newest first, after the first skip, and the number of all messages.
type Captured func(ctx context.Context, skip, limit int) ([]Message, int, error)

// Message is a stored message.
type Message struct {
	ID      string    `json:"id" doc:"ID of the message"`
	Time    time.Time `json:"time" doc:"When the message would have been sent"`
	To      string    `json:"to" doc:"Recipient"`
	Subject string    `json:"subject" doc:"Subject"`
	Text    string    `json:"text" doc:"Text"`
	At      time.Time `json:"at" doc:"Same as time"`
	Status  string    `json:"status" doc:"kept: no provider is configured; sent, failed, unknown: result of the provider"`
	Error   *string   `json:"error,omitempty" doc:"Reason why the message failed or was not sent"`
	Draft   *int64    `json:"draft_id,omitempty" doc:"Number of the order draft that the message confirms"`

	Enquiry *uuid.UUID `json:"enquiry_id,omitempty" doc:"ID of the enquiry that the message announces"`
}

// outbox registers the reading of stored messages. They are users' mails with links that open accounts, so only operators may read them.
func (r *Routes) outbox() {
	type page = struct {
		Total int `header:"X-Total-Count"`
		Body  []Message
	}
	api.Handle(r.API, api.Op{
		ID: "list-outbox", Method: "GET", Path: "/ops/outbox",
		Summary: "List the stored messages of ports without a provider. Includes replies to order drafts.",
		Tags:    tags, Operator: true, StrictQuery: true,
	}, func(ctx context.Context, in *struct {
		Port     string `query:"port" required:"true" enum:"mail,chat,crm,gateway" doc:"Port, such as mail"`
		Page     int    `query:"page" default:"1" minimum:"1" maximum:"1000000000" doc:"From 1"`
		PageSize int    `query:"page_size" default:"50" minimum:"1" maximum:"1000" doc:"Messages per page"`
	}) (*page, error) {
		from, kept := r.Captured[in.Port]
		if !kept {
			return &page{Body: []Message{}}, nil
		}
		messages, total, err := from(ctx, (in.Page-1)*in.PageSize, in.PageSize)
		if err != nil {
			return nil, err
		}
		return &page{Total: total, Body: messages}, nil
	})
}
