package ledgerview_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/commands/ledgercmd"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/karigar"
	"bahi/domain/unit"
	"bahi/readmodels/ledgerview"
)

func TestASideIsSummedUpBeforeADay(t *testing.T) {
	t.Parallel()
	o := open(t)
	workspace := uuid.New()
	ctx, req := o.ctx, as(workspace)
	a, err := ledgercmd.OpenAccount(ctx, req, o.books, karigar.Ledger, book.OpenAccount{Name: "Imran"})
	require.NoError(t, err)
	account := number(t, a.ID)
	before := func(out bool, day unit.Date, as ledgerview.As) [2]string {
		sum, err := o.views.SideBefore(ctx, nil, ledgerview.AccountKey{Workspace: workspace, Ledger: karigar.Ledger, ID: account}, out, day, as)
		require.NoError(t, err)
		return [2]string{sum.Cash.String(), sum.Fine.String()}
	}
	require.Equal(t, [2]string{"0", "0"}, before(false, today, ledgerview.As{}))
	add := func(day unit.Date, other unit.Money, fine unit.Grams) int64 {
		out, err := ledgercmd.AddRow(ctx, req, o.books, karigar.Ledger, account, book.RowInput{
			Date: &day, In: book.Entries([]karigar.In{{Other: &other}}), Out: book.Entries([]karigar.Out{{FineWeight: &fine}}),
		})
		require.NoError(t, err)
		return number(t, out.ID)
	}
	add(today-5, 40_00, 500_000)
	add(today, 7_00, 1_000)
	voided, deleted := add(today-4, 1, 1), add(today-4, 2, 2)
	out, err := ledgercmd.VoidRow(ctx, req, o.books, karigar.Ledger, account, voided)
	require.NoError(t, err)
	_, err = ledgercmd.DeleteRow(ctx, req, o.books, karigar.Ledger, account, deleted)
	require.NoError(t, err)

	require.Equal(t, [2]string{"40", "0"}, before(false, today, ledgerview.As{}))
	require.Equal(t, [2]string{"0", "500"}, before(true, today, ledgerview.As{}))
	require.Equal(t, [2]string{"47", "0"}, before(false, today+1, ledgerview.As{}))
	require.Equal(t, [2]string{"0", "0"}, before(false, today-5, ledgerview.As{}))
	require.Equal(t, [2]string{"0", "500.002"}, before(true, today, ledgerview.As{KnownAt: &out.Position}), "the row that was deleted later")
	_, err = o.views.SideBefore(ctx, nil, ledgerview.AccountKey{Workspace: uuid.New(), Ledger: karigar.Ledger, ID: account}, true, today,
		ledgerview.As{})
	require.ErrorIs(t, err, karigar.Ledger.NoAccount)
}
