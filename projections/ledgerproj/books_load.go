package ledgerproj

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/shopspring/decimal"

	"bahi/domain/event"
	"bahi/domain/ledger/book"
	"bahi/domain/unit"
)

// load reads the rows and accounts to which the batch's events refer.
func (f *books) load(ctx context.Context, tx pgx.Tx, events []event.Recorded[any]) error {
	var rows, accounts []int64
	for i := range events {
		r := &events[i]
		if e, posts := r.Data.(posting); posts {
			accounts = append(accounts, e.PostsTo())
			if added, is := e.(book.RowAdded); is && added.Reverses != 0 {
				rows = append(rows, added.Reverses)
			}
			continue
		}
		number, _ := numbered(r) // fold refuses a stream without a number
		switch r.Data.(type) {
		case event.Event[book.Account]:
			accounts = append(accounts, number)
		case event.Event[book.Row]:
			rows = append(rows, number)
		}
	}
	if err := f.loadRows(ctx, tx, distinct(rows)); err != nil {
		return err
	}
	for _, v := range f.current {
		accounts = append(accounts, v.Account)
	}
	return f.loadAccounts(ctx, tx, missing(f.accounts, accounts))
}

func (f *books) loadAccounts(ctx context.Context, tx pgx.Tx, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	found, _ := tx.Query(ctx, `
		select id, ledger, workspace_id, name, type, coalesce(metal, ''), revision, opened_position,
			deleted_position from account where id = any($1)`, ids)
	var (
		a               account
		kind            *int
		opened, deleted int64
	)
	_, err := pgx.ForEachRow(found, []any{&a.id, &a.ledger, &a.workspace, &a.Name, &kind, &a.Metal, &a.revision, &opened, &deleted},
		func() error {
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

func (f *books) loadRows(ctx context.Context, tx pgx.Tx, rows []int64) error {
	if len(rows) == 0 {
		return nil
	}
	found, _ := tx.Query(ctx, `
		select row_id, from_position, account_id, date::text, in_entries, out_entries, coalesce(warnings, ''),
			in_cash::text, in_fine::text, out_cash::text, out_fine::text, loss::text, coalesce(metal, ''), revision, deleted, void,
				coalesce(reverses, 0), coalesce(reversed_by, 0),
			coalesce(paired_with, 0)
		from row_version where row_id = any($1) and to_position = $2`, rows, int64(stillCurrent))
	var (
		v             version
		date, in, out string
		metal         string
		sums          [5]decimal.Decimal
	)
	_, err := pgx.ForEachRow(found, []any{
		&v.row, &v.from, &v.Account, &date, &in, &out, (*string)(&v.Warnings),
		&sums[0], &sums[1], &sums[2], &sums[3], &sums[4], &metal, &v.revision, &v.Deleted, &v.Void, &v.Reverses, &v.ReversedBy, &v.PairedWith,
	}, func() (err error) {
		one := v
		one.to, one.stored = stillCurrent, true
		one.In = book.StoredSide(in, book.Effect{Cash: unit.MoneyOf(sums[0]), Fine: unit.GramsOf(sums[1])})
		one.Out = book.StoredSide(out, book.Effect{Cash: unit.MoneyOf(sums[2]), Fine: unit.GramsOf(sums[3])})
		one.In.Loss, one.In.Metal = unit.GramsOf(sums[4]), metal
		one.loss = one.Lost() // for a reversal only the difference is used, which is 0
		if one.Date, err = unit.ParseDate(date); f.part.Has(v.Account) {
			f.current[v.row] = &one
		}
		return err
	})
	return err
}

// missing returns the distinct keys that are not in the map.
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
