package console

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/google/uuid"

	"bahi/domain/ledger/order"
	"bahi/readmodels"
	books "bahi/readmodels/ledger"
)

// orderPage is an order with its takadas, and what became of both.
type orderPage struct {
	books.ClientOrder

	Workspace uuid.UUID
	Takadas   []shownTakada
	Versions  []recorded
}

// shownTakada is a takada, which may be deleted.
type shownTakada struct {
	books.ClientTakada

	Deleted *recorded // nil: it is there
}

// recorded is a version of an order or a takada for display.
type recorded struct {
	books.RecordVersion[json.RawMessage]

	Of      string
	Changes []change
}

func (v *visit) orders() (p page, err error) {
	workspace, err := uuid.Parse(v.r.PathValue("workspace"))
	if err != nil {
		return p, errNoPage
	}
	return listed(v, page{template: "orders", title: "Client orders"}, rowsOfPage, workspace, func(ctx context.Context, of readmodels.Page) ([]books.ClientOrder, int64, error) {
		return v.Books.Orders(ctx, workspace, of, books.OrderFilter{})
	})
}

func (v *visit) order() (p page, err error) {
	p = page{template: "order"}
	var o orderPage
	if o.Workspace, err = uuid.Parse(v.r.PathValue("workspace")); err != nil {
		return p, errNoPage
	}
	id, err := strconv.ParseInt(v.r.PathValue("order"), 10, 64)
	if err != nil {
		return p, order.ErrNotFound
	}
	ctx := v.r.Context()
	if o.ClientOrder, err = v.Books.Order(ctx, o.Workspace, id); err != nil {
		return p, err
	}
	history, err := v.Books.OrderHistory(ctx, o.Workspace, id)
	if err != nil {
		return p, err
	}
	o.Versions = versions("order", history)
	if err := v.takadasOf(ctx, &o, id); err != nil {
		return p, err
	}
	slices.SortStableFunc(o.Versions, func(a, b recorded) int { return cmp.Compare(a.Position, b.Position) })
	p.title, p.body = fmt.Sprint("Order ", id), &o
	return p, nil
}

// takadasOf adds an order's takadas, also the deleted ones, and their histories.
func (v *visit) takadasOf(ctx context.Context, o *orderPage, id int64) error {
	_, err := v.Books.EachTakada(ctx, o.Workspace, readmodels.Page{}, books.TakadaFilter{Order: id}, func(t books.ClientTakada) error {
		o.Takadas = append(o.Takadas, shownTakada{ClientTakada: t})
		return nil
	})
	if err != nil {
		return err
	}
	deleted, err := v.Books.DeletedTakadas(ctx, o.Workspace, o.Client, id)
	if err != nil {
		return err
	}
	for _, one := range deleted {
		o.Takadas = append(o.Takadas, shownTakada{ClientTakada: books.ClientTakada{ID: &one}, Deleted: &recorded{}})
	}
	for i := range o.Takadas {
		t := &o.Takadas[i]
		history, err := v.Books.TakadaHistory(ctx, o.Workspace, *t.ID)
		if err != nil {
			return err
		}
		more := versions(fmt.Sprint("takada ", *t.ID), history)
		if last := len(history) - 1; t.Deleted != nil && history[last].Before != nil {
			t.ClientTakada, t.Deleted = *history[last].Before, &more[last]
		}
		o.Versions = append(o.Versions, more...)
	}
	slices.SortFunc(o.Takadas, func(a, b shownTakada) int { return cmp.Compare(*a.ID, *b.ID) })
	return nil
}

// versions returns the history of a record for display.
func versions[T any](of string, found []books.RecordVersion[T]) []recorded {
	all := make([]recorded, len(found))
	for i, one := range found {
		all[i] = recorded{Of: of, Changes: changes(recordDocument(one.Before), recordDocument(one.After))}
		all[i].Position, all[i].At, all[i].Actor, all[i].Reason, all[i].Change = one.Position, one.At, one.Actor, one.Reason, one.Change
	}
	return all
}

// recordDocument returns an order or a takada as JSON, nil for none.
func recordDocument[T any](r *T) []byte {
	if r == nil {
		return nil
	}
	text, err := json.Marshal(r)
	if err != nil {
		panic(err) // it was JSON before
	}
	return text
}
