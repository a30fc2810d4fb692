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

// orderList is a page of a workspace's client orders.
type orderList struct {
	Workspace uuid.UUID
	Orders    []books.ClientOrder
	Pages     pages
}

// orderPage is an order with its takadas, and what became of both.
type orderPage struct {
	books.ClientOrder

	Workspace uuid.UUID
	Takadas   []books.ClientTakada
	Versions  []recorded
}

// recorded is a version of an order or a takada for display.
type recorded struct {
	books.RecordVersion[json.RawMessage]

	Of      string
	Changes []change
}

func (v *visit) orders() (p page, err error) {
	p = page{template: "orders", title: "Client orders"}
	var list orderList
	if list.Workspace, err = uuid.Parse(v.r.PathValue("workspace")); err != nil {
		return p, errNoPage
	}
	shown := number(v.r.URL.Query().Get("page"))
	var total int64
	list.Orders, total, err = v.Books.Orders(v.r.Context(), list.Workspace, readmodels.Page{Number: shown, Size: rowsOfPage}, books.OrderFilter{})
	list.Pages, p.body = v.pagesOf(shown, rowsOfPage, total), &list
	return p, err
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
	if _, err = v.Books.EachTakada(ctx, o.Workspace, readmodels.Page{}, books.TakadaFilter{Order: id}, func(t books.ClientTakada) error {
		o.Takadas = append(o.Takadas, t)
		return nil
	}); err != nil {
		return p, err
	}
	if o.Versions, err = versions(ctx, "order", v.Books.OrderHistory, o.Workspace, id); err != nil {
		return p, err
	}
	for _, t := range o.Takadas {
		more, err := versions(ctx, fmt.Sprint("takada ", *t.ID), v.Books.TakadaHistory, o.Workspace, *t.ID)
		if err != nil {
			return p, err
		}
		o.Versions = append(o.Versions, more...)
	}
	slices.SortStableFunc(o.Versions, func(a, b recorded) int { return cmp.Compare(a.Position, b.Position) })
	p.title, p.body = fmt.Sprint("Order ", id), &o
	return p, nil
}

// versions returns the history of a record for display.
func versions[T any](ctx context.Context, of string, history func(context.Context, uuid.UUID, int64) ([]books.RecordVersion[T], error), workspace uuid.UUID, id int64) ([]recorded, error) {
	found, err := history(ctx, workspace, id)
	if err != nil {
		return nil, err
	}
	all := make([]recorded, len(found))
	for i, one := range found {
		all[i] = recorded{Of: of, Changes: changes(recordDocument(one.Before), recordDocument(one.After))}
		all[i].Position, all[i].At, all[i].Actor, all[i].Reason, all[i].Change = one.Position, one.At, one.Actor, one.Reason, one.Change
	}
	return all, nil
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
