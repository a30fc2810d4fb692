package opsview

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/fault"
)

// ErrNoWebhook is the refusal of an unknown call.
var ErrNoWebhook = fault.New(fault.NotFound, "Webhook call not found")

// Webhook is a call of a provider in responses.
type Webhook struct {
	ID         uuid.UUID  `json:"id"`
	Endpoint   string     `json:"endpoint" doc:"After a slash, the channel that the call is about"`
	ReceivedAt time.Time  `json:"received_at"`
	Verdict    string     `json:"verdict" enum:"waiting,handled,ignored,parked"`
	Effect     *string    `json:"effect" doc:"What has followed from the call"`
	Error      *string    `json:"error" doc:"Error of the last attempt, truncated; of a call that had an effect all the same, the parts that could not be handled, with their places"`
	Reason     *string    `json:"reason" doc:"Why the call was ignored, if that is known: group"`
	SettledAt  *time.Time `json:"settled_at" doc:"When the verdict was given"`
	HasBody    bool       `json:"has_body" doc:"Whether the body is still kept"`
	Attempts   int        `json:"attempts" doc:"How often it was tried"`
	DueAt      *time.Time `json:"due_at" doc:"When a waiting call is tried next"`
}

// WebhookSelection selects calls.
type WebhookSelection struct {
	Endpoint, Verdict string // "": all
	Page              int    // from 1
	PageSize          int
}

var webhookColumns = fmt.Sprintf(`select id, endpoint, received_at, verdict, effect, case when verdict <> 'ignored' then left(error,
	%d) end,
	case when verdict = 'ignored' then error end, settled_at, body is not null, attempts, due_at from inbox.call`, maxError)

// Webhooks returns a page of the calls of providers, newest first, and the number of calls on all pages.
func (j *Jobs) Webhooks(ctx context.Context, sel WebhookSelection) (page []Webhook, total int64, err error) {
	const where = ` where ($1 = '' or split_part(endpoint, '/', 1) = $1 or endpoint = $1) and ($2 = '' or verdict = $2)`
	err = pgx.BeginTxFunc(ctx, j.DB, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, `select count(*) from inbox.call`+where, sel.Endpoint, sel.Verdict).Scan(&total); err != nil {
			return err
		}
		rows, _ := tx.Query(ctx, webhookColumns+where+` order by received_at desc, id desc limit $3 offset $4`,
			sel.Endpoint, sel.Verdict, sel.PageSize, int64(sel.Page-1)*int64(sel.PageSize))
		page, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Webhook])
		return err
	})
	if err != nil {
		return nil, 0, fmt.Errorf("list calls of webhooks: %w", err)
	}
	return page, total, nil
}

// Webhook returns one call, or [ErrNoWebhook].
func (j *Jobs) Webhook(ctx context.Context, id uuid.UUID) (Webhook, error) {
	rows, _ := j.DB.Query(ctx, webhookColumns+` where id = $1`, id)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Webhook])
	switch {
	case err != nil:
		return Webhook{}, fmt.Errorf("read call %s: %w", id, err)
	case len(found) == 0:
		return Webhook{}, ErrNoWebhook
	default:
		return found[0], nil
	}
}
