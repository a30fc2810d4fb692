package ledgerhttp

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"

	"bahi/commands"
	"bahi/commands/ledgercmd"
	"bahi/domain/ledger/orderdraft"
	"bahi/http/api"
	"bahi/readmodels"
	"bahi/readmodels/ledgerview"
)

// ByDraft identifies an order draft.
type ByDraft struct {
	ID int64 `path:"draft_id" minimum:"1" doc:"The draft's id"`
}

// ByDraftEntry identifies an entry of an order draft.
type ByDraftEntry struct {
	ByDraft

	Entry int64 `path:"entry_id" minimum:"1" doc:"The entry's id"`
}

// draftAnswered and entryAnswered are fields of responses that a write ignores.
var (
	draftAnswered = []string{"id", "created_at", "raw_message", "media", "warnings", "cut", "entries", "revision"}
	entryAnswered = []string{"id", "client_name", "parser", "confidence", "client_proposals"}
)

func draftOp(id, method, path, summary string) api.Op {
	return ledgerOp(api.Op{
		ID: id, Method: method, Path: "/order-drafts" + path, Summary: summary, Tags: []string{"Order drafts"},
		Reads: []string{"order_drafts", "orders"}, StrictQuery: true,
	})
}

// orderDrafts registers the operations on order drafts.
func (r *Routes) orderDrafts() {
	api.Handle(r.API, draftOp("list-order-drafts", "GET", "", "List the order drafts to be reviewed"),
		func(ctx context.Context, in *struct {
			SomePage
			ledgerview.DraftFilter
		}) (answer *api.Array[ledgerview.OrderDraft], err error) {
			err = in.read(ctx, func(page readmodels.Page) (int64, error) {
				rows, total, err := r.Views.OrderDrafts(ctx, api.At(ctx), workspace(ctx), r.Zone, page, in.DraftFilter)
				answer, err = api.Listed(rows, total, err)
				return total, err
			})
			return answer, err
		})
	api.Handle(r.API, draftOp("get-order-draft", "GET", "/{draft_id}", "Read an order draft with its entries"),
		func(ctx context.Context, in *ByDraft) (*api.Tagged[ledgerview.OrderDraft], error) {
			d, err := r.Views.OrderDraft(ctx, api.At(ctx), workspace(ctx), r.Zone, in.ID)
			return api.WithETag(d, d.Revision, err)
		})
	editing := draftOp("edit-order-draft", "PUT", "/{draft_id}", "Edit an order draft")
	editing.ReadOnly = draftAnswered
	api.Handle(r.API, editing, func(ctx context.Context, in *struct {
		ByDraft
		Body orderdraft.Edit
	}) (*api.Tagged[ledgerview.OrderDraft], error) {
		return r.draftWritten(ctx)(ledgercmd.EditDraft(ctx, api.Request(ctx), r.Books, in.ID, in.Body))
	})
	api.Handle(r.API, draftOp("delete-order-draft", "DELETE", "/{draft_id}", "Delete an order draft and its entries"),
		func(ctx context.Context, in *ByDraft) (*api.Nothing, error) {
			out, err := commands.Handle(ctx, r.Books.Commands, api.Request(ctx), orderdraft.Kind, in.id(), orderdraft.Delete{})
			return api.Done(ctx, out, err)
		})
	r.draftEntries()
	numbering := draftOp("recalculate-slip-numbers", "POST", "/{draft_id}/recalculate_slip_numbers",
		"Renumber the slips of an order draft")
	numbering.Status = http.StatusOK
	api.Handle(r.API, numbering,
		func(ctx context.Context, in *ByDraft) (*api.Tagged[ledgerview.OrderDraft], error) {
			return r.draftWritten(ctx)(ledgercmd.AssignSlips(ctx, api.Request(ctx), r.Books, in.ID))
		})
	converting := draftOp("convert-order-draft", "POST", "/{draft_id}/convert",
		"Convert an order draft to client orders")
	converting.Status, converting.Errors = http.StatusOK, []int{http.StatusConflict}
	api.Handle(r.API, converting,
		func(ctx context.Context, in *struct {
			ByDraft
			Body *orderdraft.Convert
		}) (*api.Body[convertedDraft], error) {
			in.Body = cmp.Or(in.Body, &orderdraft.Convert{})
			out, err := ledgercmd.ConvertDraft(ctx, api.Request(ctx), r.Books, in.ID, *in.Body)
			return api.Reply(ctx, out, err, func(out commands.Outcome[orderdraft.State]) convertedDraft {
				c := convertedDraft{Draft: in.ID, Orders: make([]ledgerview.ClientOrder, len(out.State.Orders))}
				for i, o := range out.State.Orders {
					c.Orders[i] = r.orderShown(ctx, out.Position, o.ID, o.Order)
					if o.ID != 0 { // no dry run
						c.Orders[i].Revision = new(int64)
					}
				}
				return c
			})
		})
}

// convertedDraft has the orders made from a draft.
type convertedDraft struct {
	Draft  int64                    `json:"draft_id" doc:"ID of the draft"`
	Orders []ledgerview.ClientOrder `json:"orders" nullable:"false" doc:"Created client orders"`
}

func (in ByDraft) id() string { return strconv.FormatInt(in.ID, 10) }

// draftEntries registers the entries of drafts.
func (r *Routes) draftEntries() {
	adding := draftOp("add-order-draft-entry", "POST", "/{draft_id}/entries", "Add an entry to an order draft")
	adding.ReadOnly = entryAnswered
	api.Handle(r.API, adding, func(ctx context.Context, in *struct {
		ByDraft
		Body orderdraft.EditEntry
	}) (*api.Tagged[ledgerview.DraftEntry], error) {
		return r.entryWritten(ctx, func(all []orderdraft.Entry) int { return len(all) - 1 })(
			ledgercmd.AddDraftEntry(ctx, api.Request(ctx), r.Books, in.ID, orderdraft.AddEntry{EditEntry: in.Body}))
	})
	editing := draftOp("edit-order-draft-entry", "PUT", "/{draft_id}/entries/{entry_id}", "Edit an entry of an order draft")
	editing.ReadOnly = entryAnswered
	api.Handle(r.API, editing, func(ctx context.Context, in *struct {
		ByDraftEntry
		Body orderdraft.EditEntry
	}) (*api.Tagged[ledgerview.DraftEntry], error) {
		in.Body.ID = in.Entry
		return r.entryWritten(ctx, func(all []orderdraft.Entry) int {
			return slices.IndexFunc(all, func(e orderdraft.Entry) bool { return e.ID == in.Entry })
		})(ledgercmd.EditDraftEntry(ctx, api.Request(ctx), r.Books, in.ID, in.Body))
	})
	api.Handle(r.API, draftOp("delete-order-draft-entry", "DELETE", "/{draft_id}/entries/{entry_id}", "Delete an entry of an order draft"),
		func(ctx context.Context, in *ByDraftEntry) (*api.Nothing, error) {
			out, err := commands.Handle(ctx, r.Books.Commands, api.Request(ctx), orderdraft.Kind, in.id(), orderdraft.DeleteEntry{ID: in.Entry})
			return api.Done(ctx, out, err)
		})
}

// draftWritten returns the response to a write: the draft after the command.
func (r *Routes) draftWritten(ctx context.Context) func(commands.Outcome[orderdraft.State], error) (*api.Tagged[ledgerview.OrderDraft],
	error) {
	return written(ctx, r, func(out commands.Outcome[orderdraft.State]) ledgerview.OrderDraft {
		return ledgerview.DraftAfter(out.Number(), out.State, out.CreatedAt, r.Zone, out.Revision)
	})
}

// entryWritten returns the response to a write of an entry. at returns the entry's index.
func (r *Routes) entryWritten(ctx context.Context, at func([]orderdraft.Entry) int) func(commands.Outcome[orderdraft.State],
	error) (*api.Tagged[ledgerview.DraftEntry], error) {
	return written(ctx, r, func(out commands.Outcome[orderdraft.State]) ledgerview.DraftEntry {
		return ledgerview.DraftEntryAfter(out.State.Entries[at(out.State.Entries)])
	})
}

// written returns a response from a draft's state with its personal values decrypted.
func written[T any](ctx context.Context, r *Routes,
	shown func(commands.Outcome[orderdraft.State]) T) func(commands.Outcome[orderdraft.State], error) (*api.Tagged[T], error) {
	return func(out commands.Outcome[orderdraft.State], err error) (*api.Tagged[T], error) {
		if err == nil {
			out.State, err = commands.Reveal(ctx, r.Books.Commands, out.State)
		}
		return api.WriteResult(ctx, out, err, shown)
	}
}
