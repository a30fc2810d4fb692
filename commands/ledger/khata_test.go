package ledger_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/commands/ledger"
	"bahi/domain/fault"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/khata"
	"bahi/domain/unit"
	views "bahi/readmodels/ledger"
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
	out, err := commands.Create(patient(t), n.Commands, as(t), khata.Kind, n.Commands.Numbered("row", 1),
		khata.Upload{Uploaded: khata.Uploaded{Pipeline: khata.V1, Blob: "khata/a", Type: "image/png"}, Read: &khata.Read{Engine: "tesseract", Pages: 1, Entries: 4}})
	require.NoError(t, err)
	return id(t, out.ID)
}

func (n *node) submits(t *testing.T, upload int64, rows []khata.Asked, change ...func(*commands.Request)) (commands.Outcome[khata.State], error) {
	t.Helper()
	return ledger.SubmitKhata(patient(t), as(t, change...), n.Books, upload, rows)
}

// rowsOf counts the rows of an account.
func (o *office) rowsOf(t *testing.T, l *book.Ledger, account int64) int64 {
	t.Helper()
	_, total, err := o.views.Rows(patient(t), workspace, l, account, views.Selection{Page: 1})
	require.NoError(t, err)
	return total
}

func TestSubmittedRowsAreThereTogetherWhereverTheProcessDies(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	sure := o.node(t)
	o.whereverItDies(t, 3, func(left int) deed {
		one, other, maker := sure.open(t), sure.open(t), sure.open(t)
		upload := sure.uploads(t)
		submits := func(n *node, change ...func(*commands.Request)) (commands.Outcome[khata.State], error) {
			return n.submits(t, upload, page(t, one, other, maker, today), change...)
		}
		withKey := func(r *commands.Request) { r.Key = idText(upload) }
		counted := func() []int64 {
			return []int64{o.rowsOf(t, bank.Ledger, one), o.rowsOf(t, bank.Ledger, other), o.rowsOf(t, bank.Ledger, maker)}
		}
		first := int64(0)
		return deed{
			decides: "khata-",
			do: func(n *node) error {
				out, err := submits(n, withKey)
				first = out.State.First
				return err
			},
			undone: func() { require.Equal(t, []int64{0, 0, 0}, counted()) },
			told: func() int {
				return o.count(t, []string{"BankRowAdded"}, streamsOf(bank.Ledger.Rows, numbersFrom(first, 3)...)...)
			},
			done: func(*node) {
				require.Equal(t, []int64{1, 1, 1}, counted(), "entries of one account and date are one row")
				again, err := submits(sure, withKey)
				require.NoError(t, err)
				require.True(t, again.Replayed)
				require.Equal(t, first, again.State.First)
				_, err = submits(sure)
				require.ErrorIs(t, err, khata.ErrSubmitted)
			},
			resume: func(n *node) error {
				if left == 0 { // a command that needs a row fills all of them
					_, err := ledger.EditRow(patient(t), as(t), n.Books, bank.Ledger, one, first, asked{Date: new(today - 1)})
					return err
				}
				return ledger.ResumeBulks(patient(t), n.Books)
			},
		}
	})
	o.agree(t)
}

func TestSubmissionThatLostToTheLockNeverWas(t *testing.T) {
	t.Parallel()
	lost(t, func(t *testing.T, o *office, loser, winner *node) {
		one, other, maker := winner.open(t), winner.open(t), winner.open(t)
		upload := winner.uploads(t)
		loser.store.at("khata-", winner.locks(t, today-10))
		_, err := loser.submits(t, upload, page(t, one, other, maker, today-10))
		require.ErrorIs(t, err, errLocked)
		require.Equal(t, []string{"KhataUploaded", "KhataRead"}, o.names(t, khata.Kind.Stream(idText(upload))))
		require.Zero(t, o.rowsOf(t, bank.Ledger, one)+o.rowsOf(t, bank.Ledger, other)+o.rowsOf(t, bank.Ledger, maker))

		// The upload is still to be submitted.
		_, err = winner.submits(t, upload, page(t, one, other, maker, today))
		require.NoError(t, err)
		require.Equal(t, int64(1), o.rowsOf(t, bank.Ledger, maker))
		winner.Wait()
		o.agree(t)
	})
}

func TestAnAccountThatIsDeletedMeanwhileRefusesTheSubmission(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	n, winner := o.node(t), o.node(t)
	one, other, maker := n.open(t), n.open(t), n.open(t)
	n.store.at("khata-", winner.ends(t, bank.Ledger, other))
	_, err := n.submits(t, 0, page(t, one, other, maker, today))
	refused := new(fault.Error)
	require.ErrorAs(t, err, &refused)
	require.Equal(t, bank.Ledger.NoAccount.Error(), refused.Fields[0].Message)
	require.Zero(t, o.rowsOf(t, bank.Ledger, one)+o.rowsOf(t, bank.Ledger, maker))
	o.agree(t)
}

func TestOneOfTwoSubmissionsOfAnUploadWins(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	n, winner := o.node(t), o.node(t)
	one, other, maker := n.open(t), n.open(t), n.open(t)
	upload := n.uploads(t)
	n.store.at("khata-", func() error {
		_, err := winner.submits(t, upload, page(t, one, other, maker, today))
		return err
	})
	_, err := n.submits(t, upload, page(t, one, other, maker, today))
	require.ErrorIs(t, err, khata.ErrSubmitted)
	require.Equal(t, int64(1), o.rowsOf(t, bank.Ledger, maker))
	winner.Wait()
	o.agree(t)
}
