package ledgercmd_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/commands/ledgercmd"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/khata"
	"bahi/domain/unit"
	"bahi/readmodels/ledgerview"
)

// page is what is submitted of a page: a row of each of three bank accounts.
func page(t *testing.T, one, other, maker int64, date unit.Date) []khata.Asked {
	t.Helper()
	rows, err := khata.Lines([]khata.Line{
		{Ledger: "bank", Account: maker, Side: "out", Date: date, Item: "silver", Amount: new(unit.Money(7))},
		{Ledger: "bank", Account: one, Side: "in", Date: date, Item: "cash", Amount: new(unit.Money(100))},
		{Ledger: "bank", Account: other, Side: "in", Date: date, Amount: new(unit.Money(200))},
		{Ledger: "bank", Account: one, Side: "out", Date: date, Amount: new(unit.Money(50))},
	})
	require.NoError(t, err)
	return rows
}

// uploads records an upload that was read.
func (n *node) uploads(t *testing.T) int64 {
	t.Helper()
	out, err := commands.Create(t.Context(), n.Commands, as(t), khata.Kind, n.Commands.IDFromSeries("row", 1),
		khata.Upload{Uploaded: khata.Uploaded{Pipeline: khata.V1, Blob: "khata/a", Type: "image/png"},
			Read: &khata.Read{Engine: "tesseract", Pages: 1, Entries: 4}})
	require.NoError(t, err)
	return id(t, out.ID)
}

func (n *node) submits(t *testing.T, upload int64, rows []khata.Asked, change ...func(*commands.Request)) (commands.Outcome[khata.State],
	error) {
	t.Helper()
	out, _, err := ledgercmd.SubmitKhata(t.Context(), as(t, change...), n.Books, upload, rows)
	return out, err
}

// rowsOf counts the rows of an account.
func (o *office) rowsOf(t *testing.T, l *book.Ledger, account int64) int64 {
	t.Helper()
	_, total, err := o.views.Rows(t.Context(), nil, ledgerview.AccountKey{Workspace: workspace, Ledger: l, ID: account},
		ledgerview.Selection{Page: 1})
	require.NoError(t, err)
	return total
}

func TestSubmittedRowsAreOneTransaction(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	dead, n := o.node(t), o.node(t)
	one, other, maker := n.open(t), n.open(t), n.open(t)
	upload := n.uploads(t)
	counted := func() []int64 {
		return []int64{o.rowsOf(t, bank.Ledger, one), o.rowsOf(t, bank.Ledger, other), o.rowsOf(t, bank.Ledger, maker)}
	}
	dead.store.at("khata-", func() error { return errCrash })
	_, err := dead.submits(t, upload, page(t, one, other, maker, today), keyed)
	require.ErrorIs(t, err, errCrash)
	require.Equal(t, []int64{0, 0, 0}, counted())

	out, err := n.submits(t, upload, page(t, one, other, maker, today), keyed)
	require.NoError(t, err)
	require.Equal(t, []int64{1, 1, 1}, counted(), "entries of one account and date are one row")
	require.Equal(t, []int{4, 3, 2, 1, 0}, o.after(t, out.Position-5), "with the key")
	again, err := dead.submits(t, upload, page(t, one, other, maker, today), keyed)
	require.NoError(t, err)
	out.Replayed = true
	require.Equal(t, out, again)
	_, err = n.submits(t, upload, page(t, one, other, maker, today))
	require.ErrorIs(t, err, khata.ErrSubmitted)
	o.agree(t)
}
