package ledgerhttp

import (
	"context"
	"errors"

	"bahi/commands"
	"bahi/commands/ledgercmd"
	"bahi/domain/fault"
	"bahi/domain/ledger/client"
	"bahi/domain/ledger/order"
	"bahi/domain/ledger/takada"
	"bahi/http/api"
	"bahi/readmodels"
	"bahi/readmodels/ledgerview"
)

// ByTakada identifies a takada.
type ByTakada struct {
	ID int64 `path:"takada_id" minimum:"1" doc:"The takada's id"`
}

// takadasRead is a response with takadas and the number of takadas in the whole selection.
type takadasRead struct {
	Total int64 `header:"X-Total-Count"`
	Body  api.List[ledgerview.ClientTakada]
}

// takadas registers the operations on takadas.
func (r *Routes) takadas() {
	api.Handle(r.API, orderOp(api.Op{
		ID: "list-takadas", Method: "GET", Path: "/takadas", Summary: "List the takadas",
	}), func(ctx context.Context, in *struct {
		SomePage
		ledgerview.TakadaFilter
	}) (*takadasRead, error) {
		_, err := in.get()
		if err == nil {
			err = r.knownTakadas(ctx, in.TakadaFilter)
		}
		if err != nil {
			return nil, err
		}
		read := &takadasRead{}
		return read, in.read(ctx, func(page readmodels.Page) (_ int64, err error) {
			read.Body = api.NewList[ledgerview.ClientTakada](ctx)
			read.Total, err = r.Views.EachTakada(ctx, api.At(ctx), workspace(ctx), page, in.TakadaFilter, read.Body.Add)
			return read.Total, err
		})
	})
	api.Handle(r.API, orderOp(api.Op{
		ID: "add-takada", Method: "POST", Path: "/takada", Summary: "Add a partial delivery of an order", ReadOnly: []string{"id", "revision"},
	}), func(ctx context.Context, in *struct{ Body takada.Add }) (*api.Tagged[ledgerview.ClientTakada], error) {
		out, err := ledgercmd.AddTakada(ctx, api.Request(ctx), r.Books, in.Body)
		return takadaWritten(ctx, out, err)
	})
	api.Handle(r.API, orderOp(api.Op{
		ID: "get-takada", Method: "GET", Path: "/takada/{takada_id}", Summary: "Read a takada",
	}), func(ctx context.Context, in *ByTakada) (*api.Tagged[ledgerview.ClientTakada], error) {
		t, err := r.Views.Takada(ctx, api.At(ctx), workspace(ctx), in.ID)
		if err != nil {
			return nil, err
		}
		return api.WithETag(t, *t.Revision, nil)
	})
	api.Handle(r.API, orderOp(api.Op{
		ID: "edit-takada", Method: "PUT", Path: "/takada/{takada_id}",
		Summary:  "Edit a takada. Only fields in the body change. Items replace all items. The order may change within the same client.",
		ReadOnly: []string{"id", "revision"},
	}), func(ctx context.Context, in *struct {
		ByTakada
		Body takada.Edit
	}) (*api.Tagged[ledgerview.ClientTakada], error) {
		out, err := ledgercmd.EditTakada(ctx, api.Request(ctx), r.Books, in.ID, in.Body)
		return takadaWritten(ctx, out, err)
	})
	api.Handle(r.API, orderOp(api.Op{
		ID: "delete-takada", Method: "DELETE", Path: "/takada/{takada_id}", Summary: "Delete a takada",
	}), func(ctx context.Context, in *ByTakada) (*api.Nothing, error) {
		out, err := ledgercmd.DeleteTakada(ctx, api.Request(ctx), r.Books, in.ID)
		return api.Done(ctx, out, err)
	})
	api.Handle(r.API, orderOp(api.Op{
		ID: "read-takada-history", Method: "GET", Path: "/takada/{takada_id}/history",
		Summary: "List the versions of a takada, oldest first. Each version has its actor, time, reason and the takada before and after.",
	}), func(ctx context.Context, in *ByTakada) (*api.Body[[]ledgerview.RecordVersion[ledgerview.ClientTakada]], error) {
		return api.Answer(r.Views.TakadaHistory(ctx, api.At(ctx), workspace(ctx), in.ID))
	})
}

// knownTakadas refuses a filter with an unknown order or client (CONTRACT.md L14).
func (r *Routes) knownTakadas(ctx context.Context, f ledgerview.TakadaFilter) error {
	var wrong []fault.Field
	if f.Order != 0 {
		if _, err := r.Views.Order(ctx, api.At(ctx), workspace(ctx), f.Order); errors.Is(err, order.ErrNotFound) {
			wrong = append(wrong, fault.Field{Field: "client_order_id", Message: "there is no such order"})
		} else if err != nil {
			return err
		}
	}
	if f.Client != 0 {
		if _, err := r.Views.ClientName(ctx, api.At(ctx), workspace(ctx), f.Client); errors.Is(err, client.Ledger.NoAccount) {
			wrong = append(wrong, fault.Field{Field: "client_id", Message: "there is no such client"})
		} else if err != nil {
			return err
		}
	}
	if wrong == nil {
		return nil
	}
	return fault.Fields(wrong...)
}

// takadaWritten returns a takada after a command.
func takadaWritten(ctx context.Context, out commands.Outcome[takada.State], err error) (*api.Tagged[ledgerview.ClientTakada], error) {
	return api.WriteResult(ctx, out, err, func(out commands.Outcome[takada.State]) ledgerview.ClientTakada {
		t := ledgerview.ClientTakada{ID: out.Number(), Takada: out.State.Takada}
		if out.Revision >= 0 {
			t.Revision = &out.Revision
		}
		return t
	})
}
