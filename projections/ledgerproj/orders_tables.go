package ledgerproj

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"bahi/domain/event"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/order"
	"bahi/domain/ledger/takada"
	"bahi/domain/unit"
	"bahi/projections"
)

// load reads the records to which the batch's events refer.
func (f *orders) load(ctx context.Context, events []event.Recorded[any]) error {
	var (
		accounts, orders, takadas []int64
	)
	for i := range events {
		r := &events[i]
		number, _ := numbered(r) // fold refuses a stream without a number
		switch e := r.Data.(type) {
		case event.Event[book.Account]:
			accounts = append(accounts, number)
		case event.Event[order.State]:
			orders = append(orders, number)
		case event.Event[takada.State]:
			takadas = append(takadas, number)
			switch e := e.(type) {
			case takada.Added:
				orders = append(orders, e.Order)
			case takada.Edited:
				orders = append(orders, e.Order.Value)
			}
		}
	}
	if err := f.loadTakadas(ctx, takadas); err != nil {
		return err
	}
	if err := f.loadOrders(ctx, orders); err != nil {
		return err
	}
	return f.loadAccounts(ctx, accounts)
}

// loadTakadas reads takadas with their orders.
func (f *orders) loadTakadas(ctx context.Context, ids []int64) error {
	if ids = missing(f.takadas, ids); len(ids) == 0 {
		return nil
	}
	found, _ := f.tx.Query(ctx, `select id, workspace_id, revision, state from takada where id = any($1)`, ids)
	var of []int64
	err := eachRecord(found, func(one record[takada.State]) {
		f.takadas[one.id] = &takadaRecord{one}
		of = append(of, one.state.Order)
	})
	if err != nil {
		return err
	}
	return f.loadOrders(ctx, of)
}

// loadOrders reads orders.
func (f *orders) loadOrders(ctx context.Context, ids []int64) error {
	if ids = missing(f.orders, ids); len(ids) == 0 {
		return nil
	}
	found, _ := f.tx.Query(ctx, `
		select id, workspace_id, revision, state, delivered_mg, takadas, coalesce(draft_id, 0)
		from client_order where id = any($1)`, ids)
	var delivered, takadas, draft int64
	return eachRecord(found, func(one record[order.State]) {
		f.orders[one.id] = &orderRecord{record: one, delivered: unit.Grams(delivered), takadas: takadas, draft: draft}
	}, &delivered, &takadas, &draft)
}

// eachRecord calls take for each record. more receives the additional columns.
func eachRecord[S any](found pgx.Rows, take func(record[S]), more ...any) error {
	var (
		one   record[S]
		state string
	)
	_, err := pgx.ForEachRow(found, append([]any{&one.id, &one.workspace, &one.revision, &state}, more...), func() error {
		read := one
		err := json.Unmarshal([]byte(state), &read.state)
		take(read)
		return err
	})
	return err
}

func (f *orders) loadAccounts(ctx context.Context, ids []int64) error {
	if ids = missing(f.accounts, ids); len(ids) == 0 {
		return nil
	}
	found, _ := f.tx.Query(ctx, `
		select id, ledger, workspace_id, name, opened_position, coalesce(deleted_position, 0) from account where id = any($1)`, ids)
	var (
		a               account
		opened, deleted int64
	)
	_, err := pgx.ForEachRow(found, []any{&a.id, &a.ledger, &a.workspace, &a.Name, &opened, &deleted}, func() error {
		one := a
		one.Opened, one.Deleted = event.Position(opened), event.Position(deleted)
		f.accounts[a.id] = &one
		return nil
	})
	return err
}

// write writes the batch's result to the tables.
func (f *orders) write(b *projections.Batch) error {
	for _, a := range f.accounts {
		if a.changed {
			b.Exec(`
				insert into account (id, ledger, workspace_id, name, opened_position, deleted_position) values ($1, $2, $3, $4, $5, nullif($6::bigint,
					0))
				on conflict (id) do update set name = excluded.name, deleted_position = excluded.deleted_position`,
				a.id, a.ledger, a.workspace, a.Name, int64(a.Opened), int64(a.Deleted))
		}
	}
	for _, o := range f.orders {
		if !o.changed {
			continue
		}
		state, err := json.Marshal(o.state)
		if err != nil {
			return err
		}
		b.Exec(`
			insert into client_order (id, workspace_id, client_id, date, slip_folded, weight_mg, delivered_mg, takadas, state, revision, deleted,
				draft_id)
			values ($1, $2, $3, $4::text::date, $5, $6, $7, $8, $9, $10, $11, nullif($12::bigint, 0))
			on conflict (id) do update set client_id = excluded.client_id, date = excluded.date, slip_folded = excluded.slip_folded,
				weight_mg = excluded.weight_mg, delivered_mg = excluded.delivered_mg, takadas = excluded.takadas, state = excluded.state,
				revision = excluded.revision, deleted = excluded.deleted`,
			o.id, o.workspace, o.state.Client, o.state.Date.String(), order.NormalisedSlip(o.state.Slip), int64(o.state.Weight()),
			int64(o.delivered), o.takadas,
			string(state), o.revision, !o.state.Exists(), o.draft)
	}
	for _, t := range f.takadas {
		if !t.changed {
			continue
		}
		state, err := json.Marshal(t.state)
		if err != nil {
			return err
		}
		b.Exec(`
			insert into takada (id, workspace_id, order_id, karigars, state, revision, deleted)
			values ($1, $2, $3, coalesce($4::bigint[], '{}'), $5, $6, $7)
			on conflict (id) do update set order_id = excluded.order_id, karigars = excluded.karigars, state = excluded.state,
				revision = excluded.revision,
				deleted = excluded.deleted`,
			t.id, t.workspace, t.state.Order, t.state.Karigars(), string(state), t.revision, !t.state.Exists())
	}
	for _, v := range f.versions {
		b.Exec(`
			insert into record_version (kind, id, position, workspace_id, client_id, state, revision, actor, reason, recorded_at)
			values ($1, $2, $3, $4, $5, $6, $7, $8, nullif($9, ''), $10)`,
			v.kind, v.id, int64(v.by.Position), v.by.Meta.Workspace, v.client, v.state, v.revision, v.by.Meta.Actor, v.by.Meta.Reason, v.by.At)
	}
	return nil
}
