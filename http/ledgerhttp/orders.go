package ledgerhttp

import (
	"context"

	"bahi/commands"
	"bahi/commands/ledgercmd"
	"bahi/domain/event"
	"bahi/domain/ledger/order"
	"bahi/http/api"
	"bahi/readmodels/ledgerview"
)

// ByOrder identifies an order.
type ByOrder struct {
	ID int64 `path:"order_id" minimum:"1" doc:"The order's id"`
}

// orderAnswered are fields of responses that a write ignores.
var orderAnswered = []string{"id", "revision", "client_name", "delivered_weight", "pending_weight", "status", "warnings"}

// orderOp completes an operation on orders and takadas.
func orderOp(op api.Op) api.Op {
	op.Reads = []string{"orders"}
	return ledgerOp(op)
}

// Orders registers the operations on client orders.
func (r *Routes) Orders() {
	api.Handle(r.API, orderOp(api.Op{
		ID: "list-client-orders", Method: "GET", Path: "/client-orders",
		Summary: "List the orders of clients with their delivered and pending weight",
	}), func(ctx context.Context, in *struct {
		api.Pages
		ledgerview.OrderFilter
	}) (*api.Body[api.PageOf[ledgerview.ClientOrder]], error) {
		if err := r.known(ctx, in.OrderFilter); err != nil {
			return nil, err
		}
		rows, total, err := r.Views.Orders(ctx, api.At(ctx), workspace(ctx), in.Get(), in.OrderFilter)
		return api.Paginated(in.Get(), rows, total, err)
	})
	r.ordersPDF()
	api.Handle(r.API, orderOp(api.Op{
		ID: "add-client-order", Method: "POST", Path: "/client-order", Summary: "Add an order of a client", ReadOnly: orderAnswered,
	}), func(ctx context.Context, in *struct{ Body order.Add }) (*api.Tagged[ledgerview.ClientOrder], error) {
		out, err := ledgercmd.AddOrder(ctx, api.Request(ctx), r.Books, in.Body)
		return r.orderWritten(ctx, out, err)
	})
	api.Handle(r.API, orderOp(api.Op{
		ID: "get-client-order", Method: "GET", Path: "/client-order/{order_id}",
		Summary: "Read an order with its delivered and pending weight",
	}), func(ctx context.Context, in *ByOrder) (*api.Tagged[ledgerview.ClientOrder], error) {
		o, err := r.Views.Order(ctx, api.At(ctx), workspace(ctx), in.ID)
		if err != nil {
			return nil, err
		}
		return api.WithETag(o, *o.Revision, nil)
	})
	api.Handle(r.API, orderOp(api.Op{
		ID: "edit-client-order", Method: "PUT", Path: "/client-order/{order_id}",
		Summary:  "Edit an order. Only fields in the body change. Items replace all items; an item keeps its id if the body has it.",
		ReadOnly: orderAnswered,
	}), func(ctx context.Context, in *struct {
		ByOrder
		Body order.Edit
	}) (*api.Tagged[ledgerview.ClientOrder], error) {
		out, err := ledgercmd.EditOrder(ctx, api.Request(ctx), r.Books, in.ID, in.Body)
		return r.orderWritten(ctx, out, err)
	})
	api.Handle(r.API, orderOp(api.Op{
		ID: "delete-client-order", Method: "DELETE", Path: "/client-order/{order_id}", Summary: "Delete an order and its takadas",
	}), func(ctx context.Context, in *ByOrder) (*api.Nothing, error) {
		out, err := ledgercmd.DeleteOrder(ctx, api.Request(ctx), r.Books, in.ID)
		return api.Done(ctx, out, err)
	})
	api.Handle(r.API, orderOp(api.Op{
		ID: "read-client-order-history", Method: "GET", Path: "/client-order/{order_id}/history",
		Summary: "List the versions of an order, oldest first. Each version has its actor, time, reason and the order before and after.",
	}), func(ctx context.Context, in *ByOrder) (*api.Body[[]ledgerview.RecordVersion[ledgerview.ClientOrder]], error) {
		return api.Answer(r.Views.OrderHistory(ctx, api.At(ctx), workspace(ctx), in.ID))
	})
}

// known returns the clients' NoAccount if the filter names an unknown client.
func (r *Routes) known(ctx context.Context, f ledgerview.OrderFilter) (err error) {
	if f.Client != 0 {
		_, err = r.Views.ClientName(ctx, api.At(ctx), workspace(ctx), f.Client)
	}
	return err
}

// orderWritten returns an order after a command.
func (r *Routes) orderWritten(ctx context.Context, out commands.Outcome[order.State], err error) (*api.Tagged[ledgerview.ClientOrder],
	error) {
	return api.WriteResult(ctx, out, err, func(out commands.Outcome[order.State]) ledgerview.ClientOrder {
		o := r.orderShown(ctx, out.Position, out.Number(), out.State.Order)
		if out.Revision >= 0 {
			o.Revision = &out.Revision
		}
		return o
	})
}

// orderShown returns an order after a write; id is 0 in a dry run. It omits stale values derived from clients and
// takadas, because the write is already in the log.
func (r *Routes) orderShown(ctx context.Context, position event.Position, id int64, made order.Order) ledgerview.ClientOrder {
	o := ledgerview.ClientOrder{ID: id, Order: made}
	at := api.At(ctx).After(position)
	name, err := r.Views.ClientName(ctx, at, workspace(ctx), o.Client)
	if err != nil {
		return o
	}
	if o.ID == 0 { // a new order has no deliveries
		o.Derived = ledgerview.Derive(name, o.Weight(), 0)
	} else if read, err := r.Views.Order(ctx, at, workspace(ctx), o.ID); err == nil {
		o.Derived = ledgerview.Derive(name, o.Weight(), *read.Delivered)
	}
	return o
}
