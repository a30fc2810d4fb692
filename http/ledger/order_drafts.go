package ledger

import (
	"context"
	"strconv"

	"bahi/commands"
	"bahi/domain/ledger/orderdraft"
	"bahi/http/api"
	views "bahi/readmodels/ledger"
)

// ByDraft names an order draft.
type ByDraft struct {
	ID int64 `path:"draft_id" minimum:"1" doc:"The draft's id"`
}

func draftOp(id, method, path, summary string) api.Op {
	return api.Op{
		ID: id, Method: method, Path: "/order-drafts" + path, Summary: summary, Tags: []string{"Order drafts"}, Area: area, Limit: limit,
		Reads: []string{"order_drafts"}, StrictQuery: true,
	}
}

// OrderDrafts registers the orders that came by chat.
func (r *Routes) OrderDrafts() {
	api.Handle(r.API, draftOp("list-order-drafts", "GET", "", "List the order drafts that wait for their review"),
		func(ctx context.Context, in *struct{ SomePage }) (*api.Array[views.OrderDraft], error) {
			page, err := in.get()
			if err != nil {
				return nil, err
			}
			return api.Listed(r.Views.OrderDrafts(ctx, workspace(ctx), r.Zone, page))
		})
	api.Handle(r.API, draftOp("get-order-draft", "GET", "/{draft_id}", "Read an order draft with its entries"),
		func(ctx context.Context, in *ByDraft) (*api.Tagged[views.OrderDraft], error) {
			d, err := r.Views.OrderDraft(ctx, workspace(ctx), r.Zone, in.ID)
			return api.Shown(d, d.Revision, err)
		})
	deleting := draftOp("delete-order-draft", "DELETE", "/{draft_id}", "Delete an order draft and its entries")
	deleting.DryRun = true
	api.Handle(r.API, deleting, func(ctx context.Context, in *ByDraft) (*api.Nothing, error) {
		out, err := commands.Handle(ctx, r.Books.Commands, api.Request(ctx), orderdraft.Kind, strconv.FormatInt(in.ID, 10), orderdraft.Delete{})
		return api.Done(ctx, out, err)
	})
}
