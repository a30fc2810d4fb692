package ledgerview

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/ledger/client"
	"bahi/domain/ledger/order"
	"bahi/domain/person"
	"bahi/domain/unit"
	"bahi/readmodels"
)

// ClientOrder is an order with the values derived from its takadas.
type ClientOrder struct {
	ID int64 `json:"id,omitzero" required:"true" doc:"ID; absent in a dry run for a new record"`
	order.Order
	Derived

	Revision *int64 `json:"revision,omitempty" doc:"Revision for If-Match"`
}

// Derived has the values of an order that depend on its client and takadas. The response to a write omits them if they
// are stale.
type Derived struct {
	ClientName string      `json:"client_name,omitempty" doc:"Name of the client"`
	Delivered  *unit.Grams `json:"delivered_weight,omitempty" doc:"Delivered weight of all takadas in grams"`
	Pending    *unit.Grams `json:"pending_weight,omitempty" doc:"Pending weight in grams; negative if more was delivered than ordered"`
	Status     string      `json:"status,omitempty" enum:"open,partial,delivered" doc:"Status: open, partial or delivered"`
}

// Derive returns the derived values of an order with a total weight.
func Derive(clientName string, total, delivered unit.Grams) Derived {
	return Derived{ClientName: clientName, Delivered: &delivered, Pending: new(total - delivered), Status: order.Status(total, delivered)}
}

// OrderFilter selects orders. Absent fields select all.
type OrderFilter struct {
	Client int64  `query:"client_id" minimum:"1" doc:"Only orders of this client"`
	Slip   string `query:"slip_number" maxLength:"40" doc:"Only orders with this slip number; case does not matter"`
}

const ordersSQL = `
	select o.id, o.state, coalesce(a.name, ''), o.delivered_mg, o.revision
	from orders.client_order o left join orders.account a on a.id = o.client_id
	where not o.deleted`

func toOrder(row pgx.CollectableRow) (o ClientOrder, err error) {
	var (
		id, delivered, revision int64
		state, name             string
		s                       order.State
	)
	if err := row.Scan(&id, &state, &name, &delivered, &revision); err != nil {
		return o, err
	}
	err = json.Unmarshal([]byte(state), &s)
	return ClientOrder{ID: id, Order: s.Order, Derived: Derive(name, s.Weight(), unit.Grams(delivered)), Revision: &revision}, err
}

// Order reads an order of a workspace, or returns [order.ErrNotFound].
func (v *Views) Order(ctx context.Context, at *readmodels.At, workspace uuid.UUID, id int64) (ClientOrder, error) {
	return readmodels.Row(ctx, v.Reader.From(at, "orders"), order.ErrNotFound, toOrder, ordersSQL+` and o.workspace_id = $1 and o.id = $2`,
		workspace, id)
}

// list returns the list of the selected orders.
func (f OrderFilter) list(workspace uuid.UUID) readmodels.List[ClientOrder] {
	where := `o.workspace_id = @workspace`
	if f.Client != 0 {
		where += ` and o.client_id = @client`
	}
	count := readmodels.Tally(`orders.client_order`, `o`, where)
	if f.Slip != "" {
		where, count = where+` and o.slip_folded = @slip`, ``
	}
	return readmodels.List[ClientOrder]{
		As: toOrder, SQL: ordersSQL + ` and ` + where, Order: `id`, Count: count,
		Args: pgx.NamedArgs{"workspace": workspace, "client": f.Client, "slip": person.Folded(f.Slip)},
	}
}

// Orders lists a page of a workspace's orders, by id.
func (v *Views) Orders(ctx context.Context, at *readmodels.At, workspace uuid.UUID, page readmodels.Page, f OrderFilter) ([]ClientOrder,
	int64, error) {
	return f.list(workspace).Page(ctx, v.Reader.From(at, "orders"), page)
}

// EachOrder is [Views.Orders] for more orders than fit in memory: it calls take for each. A page of size 0 has all orders.
func (v *Views) EachOrder(ctx context.Context, at *readmodels.At, workspace uuid.UUID, page readmodels.Page, f OrderFilter,
	take func(ClientOrder) error) error {
	_, err := f.list(workspace).Each(ctx, v.Reader.From(at, "orders"), page, take)
	return err
}

// OrdersOfSender lists the newest orders that were converted from a sender's drafts. It ignores phones that users have entered in drafts.
// The table of drafts has no converted drafts.
func (v *Views) OrdersOfSender(ctx context.Context, at *readmodels.At, workspace uuid.UUID, sender string) ([]ClientOrder, error) {
	const most = 10
	return readmodels.Rows(ctx, v.Reader.From(at, "order_drafts", "orders"), toOrder, ordersSQL+`
		and o.workspace_id = $1 and o.draft_id in (select draft_id from order_drafts.order_draft_reply where workspace_id = $1 and sender = `+
		`$2) order by o.id desc limit $3`, workspace, sender, most)
}

// ClientName returns the name of a client of a workspace, or the clients' NoAccount.
func (v *Views) ClientName(ctx context.Context, at *readmodels.At, workspace uuid.UUID, id int64) (string, error) {
	return readmodels.Row(ctx, v.Reader.From(at, "orders"), client.Ledger.NoAccount, pgx.RowTo[string], `
		select a.name from orders.account a where a.workspace_id = $1 and a.id = $2 and a.ledger = 'client'
			and a.deleted_position is null`, workspace, id)
}

// OrderWithSlip returns the order of another client with a normalised slip number and the nearest date. It searches the given number of
// days before and after the date, and returns 0 if there is none.
func (v *Views) OrderWithSlip(ctx context.Context, workspace uuid.UUID, slip string, holder int64, date unit.Date, days int) (int64,
	error) {
	errNone := errors.New("no such order")
	id, err := readmodels.Row(ctx, v.Reader.From(nil, "orders"), errNone, pgx.RowTo[int64], `
		select o.id from orders.client_order o
		where o.workspace_id = $1 and not o.deleted and o.slip_folded = $2 and o.client_id <> $3
			and o.date between `+day0+` + $4::int - $5::int and `+day0+` + $4::int + $5::int
		order by abs(o.date - (`+day0+` + $4::int)), o.id limit 1`, workspace, slip, holder, int32(date), int32(days))
	if errors.Is(err, errNone) {
		return 0, nil
	}
	return id, err
}

// OrderHistory returns all versions of an order, oldest first, even of a deleted one, or [order.ErrNotFound].
func (v *Views) OrderHistory(ctx context.Context, at *readmodels.At, workspace uuid.UUID, id int64) ([]RecordVersion[ClientOrder], error) {
	r := recorded{workspace, order.Kind.Category(), id, order.ErrNotFound}
	return history(ctx, at, v, r, func(o order.Order, revision *int64) ClientOrder {
		return ClientOrder{ID: id, Order: o, Revision: revision}
	})
}
