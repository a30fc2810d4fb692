package ledger

import (
	"context"
	"encoding/json"
	"math"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/ledger/orderdraft"
	"bahi/readmodels"
)

// OrderDraft is an order that came by chat and waits for its review.
type OrderDraft struct {
	ID        int64              `json:"id"`
	CreatedAt string             `json:"created_at" doc:"In the workshop's time zone, without zone"`
	Phone     *string            `json:"phone_number" doc:"null: erased"`
	Raw       *string            `json:"raw_message" doc:"As it was written; null: erased"`
	Media     *DraftMedia        `json:"media" doc:"What the message refers to"`
	Cut       bool               `json:"cut" doc:"The message has more entries than a draft"`
	Entries   []orderdraft.Entry `json:"entries" nullable:"false"`
	Revision  int64              `json:"revision" doc:"For If-Match"`
}

// DraftMedia is the file of a message.
type DraftMedia struct {
	URL         string `json:"url,omitempty"`
	ID          string `json:"id,omitempty" doc:"By which the gateway gives a URL"`
	ContentType string `json:"content_type,omitempty"`
}

const draftsSQL = `
	select d.id, d.created_at, d.phone_number, d.raw_message, d.media, d.cut, d.entries, d.revision from order_drafts.order_draft d
	where d.workspace_id = $1`

// draftIn returns the scanner of drafts for a time zone.
func draftIn(zone *time.Location) pgx.RowToFunc[OrderDraft] {
	return func(row pgx.CollectableRow) (d OrderDraft, err error) {
		var (
			at      time.Time
			media   *string
			entries string
		)
		if err := row.Scan(&d.ID, &at, &d.Phone, &d.Raw, &media, &d.Cut, &entries, &d.Revision); err != nil {
			return d, err
		}
		d.CreatedAt = at.In(zone).Format("2006-01-02T15:04:05")
		if d.Phone != nil {
			d.Phone = new("+" + *d.Phone)
		}
		if media != nil {
			if err := json.Unmarshal([]byte(*media), &d.Media); err != nil {
				return d, err
			}
		}
		return d, json.Unmarshal([]byte(entries), &d.Entries)
	}
}

// OrderDraft reads a draft of a workspace, or returns [orderdraft.ErrNotFound].
func (v *Views) OrderDraft(ctx context.Context, workspace uuid.UUID, zone *time.Location, id int64) (OrderDraft, error) {
	return readmodels.Row(ctx, v.Reader, orderdraft.ErrNotFound, draftIn(zone), draftsSQL+` and d.id = $2`, workspace, id)
}

// OrderDrafts lists a page of a workspace's drafts, by id.
func (v *Views) OrderDrafts(ctx context.Context, workspace uuid.UUID, zone *time.Location, page readmodels.Page) ([]OrderDraft, int64, error) {
	if page.Size == 0 {
		page.Size = math.MaxInt32
	}
	return readmodels.Paged(ctx, v.Reader, page, draftIn(zone), `id`, draftsSQL, workspace)
}

// DraftReply is a confirmation of a draft.
type DraftReply struct {
	Draft        int64
	Phone        *string // nil: erased
	Text, Status string
	At           time.Time
	Total        int64 // of all replies
}

// DraftReplies returns replies of all workspaces, newest first, after the first skip, and their number. They are for operators.
func (v *Views) DraftReplies(ctx context.Context, skip, limit int) ([]DraftReply, int64, error) {
	replies, err := readmodels.Rows(ctx, v.Reader, pgx.RowToStructByPos[DraftReply], `
		select r.draft_id, r.phone_number, r.text, r.status, r.at, count(*) over () from order_drafts.order_draft_reply r
		where r.at is not null order by r.at desc, r.draft_id desc limit $1 offset $2`, int64(limit), int64(skip))
	if err != nil || len(replies) == 0 {
		return nil, 0, err
	}
	return replies, replies[0].Total, nil
}

// HasSender reports whether a sender has written to a workspace of the deployment. The sender is a keyed hash.
func (v *Views) HasSender(ctx context.Context, sender string) (bool, error) {
	return readmodels.Row(ctx, v.Reader, nil, pgx.RowTo[bool], `select exists (select from order_drafts.order_draft_reply r where r.sender = $1)`, sender)
}
