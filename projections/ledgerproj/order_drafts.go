package ledgerproj

import (
	_ "embed"
	"encoding/json"
	"fmt"

	"bahi/domain/event"
	"bahi/domain/ledger/orderdraft"
	"bahi/domain/patch"
	"bahi/domain/unit"
	"bahi/projections"
)

//go:embed order_drafts.sql
var orderDraftsDDL string

// OrderDrafts has the open drafts and the replies to their senders.
var OrderDrafts = projections.Define("order_drafts", 7, orderDraftsDDL,
	projections.On(func(b *projections.Batch, e event.Recorded[orderdraft.Received]) {
		b.Exec(`
			insert into order_draft (id, workspace_id, sender, phone_number, raw_message, media, warnings, cut, created_at, revision)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
			e.StreamID(), e.Meta.Workspace, e.Data.Sender, e.Data.Phone, e.Data.Raw, e.Data.Media, e.Data.Unused, e.Data.Cut, e.At, e.Revision)
		b.Exec(`insert into order_draft_reply (draft_id, workspace_id, sender, phone_number) values ($1, $2, $3, $4)`,
			e.StreamID(), e.Meta.Workspace, e.Data.Sender, e.Data.Phone)
		for _, entry := range e.Data.Entries {
			insertEntry(b, e.StreamID(), e.Meta, entry)
		}
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[orderdraft.Replied]) {
		b.Exec(`update order_draft_reply set text = $2, status = $3, at = $4 where draft_id = $1`, e.StreamID(), e.Data.Text, e.Data.Status, e.At)
		revise(b, e)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[orderdraft.Edited]) {
		b.Set("order_draft", e.StreamID(), "client_id", e.Data.Client, "date", dated(e.Data.Date), "delivery_date", dated(e.Data.Delivery),
			"notes", e.Data.Notes, "phone_number", e.Data.Phone)
		if e.Data.Phone.Present() {
			b.Set("order_draft", e.StreamID(), "phone_text", e.Data.PhoneText)
		}
		if e.Data.Client.State == patch.Given {
			b.Exec(`update order_draft_entry set client_id = $2, client_name = $3 where draft_id = $1 and client_id is null`,
				e.StreamID(), e.Data.Client.Value, e.Data.ClientName)
		}
		revise(b, e)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[orderdraft.EntryAdded]) {
		insertEntry(b, e.StreamID(), e.Meta, e.Data.Entry)
		revise(b, e)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[orderdraft.EntryEdited]) {
		b.Set("order_draft_entry", fmt.Sprint(e.Data.ID), "item_name", e.Data.Item, "weight_mg", e.Data.Weight, "quantity", e.Data.Quantity,
			"client_id", e.Data.ClientID, "client_name", e.Data.Client, "slip_number", e.Data.Slip)
		revise(b, e)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[orderdraft.EntryDeleted]) {
		b.Exec(`delete from order_draft_entry where id = $1`, e.Data.ID)
		revise(b, e)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[orderdraft.SlipsAssigned]) {
		for _, a := range e.Data.Slips {
			b.Exec(`update order_draft_entry set slip_number = $2 where id = $1`, a.ID, a.Slip)
		}
		revise(b, e)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[orderdraft.Converted]) { endDraft(b, e.StreamID()) }),
	projections.On(func(b *projections.Batch, e event.Recorded[orderdraft.Deleted]) { endDraft(b, e.StreamID()) }),
	projections.On(func(b *projections.Batch, e event.Recorded[orderdraft.SenderErased]) {
		b.Exec(`update order_draft_entry set item_name = null, client_name = null where draft_id in (select id from order_draft
			where sender = $1)`, e.StreamID())
		b.Exec(`update order_draft set phone_number = null, phone_text = null, raw_message = null, media = null, warnings = null
			where sender = $1`, e.StreamID())
		b.Exec(`update order_draft_reply set phone_number = null where sender = $1`, e.StreamID())
	}),
)

func endDraft(b *projections.Batch, id string) {
	b.Exec(`delete from order_draft_entry where draft_id = $1`, id)
	b.Exec(`delete from order_draft where id = $1`, id)
}

func insertEntry(b *projections.Batch, draft string, meta event.Meta, e orderdraft.Entry) {
	proposals, err := json.Marshal(e.Proposals)
	if err != nil {
		panic(fmt.Sprintf("encode the proposals of an entry: %v", err)) // the proposals were decoded from JSON
	}
	b.Exec(`
		insert into order_draft_entry (id, draft_id, workspace_id, item_name, weight_mg, quantity, client_id, client_name, slip_number, parser,
			confidence, proposals)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
		e.ID, draft, meta.Workspace, e.Item, e.Weight, e.Quantity, e.ClientID, e.Client, e.Slip, e.Parser, int64(e.Confidence), string(proposals))
}

// dated returns a date in the form of the column.
func dated(f patch.Field[unit.Date]) patch.Field[string] {
	return patch.Field[string]{Value: f.Value.String(), State: f.State}
}

// revise sets the revision of a draft, which its ETag shows.
func revise[E any](b *projections.Batch, e event.Recorded[E]) {
	b.Exec(`update order_draft set revision = $2 where id = $1`, e.StreamID(), e.Revision)
}
