package opsview

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/fault"
)

// ErrNoWebhook reports an unknown webhook call.
var ErrNoWebhook = fault.New(fault.NotFound, "Webhook call not found")

// Webhook is a call of a provider in responses.
type Webhook struct {
	ID         uuid.UUID  `json:"id" doc:"ID of the call"`
	Endpoint   string     `json:"endpoint" doc:"Endpoint; after a slash, the channel of the call"`
	ReceivedAt time.Time  `json:"received_at" doc:"Time of receipt"`
	Verdict    string     `json:"verdict" enum:"waiting,handled,ignored,parked" doc:"Result of the call"`
	Effect     *string    `json:"effect" doc:"Effect of the call"`
	Error      *string    `json:"error" doc:"Error of the last attempt, truncated; after an effect, the parts that could not be handled"`
	Reason     *string    `json:"reason" doc:"Reason why the call was ignored, such as group; null: unknown"`
	SettledAt  *time.Time `json:"settled_at" doc:"Time of the final state"`
	HasBody    bool       `json:"has_body" doc:"true: the body is still stored"`
	Attempts   int        `json:"attempts" doc:"Number of attempts"`
	DueAt      *time.Time `json:"due_at" doc:"Time of the next attempt of a waiting call"`
}

// WebhookSelection selects calls.
type WebhookSelection struct {
	Endpoint, Verdict string // "": all
	Page              int    // from 1
	PageSize          int
}

var webhookColumns = fmt.Sprintf(`id, endpoint, received_at, verdict, effect, case when verdict <> 'ignored' then left(error,
	%d) end,
	case when verdict = 'ignored' then error end, settled_at, body is not null, attempts,
	case when verdict = 'waiting' then due_at end`, maxError)

// Webhooks returns a page of the calls of providers, newest first, and the number of calls on all pages.
func (j *Jobs) Webhooks(ctx context.Context, sel WebhookSelection) (page []Webhook, total int64, err error) {
	page, total, err = listed[Webhook](ctx, j.DB, webhookColumns, `from inbox.call
		where (@endpoint = '' or split_part(endpoint, '/', 1) = @endpoint or endpoint = @endpoint) and (@verdict = '' or verdict = @verdict)`,
		`received_at desc, id desc`, pgx.NamedArgs{
			"endpoint": sel.Endpoint, "verdict": sel.Verdict, "limit": sel.PageSize, "skip": int64(sel.Page-1) * int64(sel.PageSize),
		})
	if err != nil {
		return nil, 0, fmt.Errorf("list calls of webhooks: %w", err)
	}
	return page, total, nil
}

// Webhook returns one call, or [ErrNoWebhook].
func (j *Jobs) Webhook(ctx context.Context, id uuid.UUID) (Webhook, error) {
	rows, _ := j.DB.Query(ctx, `select `+webhookColumns+` from inbox.call where id = $1`, id)
	return only[Webhook](rows, ErrNoWebhook)
}
