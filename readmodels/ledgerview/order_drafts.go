package ledgerview

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/ledger/orderdraft"
	"bahi/domain/unit"
	"bahi/domain/wording"
	"bahi/readmodels"
)

// OrderDraft is an order from a chat message that is not reviewed yet.
type OrderDraft struct {
	ID        int64   `json:"id" doc:"ID of the draft"`
	CreatedAt string  `json:"created_at" doc:"Time of the message in the workshop's time zone, without zone"`
	Phone     *string `json:"phone_number" doc:"Phone number, or the text of an unreadable one; null: none, or erased"`
	Raw       *string `json:"raw_message" doc:"Text of the message; null: erased"`
	orderdraft.Details
	Media    *DraftMedia  `json:"media" doc:"Attachment of the message"`
	Warnings []string     `json:"warnings" nullable:"false" doc:"Unused parts of the message, and an unreadable phone_number"`
	Cut      bool         `json:"cut" doc:"The message has more entries than a draft"`
	Entries  []DraftEntry `json:"entries" nullable:"false" doc:"Entries"`
	Revision int64        `json:"revision" doc:"Revision for If-Match"`
}

// DraftEntry is one item of a draft.
type DraftEntry struct {
	ID         int64                 `json:"id" doc:"ID of the entry"`
	Item       *string               `json:"item_name" doc:"Name of the item; null: erased"`
	Weight     *unit.Grams           `json:"weight" doc:"Weight in grams"`
	Quantity   *int64                `json:"quantity" doc:"Number of pieces"`
	ClientID   *int64                `json:"client_id" doc:"ID of the client"`
	Client     *string               `json:"client_name" doc:"Client's name as written; with client_id, the name of the client's account"`
	Slip       *string               `json:"slip_number" doc:"Number of the slip"`
	Parser     string                `json:"parser" enum:"model,rules,staff" doc:"Parser of the entry"`
	Confidence unit.Share            `json:"confidence" doc:"Confidence of the parser, from 0 to 1"`
	Proposals  []orderdraft.Proposal `json:"client_proposals" nullable:"false" doc:"Clients with names similar to client_name, most similar first"`
}

// DraftEntryAfter returns an entry after a command, with its personal values decrypted.
func DraftEntryAfter(e orderdraft.Entry) DraftEntry {
	return DraftEntry{e.ID, e.Item.Shown(), e.Weight, e.Quantity, e.ClientID, e.Client.Shown(), e.Slip, e.Parser, e.Confidence, e.Proposals}
}

// DraftMedia is the file of a message.
type DraftMedia struct {
	URL         string `json:"url,omitempty" doc:"URL of the file"`
	ID          string `json:"id,omitempty" doc:"ID for requesting the URL from the gateway"`
	ContentType string `json:"content_type,omitempty" doc:"Media type"`
}

const draftsSQL = `
	select d.id, d.created_at, d.phone_number, d.phone_text, d.raw_message, d.media, coalesce(d.warnings, '[]'), d.cut,
		json_build_object('client_id', d.client_id, 'date', d.date, 'delivery_date', d.delivery_date, 'notes', d.notes)::text as details,
		(select coalesce(json_agg(json_build_object('id', e.id, 'item_name', e.item_name, 'weight', trim_scale(e.weight_mg / 1000.0), 'quantity',
			e.quantity,
			'client_id', e.client_id, 'client_name', e.client_name, 'slip_number', e.slip_number, 'parser', e.parser,
			'confidence', trim_scale(e.confidence / 100000.0), 'client_proposals', e.proposals::json) order by e.id), '[]')::text
			from order_drafts.order_draft_entry e where e.draft_id = d.id) as entries,
		d.revision
	from order_drafts.order_draft d where d.workspace_id = @workspace`

// draftIn returns the scanner of drafts for a time zone.
func draftIn(zone *time.Location) pgx.RowToFunc[OrderDraft] {
	return func(row pgx.CollectableRow) (d OrderDraft, err error) {
		var (
			at                                        time.Time
			unread, media, warnings, details, entries *string
		)
		if err := row.Scan(&d.ID, &at, &d.Phone, &unread, &d.Raw, &media, &warnings, &d.Cut, &details, &entries, &d.Revision); err != nil {
			return d, err
		}
		err = errors.Join(decode(media, &d.Media), decode(warnings, &d.Warnings), decode(details, &d.Details), decode(entries, &d.Entries))
		d.complete(at, zone, unread)
		return d, err
	}
}

// complete formats the draft's time and phone number for the response. unread is an unreadable number.
func (d *OrderDraft) complete(at time.Time, zone *time.Location, unread *string) {
	d.CreatedAt = at.In(zone).Format("2006-01-02T15:04:05")
	if d.Phone != nil {
		d.Phone = new("+" + *d.Phone)
	}
	if unread != nil {
		d.Phone, d.Warnings = unread, append(d.Warnings, fmt.Sprintf("phone_number %q %s", *unread, wording.UnreadPhone))
	}
}

// DraftAfter returns a draft after a command, with its personal values decrypted.
func DraftAfter(id int64, s orderdraft.State, at time.Time, zone *time.Location, revision int64) OrderDraft {
	d := OrderDraft{
		ID: id, Phone: s.Phone.Shown(), Raw: s.Raw.Shown(), Details: s.Details, Cut: s.Cut, Warnings: []string{},
		Entries: make([]DraftEntry, len(s.Entries)), Revision: revision,
	}
	for i, entry := range s.Entries {
		d.Entries[i] = DraftEntryAfter(entry)
	}
	_ = errors.Join(decode(s.Media.Shown(), &d.Media), decode(s.Unused.Shown(), &d.Warnings)) // they were encoded by the domain
	d.complete(at, zone, s.PhoneText.Shown())
	return d
}

func decode(text *string, into any) error {
	if text == nil {
		return nil
	}
	return json.Unmarshal([]byte(*text), into)
}

// OrderDraft reads a draft of a workspace, or returns [orderdraft.ErrNotFound].
func (v *Views) OrderDraft(ctx context.Context, at *readmodels.At, workspace uuid.UUID, zone *time.Location, id int64) (OrderDraft, error) {
	return readmodels.Row(ctx, v.Reader.From(at, "order_drafts"), orderdraft.ErrNotFound, draftIn(zone), draftsSQL+` and d.id = @id`,
		pgx.NamedArgs{"workspace": workspace, "id": id})
}

// DraftFilter selects drafts. Absent fields select all.
type DraftFilter struct {
	Slip string `query:"slip_number" maxLength:"40" doc:"Only drafts with this slip number in an entry; case does not matter"`
}

// OrderDrafts lists a page of a workspace's drafts, by id.
func (v *Views) OrderDrafts(
	ctx context.Context, at *readmodels.At, workspace uuid.UUID, zone *time.Location, page readmodels.Page, f DraftFilter,
) ([]OrderDraft, int64, error) {
	l := readmodels.List[OrderDraft]{
		As: draftIn(zone), SQL: draftsSQL, Order: `id`, Args: pgx.NamedArgs{"workspace": workspace, "slip": strings.TrimSpace(f.Slip)},
	}
	if f.Slip != "" {
		l.SQL += ` and d.id in (
			select e.draft_id from order_drafts.order_draft_entry e where e.workspace_id = @workspace and lower(e.slip_number) = lower(@slip))`
	}
	return l.Page(ctx, v.Reader.From(at, "order_drafts"), page)
}

// Clients returns the clients of a workspace.
func (v *Views) Clients(ctx context.Context, workspace uuid.UUID) ([]orderdraft.Client, error) {
	return readmodels.Rows(ctx, v.Reader.From(nil, "orders"), pgx.RowToStructByPos[orderdraft.Client], `
		select a.id, a.name from orders.account a where a.workspace_id = $1 and a.ledger = 'client' and a.deleted_position is null
			order by a.id`, workspace)
}

// HighestSlip returns the greatest numeric slip number (CONTRACT.md I11) of all orders and of all drafts except one, or 0 if there is none.
func (v *Views) HighestSlip(ctx context.Context, workspace uuid.UUID, but int64) (int64, error) {
	return readmodels.Row(ctx, v.Reader.From(nil, "order_drafts", "orders"), orderdraft.ErrNotFound, pgx.RowTo[int64], `
		select greatest(
			(select max(case when o.slip_folded ~ '^[0-9]{1,9}$' then o.slip_folded::bigint end) from orders.client_order o
				where o.workspace_id = $1 and not o.deleted),
			(select max(case when e.slip_number ~ '^[0-9]{1,9}$' then e.slip_number::bigint end)
				from order_drafts.order_draft_entry e where e.workspace_id = $1 and e.draft_id <> $2),
			0)`, workspace, but)
}

// DraftReply is a confirmation of a draft.
type DraftReply struct {
	Draft        int64
	Phone        *string // nil: erased
	Text, Status string
	At           time.Time
	Total        int64 // number of all replies
}

// DraftReplies returns replies of all workspaces for operators, newest first, and their total number. It skips the first
// skip replies.
func (v *Views) DraftReplies(ctx context.Context, at *readmodels.At, skip, limit int) ([]DraftReply, int64, error) {
	replies, err := readmodels.Rows(ctx, v.Reader.From(at, "order_drafts"), pgx.RowToStructByPos[DraftReply], `
		select r.draft_id, r.phone_number, r.text, r.status, r.at, count(*) over () from order_drafts.order_draft_reply r
		where r.at is not null order by r.at desc, r.draft_id desc limit $1 offset $2`, int64(limit), int64(skip))
	if err != nil || len(replies) == 0 {
		return nil, 0, err
	}
	return replies, replies[0].Total, nil
}

// HasSender reports whether a sender has written to any workspace. The sender is a keyed hash.
func (v *Views) HasSender(ctx context.Context, at *readmodels.At, sender string) (bool, error) {
	return readmodels.Row(ctx, v.Reader.From(at, "order_drafts"), nil, pgx.RowTo[bool],
		`select exists (select from order_drafts.order_draft_reply r where r.sender = $1)`, sender)
}
