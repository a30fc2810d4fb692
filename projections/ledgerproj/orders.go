package ledgerproj

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/event"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/client"
	"bahi/domain/ledger/order"
	"bahi/domain/ledger/takada"
	"bahi/domain/unit"
	"bahi/projections"
)

//go:embed orders.sql
var ordersDDL string

// Orders has the orders of clients, their takadas, all versions of both, and the delivered weight of each order.
//
// It folds whole batches, because a deletion affects many records and a takada affects its order.
var Orders = projections.Define("orders", 5,
	ordersDDL+projections.RowCountDDL("client_order", "not deleted", "workspace_id", "client_id")+projections.RowCountDDL("takada",
		"not deleted", "workspace_id"),
	projections.Apply(ordersTypes(), foldOrders))

// ordersTypes returns the types of events that the projection folds. From the ledgers it folds only the events of accounts to which orders
// and takadas refer. It lists these types by name, so that new types of account events do not change the projection.
func ordersTypes() []string {
	return slices.Concat(
		[]string{"ClientOpened", "ClientRenamed", "ClientDeleted", "KarigarOpened", "KarigarRenamed", "KarigarDeleted"},
		order.Kind.Names(), takada.Kind.Names(),
	)
}

// record is the folded state of an order or a takada.
type record[S any] struct {
	id        int64
	workspace uuid.UUID
	state     S
	revision  int64
	changed   bool
}

type orderRecord struct {
	record[order.State]

	delivered unit.Grams
	takadas   int64
	draft     int64 // draft from which the order was converted; 0: none
}

type takadaRecord struct{ record[takada.State] }

// recorded is a version of a record.
type recorded struct {
	kind     string
	id       int64
	client   int64
	state    *string // nil: deleted
	revision *int64  // nil: an event of another stream caused it
	by       *event.Recorded[any]
}

// orders folds one batch.
type orders struct {
	tx       pgx.Tx
	accounts map[int64]*account
	orders   map[int64]*orderRecord
	takadas  map[int64]*takadaRecord
	versions []recorded
}

func foldOrders(ctx context.Context, b *projections.Batch, events []event.Recorded[any]) error {
	f := &orders{
		tx: b.Tx, accounts: map[int64]*account{}, orders: map[int64]*orderRecord{}, takadas: map[int64]*takadaRecord{},
	}
	if err := f.load(ctx, events); err != nil {
		return err
	}
	for i := range events {
		if err := f.fold(ctx, &events[i]); err != nil {
			return fmt.Errorf("position %d: %w", events[i].Position, err)
		}
	}
	return f.write(b)
}

// fold applies one event.
func (f *orders) fold(ctx context.Context, r *event.Recorded[any]) error {
	id, err := numbered(r)
	if err != nil {
		return err
	}
	switch e := r.Data.(type) {
	case event.Event[book.Account]:
		return f.foldAccount(ctx, r, id, e)
	case event.Event[order.State]:
		return f.foldOrder(ctx, r, id, e)
	case event.Event[takada.State]:
		return f.foldTakada(r, id, e)
	default:
		return fmt.Errorf("unknown event %T", r.Data)
	}
}

func (f *orders) foldAccount(ctx context.Context, r *event.Recorded[any], id int64, e event.Event[book.Account]) error {
	a := f.accounts[id]
	if _, first := e.(book.AccountOpened); first {
		a = &account{id: id, ledger: ledgerOf(r), workspace: r.Meta.Workspace}
		f.accounts[id] = a
	}
	if a == nil {
		return fmt.Errorf("account %d was not opened", id)
	}
	_, ends := e.(book.AccountDeleted)
	a.Account, a.changed = event.Evolve(a.Account, e, r.Position), true
	if !ends || a.ledger != client.Ledger.Name {
		return nil
	}
	return f.deleteOrders(ctx, r, id)
}

func (f *orders) foldOrder(ctx context.Context, r *event.Recorded[any], id int64, e event.Event[order.State]) error {
	o := f.orders[id]
	if o == nil {
		o = &orderRecord{record: record[order.State]{id: id, workspace: r.Meta.Workspace}}
		f.orders[id] = o
	}
	before := o.state
	o.state, o.revision, o.changed = e.Evolve(before), r.Revision, true
	switch e := e.(type) {
	case order.Added:
		o.draft = e.Draft
	case order.Deleted:
		if err := f.note(order.Kind.Category(), id, before.Client, nil, &o.revision, r); err != nil {
			return err
		}
		return f.deleteTakadas(ctx, r, []int64{id})
	}
	return f.note(order.Kind.Category(), id, o.state.Client, o.state.Order, &o.revision, r)
}

func (f *orders) foldTakada(r *event.Recorded[any], id int64, e event.Event[takada.State]) error {
	t := f.takadas[id]
	if t == nil {
		t = &takadaRecord{record[takada.State]{id: id, workspace: r.Meta.Workspace}}
		f.takadas[id] = t
	}
	t.revision = r.Revision
	return f.step(t, e.Evolve(t.state), &t.revision, r)
}

// step sets a takada's state, updates the delivered weight of its order, and records the version.
func (f *orders) step(t *takadaRecord, after takada.State, revision *int64, r *event.Recorded[any]) error {
	before := t.state
	t.state, t.changed = after, true
	if before.Exists() {
		f.count(before, -1)
	}
	if !after.Exists() {
		return f.note(takada.Kind.Category(), t.id, f.orders[before.Order].state.Client, nil, revision, r)
	}
	f.count(after, 1)
	return f.note(takada.Kind.Category(), t.id, f.orders[after.Order].state.Client, after.Takada, revision, r)
}

// count adds a takada to the delivered weight of its order, or subtracts it.
func (f *orders) count(t takada.State, sign int64) {
	o := f.orders[t.Order]
	o.delivered += unit.Grams(sign) * t.Weight()
	o.takadas += sign
	o.changed = true
}

// note records a version of a record; nil: it was deleted.
func (f *orders) note(kind string, id, holder int64, state any, revision *int64, r *event.Recorded[any]) error {
	v := recorded{kind: kind, id: id, client: holder, by: r}
	if revision != nil {
		v.revision = new(*revision)
	}
	if state != nil {
		text, err := json.Marshal(state)
		if err != nil {
			return err
		}
		v.state = new(string(text))
	}
	f.versions = append(f.versions, v)
	return nil
}

// deleteOrders deletes the orders of a client and their takadas.
func (f *orders) deleteOrders(ctx context.Context, r *event.Recorded[any], holder int64) error {
	if err := f.find(ctx, `select id from client_order where client_id = any($1) and not deleted`, []int64{holder}, f.loadOrders); err != nil {
		return err
	}
	var ended []int64
	for id, o := range f.orders {
		if !o.state.Exists() || o.state.Client != holder {
			continue
		}
		ended = append(ended, id)
		o.state, o.changed = order.Deleted{}.Evolve(o.state), true
		if err := f.note(order.Kind.Category(), id, holder, nil, nil, r); err != nil {
			return err
		}
	}
	return f.deleteTakadas(ctx, r, ended)
}

// deleteTakadas deletes the takadas of orders.
func (f *orders) deleteTakadas(ctx context.Context, r *event.Recorded[any], of []int64) error {
	if err := f.find(ctx, `select id from takada where order_id = any($1) and not deleted`, of, f.loadTakadas); err != nil {
		return err
	}
	for _, t := range f.takadas {
		if !t.state.Exists() || !slices.Contains(of, t.state.Order) {
			continue
		}
		if err := f.step(t, takada.Deleted{}.Evolve(t.state), nil, r); err != nil {
			return err
		}
	}
	return nil
}

// find loads the records with the ids that a query returns.
func (f *orders) find(ctx context.Context, sql string, of []int64, load func(context.Context, []int64) error) error {
	found, _ := f.tx.Query(ctx, sql, of)
	ids, err := pgx.CollectRows(found, pgx.RowTo[int64])
	if err != nil {
		return err
	}
	return load(ctx, ids)
}
