package ledger

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/shopspring/decimal"

	"bahi/commands"
	flows "bahi/commands/ledger"
	"bahi/domain/fault"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/domain/unit"
	"bahi/http/api"
	"bahi/readmodels"
	views "bahi/readmodels/ledger"
)

// ByRow names a row of an account.
type ByRow struct {
	ByAccount

	Row int64 `path:"row_id" minimum:"1" doc:"The row's id"`
}

// EditBankRow is the body of an edit: what is to change, and of which row.
type EditBankRow struct {
	ID    *int64 `json:"id,omitempty" doc:"The row's id"`
	RowID *int64 `json:"row_id,omitempty" doc:"Another name for id"`
	book.EditRow[bank.Entry, bank.Entry]
}

// row answers which row is meant: the body's id or row_id, or the query's row_id.
func (b EditBankRow) row(query int64) (row int64, err error) {
	if query != 0 {
		row = query
	}
	for _, given := range []*int64{b.ID, b.RowID} {
		switch {
		case given == nil:
		case row != 0 && row != *given:
			return 0, fault.Fields(fault.Field{Field: "id", Message: "is not the row that row_id names"})
		default:
			row = *given
		}
	}
	if row == 0 {
		return 0, fault.Fields(fault.Field{Field: "id", Message: "is required: the id of the row"})
	}
	return row, nil
}

// answered are fields of a row that a read of it has, and a write ignores.
var answered = []string{"balance", "revision", "void", "reverses", "reversed_by"}

// BankRows registers what is done to the rows of an account.
func (r *Routes) BankRows() {
	reads := []string{"books"}
	fields := append([]string{"id"}, answered...)
	api.Handle(r.API, api.Op{
		ID: "read-bank-ledger", Method: "GET", Path: "/bank-ledger/{bank_account_id}",
		Summary: "Read the rows of a bank account with the running balance",
		Tags:    tags, Area: area, Limit: limit, Reads: reads, StrictQuery: true,
	}, func(ctx context.Context, in *struct {
		ByAccount
		Selection
	}) (*struct {
		Total int64 `header:"X-Total-Count"`
		Body  []BankRow
	}, error) {
		sel, err := r.selection(ctx, in.Selection)
		if err != nil {
			return nil, err
		}
		rows, total, err := r.Views.Rows(ctx, workspace(ctx), bank.Ledger.Name, in.Account, sel, bank.ErrNoAccount)
		if err != nil {
			return nil, err
		}
		return &struct {
			Total int64 `header:"X-Total-Count"`
			Body  []BankRow
		}{total, bankRows(rows)}, nil
	})
	api.Handle(r.API, api.Op{
		ID: "add-bank-row", Method: "POST", Path: "/bank-ledger/{bank_account_id}", Summary: "Post a row to a bank account",
		Tags: tags, Area: area, Limit: limit, Reads: reads, StrictBody: true, ReadOnly: fields, DryRun: true,
	}, func(ctx context.Context, in *struct {
		ByAccount
		Body book.AddRow[bank.Entry, bank.Entry]
	}) (*api.Tagged[BankRow], error) {
		out, err := flows.AddRow(ctx, api.Request(ctx), r.Books, bank.Ledger, in.Account, in.Body)
		return r.rowWritten(ctx, in.Account, out, err)
	})
	api.Handle(r.API, api.Op{
		ID: "edit-bank-row", Method: "PUT", Path: "/bank-ledger/{bank_account_id}", Summary: "Change a row of a bank account",
		Tags: tags, Area: area, Limit: limit, Reads: reads, StrictBody: true, ReadOnly: answered, DryRun: true,
	}, func(ctx context.Context, in *struct {
		ByAccount
		Row  int64 `query:"row_id" minimum:"0" doc:"The row's id, where the body has none"`
		Body EditBankRow
	}) (*api.Tagged[BankRow], error) {
		row, err := in.Body.row(in.Row)
		if err != nil {
			return nil, err
		}
		out, err := flows.EditRow(ctx, api.Request(ctx), r.Books, bank.Ledger, in.Account, row, in.Body.EditRow)
		return r.rowWritten(ctx, in.Account, out, err)
	})
	api.Handle(r.API, api.Op{
		ID: "get-bank-row", Method: "GET", Path: "/bank-ledger/{bank_account_id}/row/{row_id}", Summary: "Read a row with the balance after it",
		Tags: tags, Area: area, Limit: limit, Reads: reads, StrictQuery: true,
	}, func(ctx context.Context, in *struct {
		ByRow
		AsOf
	}) (*api.Tagged[BankRow], error) {
		as, err := r.as(ctx, in.AsOf)
		if err != nil {
			return nil, err
		}
		row, err := r.Views.Row(ctx, workspace(ctx), bank.Ledger.Name, in.Account, in.Row, as, bank.ErrNoRow)
		if err != nil {
			return nil, err
		}
		return &api.Tagged[BankRow]{ETag: api.Revision(row.Revision), Body: bankRow(row)}, nil
	})
	api.Handle(r.API, api.Op{
		ID: "delete-bank-row", Method: "DELETE", Path: "/bank-ledger/{bank_account_id}/row/{row_id}", Summary: "Delete a row",
		Tags: tags, Area: area, Limit: limit, Reads: reads, DryRun: true,
	}, func(ctx context.Context, in *ByRow) (*api.Nothing, error) {
		out, err := flows.DeleteRow(ctx, api.Request(ctx), r.Books, bank.Ledger, in.Account, in.Row)
		if err != nil {
			return nil, err
		}
		api.Wrote(ctx, out.Position, out.Replayed)
		return &api.Nothing{}, nil
	})
	api.Handle(r.API, api.Op{
		ID: "read-bank-row-history", Method: "GET", Path: "/bank-ledger/{bank_account_id}/row/{row_id}/history",
		Summary: "Read every version of a row, oldest first: who, when, why, before, after",
		Tags:    tags, Area: area, Limit: limit, Reads: reads, StrictQuery: true,
	}, func(ctx context.Context, in *ByRow) (*api.Body[[]BankRowVersion], error) {
		versions, err := r.Views.History(ctx, workspace(ctx), bank.Ledger.Name, in.Account, in.Row, bank.ErrNoRow)
		return api.Answer(bankHistory(in.Row, versions), err)
	})
	r.bankBulk(reads, fields)
}

// BankRowsPosted is the answer to rows posted in bulk.
type BankRowsPosted struct {
	Rows []BankRow `json:"rows"`
}

func (r *Routes) bankBulk(reads, fields []string) {
	prefixed := make([]string, len(fields))
	for i, f := range fields {
		prefixed[i] = "rows." + f
	}
	api.Handle(r.API, api.Op{
		ID: "add-bank-rows", Method: "POST", Path: "/bank-ledger/{bank_account_id}/rows", Summary: "Post up to 1,000 rows, all or none",
		Tags: tags, Area: area, Limit: limit, Reads: reads, StrictBody: true, ReadOnly: prefixed, DryRun: true, MaxBody: bulkBytes,
	}, func(ctx context.Context, in *struct {
		ByAccount
		Body book.PostRows[bank.Entry, bank.Entry]
	}) (*api.Body[BankRowsPosted], error) {
		out, err := flows.PostRows(ctx, api.Request(ctx), r.Books, bank.Ledger, in.Account, in.Body)
		if err != nil {
			return nil, err
		}
		if !api.Request(ctx).DryRun {
			api.Wrote(ctx, out.Position, out.Replayed)
		}
		rows, err := r.rowsWritten(ctx, in.Account, out)
		return api.Answer(BankRowsPosted{Rows: rows}, err)
	})
}

// rowsWritten answers rows as a command left them, with the balance after each in a dry run or when the
// caller wants it.
func (r *Routes) rowsWritten(ctx context.Context, account int64, out commands.Outcome[bank.Bulk]) ([]BankRow, error) {
	rows := make([]BankRow, len(out.State.Rows))
	first, noID := strconv.ParseInt(out.ID, 10, 64)
	for i := range out.State.Rows {
		rows[i] = written("", out.State.Added(i).Evolve(bank.Row{}), 0)
		if id := first + int64(i); noID == nil {
			rows[i].ID = &id
		}
	}
	if api.Request(ctx).DryRun {
		return rows, r.balancesIf(ctx, account, rows)
	}
	if api.Prefers(ctx) {
		read, err := r.Views.RowsFrom(readmodels.AtLeast(ctx, out.Position), workspace(ctx), bank.Ledger.Name, account, first, int64(len(rows)), asWritten(out))
		if err == nil { // else the write is answered without them: it is in the log
			for i := range read {
				rows[read[i].ID-first].Balance = &read[i].Cash
			}
		}
	}
	return rows, nil
}

// asWritten is the state that the answer to a write shows: the newest, or for a repeated request that
// of the first time.
func asWritten[S any](out commands.Outcome[S]) (as views.As) {
	if out.Replayed {
		as.KnownAt = &out.Position
	}
	return as
}

// balancesIf notes the balances after rows that are not in the books yet: each counts what is there, and
// those of its fellows that come before it.
func (r *Routes) balancesIf(ctx context.Context, account int64, rows []BankRow) error {
	order := make([]int, len(rows))
	var dates []unit.Date
	for i := range rows {
		order[i] = i
		rows[i].Revision = nil
		if !slices.Contains(dates, rows[i].Date) {
			dates = append(dates, rows[i].Date)
		}
	}
	there, err := r.Views.BalancesOn(ctx, workspace(ctx), bank.Ledger.Name, account, dates, bank.ErrNoAccount)
	if err != nil {
		return err
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(rows[i].Date, rows[j].Date) })
	added := decimal.Zero
	for _, i := range order {
		change, err := counts(rows[i])
		if err != nil {
			return err
		}
		added = added.Add(change.Cash.Decimal())
		rows[i].Balance = &unit.Sum{Decimal: there[rows[i].Date].Add(added)}
	}
	return nil
}

// rowWritten answers a row as a command left it, with the balance after it in a dry run or when the
// caller wants it.
func (r *Routes) rowWritten(ctx context.Context, account int64, out commands.Outcome[bank.Row], err error) (*api.Tagged[BankRow], error) {
	if err != nil {
		return nil, err
	}
	row := written(out.ID, out.State, out.Revision)
	if api.Request(ctx).DryRun {
		row.Balance, err = r.balanceIf(ctx, account, row)
		if out.Revision < 0 {
			row.Revision = nil
		}
		return &api.Tagged[BankRow]{ETag: tag(out), Body: row}, err
	}
	api.Wrote(ctx, out.Position, out.Replayed)
	if api.Prefers(ctx) {
		read, err := r.Views.Row(readmodels.AtLeast(ctx, out.Position), workspace(ctx), bank.Ledger.Name, account, *row.ID, asWritten(out), bank.ErrNoRow)
		if err == nil { // else the write is answered without it: it is in the log
			row.Balance = &read.Cash
		}
	}
	return &api.Tagged[BankRow]{ETag: tag(out), Body: row}, nil
}

// lastRow is behind every row of a day.
const lastRow = 1<<40 - 1

// balanceIf answers the balance after a row that is not in the books yet, or stands there otherwise.
func (r *Routes) balanceIf(ctx context.Context, account int64, row BankRow) (*unit.Sum, error) {
	place := int64(lastRow)
	if row.ID != nil {
		place = *row.ID
	}
	balance, _, err := r.Views.BalanceAt(ctx, workspace(ctx), bank.Ledger.Name, account, row.Date, place, bank.ErrNoAccount)
	if err != nil {
		return nil, err
	}
	after, err := counts(row)
	if err != nil {
		return nil, err
	}
	balance.Decimal = balance.Add(after.Cash.Decimal())
	if row.ID == nil {
		return &balance, nil
	}
	now, err := r.Views.Row(ctx, workspace(ctx), bank.Ledger.Name, account, *row.ID, views.As{}, bank.ErrNoRow)
	if err != nil {
		return nil, err
	}
	if now.Date <= row.Date { // what it counts now is in the balance
		before, err := counts(bankRow(now))
		if err != nil {
			return nil, err
		}
		balance.Decimal = balance.Sub(before.Cash.Decimal())
	}
	return &balance, nil
}

// counts is what a row adds to the balance.
func counts(row BankRow) (book.Effect, error) {
	if row.Void {
		return book.Effect{}, nil
	}
	ins, err := row.In.lines()
	if err != nil {
		return book.Effect{}, err
	}
	outs, err := row.Out.lines()
	return sum(ins).Minus(sum(outs)), err
}
