package ledgerhttp

import (
	"cmp"
	"context"
	"slices"

	"bahi/commands"
	"bahi/commands/ledgercmd"
	"bahi/domain/ledger/book"
	"bahi/domain/unit"
	"bahi/http/api"
	"bahi/readmodels/ledgerview"
)

// rowWritten returns a row after a command. It has the balances after it in a dry run, or if the caller requests them.
func (o operations[In, Out]) rowWritten(ctx context.Context, account int64, out commands.Outcome[book.Row],
	err error) (*api.Tagged[Row[In, Out]], error) {
	if err != nil {
		return nil, err
	}
	row := shownRow[In, Out](out.Number(), &out.Revision, out.State)
	if api.Request(ctx).DryRun {
		balance, err := o.balanceIf(ctx, account, row.ID, out.State)
		row.Balance, row.Metal = balances(o.l, balance)
		if out.Revision < 0 {
			row.Revision = nil
		}
		return &api.Tagged[Row[In, Out]]{ETag: tag(out), Body: row}, err
	}
	api.SetWriteHeaders(ctx, out.Position, out.Replayed)
	if api.Prefers(ctx) {
		read, err := o.Views.Row(ctx, api.At(ctx).After(out.Position), accountOf(ctx, o.l, account), row.ID, asWritten(out.Position,
			out.Replayed))
		if err == nil { // otherwise the response omits them: the write is already in the log
			row.Balance, row.Metal = balances(o.l, read.Balance)
		}
	}
	return &api.Tagged[Row[In, Out]]{ETag: tag(out), Body: row}, nil
}

// rowsWritten returns rows after a command. Each has the balances after it in a dry run, or if the caller requests them.
func (o operations[In, Out]) rowsWritten(ctx context.Context, account int64, posted ledgercmd.Posted) ([]Row[In, Out], error) {
	rows := make([]Row[In, Out], len(posted.Rows))
	for i, row := range posted.Rows {
		var id int64
		if posted.First != 0 {
			id = posted.First + int64(i)
		}
		revision := int64(0)
		if row.PairedWith != 0 { // the next event of the transaction pairs the rows
			revision = 1
		}
		rows[i] = shownRow[In, Out](id, &revision, row)
	}
	if api.Request(ctx).DryRun {
		return rows, o.balancesIf(ctx, account, rows, posted.Rows)
	}
	if api.Prefers(ctx) {
		read, err := o.Views.RowsFrom(ctx, api.At(ctx).After(posted.Position), accountOf(ctx, o.l, account), posted.First,
			int64(len(rows)), asWritten(posted.Position, posted.Replayed))
		if err == nil { // otherwise the response omits them: the write is already in the log
			for _, r := range read {
				row := &rows[r.ID-posted.First]
				row.Balance, row.Metal = balances(o.l, r.Balance)
			}
		}
	}
	return rows, nil
}

// balancesIf sets the balances after rows that are not stored. Each is the sum of the stored rows before it and of the
// earlier new rows.
func (o operations[In, Out]) balancesIf(ctx context.Context, account int64, rows []Row[In, Out], added []book.Row) error {
	order := make([]int, len(rows))
	var dates []unit.Date
	for i := range rows {
		order[i] = i
		rows[i].Revision = nil
		if !slices.Contains(dates, rows[i].Date) {
			dates = append(dates, rows[i].Date)
		}
	}
	there, err := o.Views.BalancesAt(ctx, api.At(ctx), accountOf(ctx, o.l, account), ledgerview.LastRow, dates...)
	if err != nil {
		return err
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(rows[i].Date, rows[j].Date) })
	var before ledgerview.Balance
	for _, i := range order {
		before = before.Plus(net(added[i]))
		on := there[rows[i].Date]
		rows[i].Balance, rows[i].Metal = balances(o.l, ledgerview.Balance{
			Cash: unit.Sum{Decimal: on.Cash.Add(before.Cash.Decimal)}, Fine: unit.Sum{Decimal: on.Fine.Add(before.Fine.Decimal)},
		})
	}
	return nil
}

// net returns the effect of a row on its account.
func net(r book.Row) book.Effect {
	in, out := r.Counts()
	return in.Minus(out)
}

// balanceIf returns an account's balance after a row that is not stored, or is stored with other values.
func (o operations[In, Out]) balanceIf(ctx context.Context, account int64, id int64, row book.Row) (ledgerview.Balance, error) {
	found, err := o.Views.BalancesAt(ctx, api.At(ctx), accountOf(ctx, o.l, account), cmp.Or(id, ledgerview.LastRow), row.Date)
	balance := found[row.Date].Plus(net(row))
	if err != nil || id == 0 {
		return balance, err
	}
	now, err := o.Views.Row(ctx, api.At(ctx), accountOf(ctx, o.l, account), id, ledgerview.As{})
	if err != nil || now.Date > row.Date {
		return balance, err
	}
	counted, err := o.l.Measured(now.Row) // its present effect is part of the balance
	return balance.Plus(book.Effect{}.Minus(net(counted))), err
}
