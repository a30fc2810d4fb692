package ledgerview_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/commands/ledgercmd"
	"bahi/domain/event"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/domain/unit"
	"bahi/projections"
	"bahi/readmodels/ledgerview"
)

func TestPagesOfACrowdedDayHaveTheirBalances(t *testing.T) {
	t.Parallel()
	const (
		bulks, bulk = 17, 1000
		all         = bulks * bulk
		size        = 7
	)
	o := open(t)
	workspace := uuid.New()
	ctx, req := o.ctx, as(workspace)
	opened, err := ledgercmd.OpenAccount(ctx, req, o.books, bank.Ledger, book.OpenAccount{Name: "SBI"})
	require.NoError(t, err)
	account := number(t, opened.ID)
	first := int64(0)
	for n := range bulks {
		var rows []book.RowInput
		for i := range bulk {
			rows = append(rows, book.RowInput{Date: new(today), In: book.Entries([]bank.Entry{{Amount: unit.Money(1 + n*bulk + i)}})})
		}
		out, err := ledgercmd.PostRows(ctx, req, o.books, bank.Ledger, account, rows)
		require.NoError(t, err)
		if n == 0 {
			first = out.First
		}
	}
	balance := func(rows int) unit.Money { return unit.Money(rows * (rows + 1) / 2) }
	for _, page := range []int{1, 2, 100, 1200, 2341, all/size + 1} {
		rows, total, err := o.views.Rows(ctx, nil, ledgerview.AccountKey{Workspace: workspace, Ledger: bank.Ledger, ID: account},
			ledgerview.Selection{Page: page, PageSize: size})
		require.NoError(t, err)
		require.EqualValues(t, all, total)
		require.NotEmpty(t, rows)
		for i, r := range rows {
			want := balance((page-1)*size + i + 1)
			require.True(t, want.Decimal().Equal(r.Cash.Decimal), "page %d, row %d: %s, not %s", page, i, r.Cash, want)
		}
		one, err := o.views.Row(ctx, nil, ledgerview.AccountKey{Workspace: workspace, Ledger: bank.Ledger, ID: account}, rows[0].ID,
			ledgerview.As{})
		require.NoError(t, err)
		require.Equal(t, rows[0].Cash.String(), one.Cash.String())
	}
	there, err := o.views.BalanceAt(ctx, nil, ledgerview.AccountKey{Workspace: workspace, Ledger: bank.Ledger, ID: account}, today, first+all)
	require.NoError(t, err)
	require.True(t, balance(all).Decimal().Equal(there.Cash.Decimal))
}

// A statement from a day on begins with the balance before the day, and searches no later total.
func TestRowsFromADayAreNotSearched(t *testing.T) {
	t.Parallel()
	o, workspace := open(t), uuid.New()
	opened, err := ledgercmd.OpenAccount(o.ctx, as(workspace), o.books, bank.Ledger, book.OpenAccount{Name: "SBI"})
	require.NoError(t, err)
	key := ledgerview.AccountKey{Workspace: workspace, Ledger: bank.Ledger, ID: number(t, opened.ID)}
	var rows []book.RowInput
	for i := range 6 {
		rows = append(rows, book.RowInput{Date: new(today - 1 + unit.Date(i%2)), In: book.Entries([]bank.Entry{{Amount: 100}})})
	}
	_, err = ledgercmd.PostRows(o.ctx, as(workspace), o.books, bank.Ledger, key.ID, rows)
	require.NoError(t, err)
	position, err := o.store.Head(o.ctx)
	require.NoError(t, err)
	read := func(known *event.Position) []ledgerview.Row {
		rows, total, err := o.views.Rows(o.ctx, nil, key, ledgerview.Selection{As: ledgerview.As{KnownAt: known}, From: new(today), Page: 1,
			PageSize: 2})
		require.NoError(t, err)
		require.EqualValues(t, 3, total)
		require.Len(t, rows, 2)
		return rows
	}
	now, then := read(nil), read(&position)
	require.Equal(t, "4.00", now[0].Cash.StringFixed(2))
	require.Equal(t, now, then)
	_, err = o.pool.Exec(o.ctx, `delete from `+projections.SchemaName("books", 1)+`.total where level = 2 and node = $1`, int64(today))
	require.NoError(t, err)
	require.Equal(t, now, read(nil))
	require.Equal(t, then, read(&position))
}
