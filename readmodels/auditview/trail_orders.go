package auditview

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/event"
	"bahi/domain/ledger/client"
	"bahi/domain/ledger/order"
	"bahi/domain/ledger/takada"
	"bahi/domain/unit"
	"bahi/readmodels"
	"bahi/readmodels/ledgerview"
)

// recordKinds are the categories of orders and takadas. The values are the categories of streams with events that change or delete such
// records.
var recordKinds = map[string][]string{
	order.Kind.Category():  {client.Ledger.Accounts.Category()},
	takada.Kind.Category(): {client.Ledger.Accounts.Category(), order.Kind.Category()},
}

// IsRecord reports whether the records are orders or takadas.
func (k Kind) IsRecord() bool { return recordKinds[string(k)] != nil }

// SQL of the first positions at which orders and takadas changed, in order.
var (
	placesOfOrder   = placesOfKind + `'clientorder' and r.id = @place and ` + between(`r.position`)
	placesOfTakada  = placesOfKind + `'takada' and r.id = @place and ` + between(`r.position`)
	placesOfRecords = `(select distinct r.position from orders.record_version r where r.client_id = @place and ` + between(`r.position`)
)

const placesOfKind = `(select r.position from orders.record_version r where r.kind = `

// recorded is a version of an order or a takada with the version before.
type recorded struct {
	Position  int64
	Kind      string
	ID        int64
	Workspace uuid.UUID
	Client    int64
	Name      string // name of the client at the time
	State     *string
	Before    *string
}

// records returns the changes of orders and takadas by events, by position. An event may delete many records.
func (v *Trails) records(ctx context.Context, at *readmodels.At, events []logged) (map[event.Position][]recorded, error) {
	var positions []int64
	for _, e := range events {
		if e.kind.IsRecord() || e.kind.IsAccount() {
			positions = append(positions, int64(e.position))
		}
	}
	if positions == nil {
		return nil, nil
	}
	found, err := readmodels.Rows(ctx, v.Reader.From(at, "books", "orders"), pgx.RowToStructByPos[recorded], `
		select r.position, r.kind, r.id, r.workspace_id, r.client_id, n.name, r.state, b.state
		from orders.record_version r
		join lateral (
			select n.name from books.account_name n where n.account_id = r.client_id and n.from_position <= r.position order by n.from_position desc
				limit 1
		) n on true
		left join lateral (
			select p.state from orders.record_version p where p.kind = r.kind and p.id = r.id and p.position < r.position order by p.position desc
				limit 1
		) b on true
		where r.position = any($1) order by r.position, r.kind, r.id`, positions)
	all := map[event.Position][]recorded{}
	for _, one := range found {
		all[event.Position(one.Position)] = append(all[event.Position(one.Position)], one)
	}
	return all, err
}

// change returns the change of a record, and false if the filter does not select the change.
func (r recorded) change(f TrailFilter, e logged) (Change, bool) {
	before, after := recordFields(r.Before), recordFields(r.State)
	c := e.change(Kind(r.Kind), r.ID)
	c.Change, c.Ledger = ledgerview.RecordChange(r.Before != nil, r.State != nil), client.Ledger.Name
	c.Account, c.Fields = &Named{ID: r.Client, Name: r.Name}, differences(before, after)
	dated := f.First == nil && f.Last == nil
	for _, fields := range []map[string]json.RawMessage{before, after} {
		var day unit.Date
		if raw, there := fields["date"]; there && json.Unmarshal(raw, &day) == nil {
			c.Date, dated = &day, dated || f.covers(day)
		}
	}
	return c, dated && (f.Account == 0 || f.Account == r.Client) && (f.Workspace == nil || *f.Workspace == r.Workspace) &&
		matches(f.Party, slices.Concat([]string{r.Name}, written(before), written(after))...)
}

// recordFields returns the fields of an order or a takada and of its items, by name. A nil state has none.
func recordFields(state *string) map[string]json.RawMessage {
	all := map[string]json.RawMessage{}
	if state == nil {
		return all
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(*state), &fields) != nil {
		return all
	}
	for name, value := range fields {
		if value[0] == '[' {
			flatten(all, name, value)
		} else {
			all[name] = value
		}
	}
	for name, value := range all {
		if string(value) == "null" {
			delete(all, name)
		}
	}
	return all
}
