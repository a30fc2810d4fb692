package ledger

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/shopspring/decimal"

	"bahi/domain/event"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/bookslock"
	"bahi/domain/ledger/khata"
	"bahi/domain/unit"
)

// load reads what the batch's events refer to: rows that they change, accounts, locks.
func (f *books) load(ctx context.Context, tx pgx.Tx, events []event.Recorded[any]) error {
	var (
		rows, accounts []int64
		workspaces     []uuid.UUID
		known          = map[uuid.UUID]bool{}
	)
	for i := range events {
		r := &events[i]
		if !known[r.Meta.Workspace] {
			known[r.Meta.Workspace] = true
			workspaces = append(workspaces, r.Meta.Workspace)
		}
		if e, posts := r.Data.(posting); posts {
			accounts = append(accounts, e.PostsTo())
		}
		number, err := numbered(r)
		switch e := r.Data.(type) {
		case event.Event[book.Account]:
			accounts = append(accounts, number)
		case book.RowAdded:
		case event.Event[book.Row]:
			rows = append(rows, number)
		case book.RowsReversed:
			for _, row := range e.Rows {
				rows = append(rows, row.Reverses)
			}
		case khata.Submitted:
			for _, row := range e.Rows {
				accounts = append(accounts, row.Account)
			}
		case bookslock.Moved:
			err = nil // it is named after the workspace
		}
		if err != nil {
			return err
		}
	}
	if err := f.loadRows(ctx, tx, distinct(rows)); err != nil {
		return err
	}
	for _, v := range f.current {
		accounts = append(accounts, v.Account)
	}
	if err := f.loadAccounts(ctx, tx, missing(f.accounts, accounts)); err != nil {
		return err
	}
	return f.loadLocks(ctx, tx, missing(f.locks, workspaces))
}

func (f *books) loadAccounts(ctx context.Context, tx pgx.Tx, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	found, _ := tx.Query(ctx, `
		select id, ledger, workspace_id, name, type, revision, opened_position, deleted_position from account where id = any($1)`, ids)
	var (
		a               account
		kind            *int
		opened, deleted int64
	)
	_, err := pgx.ForEachRow(found, []any{&a.id, &a.ledger, &a.workspace, &a.Name, &kind, &a.revision, &opened, &deleted}, func() error {
		one := a
		one.Type, one.Opened = kind, event.Position(opened)
		if deleted != stillCurrent {
			one.Deleted = event.Position(deleted)
		}
		f.accounts[a.id] = &one
		return nil
	})
	return err
}

func (f *books) loadLocks(ctx context.Context, tx pgx.Tx, workspaces []uuid.UUID) error {
	if len(workspaces) == 0 {
		return nil
	}
	for _, w := range workspaces {
		f.locks[w] = &lock{} // of those that never had one, too
	}
	from, args := `books_lock where workspace_id = any($1)`, []any{workspaces}
	if f.filling {
		from, args = `filling_lock where workspace_id = any($1) and part = $2`, append(args, f.part.Nth)
	}
	found, _ := tx.Query(ctx, `select workspace_id, locked_through::text, moved_position, revision from `+from, args...)
	var (
		workspace uuid.UUID
		through   *string
		moved     int64
		revision  int64
	)
	_, err := pgx.ForEachRow(found, []any{&workspace, &through, &moved, &revision}, func() error {
		l, err := lockOf(through, moved)
		l.revision = revision
		f.locks[workspace] = l
		return err
	})
	return err
}

// lockOf returns a lock from its columns.
func lockOf(through *string, moved int64) (*lock, error) {
	l := &lock{moved: event.Position(moved)}
	if through == nil {
		return l, nil
	}
	d, err := unit.ParseDate(*through)
	l.through = &d
	return l, err
}

func (f *books) loadRows(ctx context.Context, tx pgx.Tx, rows []int64) error {
	if len(rows) == 0 {
		return nil
	}
	found, _ := tx.Query(ctx, `
		select row_id, from_position, account_id, date::text, in_entries, out_entries, coalesce(warnings, ''),
			in_cash::text, in_fine::text, out_cash::text, out_fine::text, revision, deleted, void,
			coalesce(bulk, 0), coalesce(reverses, 0), coalesce(reversed_by, 0), coalesce(reversal, 0)
		from row_version where row_id = any($1) and to_position = $2`, rows, int64(stillCurrent))
	var (
		v             version
		date, in, out string
		sums          [4]decimal.Decimal
	)
	_, err := pgx.ForEachRow(found, []any{
		&v.row, &v.from, &v.Account, &date, &in, &out, (*string)(&v.Warnings),
		&sums[0], &sums[1], &sums[2], &sums[3], &v.revision, &v.Deleted, &v.Void,
		&v.bulk, &v.Reverses, &v.ReversedBy, &v.Reserved,
	}, func() (err error) {
		one := v
		one.to, one.stored = stillCurrent, true
		one.In = book.StoredSide(in, book.Effect{Cash: unit.MoneyOf(sums[0]), Fine: unit.GramsOf(sums[1])})
		one.Out = book.StoredSide(out, book.Effect{Cash: unit.MoneyOf(sums[2]), Fine: unit.GramsOf(sums[3])})
		one.ReservedAt = event.Position(one.from) // some position before this batch
		if one.Date, err = unit.ParseDate(date); f.part.Has(v.Account) {
			f.current[v.row] = &one
		}
		return err
	})
	return err
}

// missing returns those of the keys, each once, that the map does not have.
func missing[K comparable, V any](known map[K]V, keys []K) (out []K) {
	seen := map[K]bool{}
	for _, k := range keys {
		if _, has := known[k]; !has && !seen[k] {
			seen[k] = true
			out = append(out, k)
		}
	}
	return out
}

func distinct(ids []int64) []int64 {
	seen := make(map[int64]bool, len(ids))
	out := make([]int64, 0, len(ids))
	for _, id := range ids {
		if !seen[id] {
			seen[id] = true
			out = append(out, id)
		}
	}
	return out
}
