package ledger

import (
	_ "embed"
	"encoding/json"
	"fmt"

	"bahi/domain/event"
	"bahi/domain/ledger/orderdraft"
	"bahi/projections"
)

//go:embed order_drafts.sql
var orderDraftsDDL string

// OrderDrafts has the drafts that wait for their review, and the replies to their senders.
var OrderDrafts = projections.Define("order_drafts", 1, orderDraftsDDL,
	projections.On(func(b *projections.Batch, e event.Recorded[orderdraft.Received]) {
		b.Exec(`
			insert into order_draft (id, workspace_id, sender, phone_number, raw_message, media, entries, cut, created_at, revision)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
			e.StreamID(), e.Meta.Workspace, e.Data.Sender, e.Data.Phone, e.Data.Raw, e.Data.Media, entriesJSON(e.Data.Entries), e.Data.Cut, e.At, e.Revision)
		b.Exec(`insert into order_draft_reply (draft_id, workspace_id, sender, phone_number) values ($1, $2, $3, $4)`,
			e.StreamID(), e.Meta.Workspace, e.Data.Sender, e.Data.Phone)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[orderdraft.Replied]) {
		b.Exec(`update order_draft_reply set text = $2, status = $3, at = $4 where draft_id = $1`, e.StreamID(), e.Data.Text, e.Data.Status, e.At)
		b.Exec(`update order_draft set revision = $2 where id = $1`, e.StreamID(), e.Revision)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[orderdraft.Deleted]) {
		b.Exec(`delete from order_draft where id = $1`, e.StreamID())
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[orderdraft.SenderErased]) {
		b.Exec(`update order_draft set phone_number = null, raw_message = null, media = null where sender = $1`, e.StreamID())
		b.Exec(`update order_draft_reply set phone_number = null where sender = $1`, e.StreamID())
	}),
)

func entriesJSON(entries []orderdraft.Entry) string {
	text, err := json.Marshal(entries)
	if err != nil {
		panic(fmt.Sprintf("encode the entries of a draft: %v", err)) // they were decoded from JSON
	}
	return string(text)
}
