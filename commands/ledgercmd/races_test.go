package ledgercmd_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/commands/ledgercmd"
	"bahi/domain/fault"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/bookslock"
	"bahi/domain/unit"
	"bahi/readmodels/ledgerview"
)

var errLocked = fault.Newf(fault.Conflict, "Books are locked through %s", today-10)

// A test of these is a race that is lost: between a node's look at the rules and its append, another node does something that forbids what
// is appended. So it is decided again, and refused.
func lost(t *testing.T, test func(t *testing.T, o *office, loser, winner *node)) {
	t.Helper()
	o := openOffice(t)
	test(t, o, o.node(t), o.node(t))
}

func TestARowThatLostToTheLockNeverWas(t *testing.T) {
	t.Parallel()
	lost(t, func(t *testing.T, o *office, loser, winner *node) {
		account := winner.open(t)
		loser.store.at("bankrow-", winner.locks(t, today-10))
		head := o.head(t)
		_, err := ledgercmd.AddRow(patient(t), as(t), loser.Books, bank.Ledger, account, asked{Date: new(today - 10), In: rupees(1)})
		require.ErrorIs(t, err, errLocked)
		require.Equal(t, head+2, o.head(t), "numbers and the lock")
		o.agree(t)
	})
}

func TestAnEditThatLostToTheLockLeavesTheRowAsItWas(t *testing.T) {
	t.Parallel()
	lost(t, func(t *testing.T, o *office, loser, winner *node) {
		account := winner.open(t)
		row := winner.add(t, account, today-10)
		loser.store.at("bankrow-", winner.locks(t, today-10))
		_, err := ledgercmd.EditRow(patient(t), as(t), loser.Books, bank.Ledger,
			ledgercmd.RowAt{Account: account, Row: row}, asked{In: rupees(2)})
		require.ErrorIs(t, err, errLocked)
		stream := bank.Ledger.Rows.Stream(idText(row))
		require.Equal(t, []string{"BankRowAdded"}, o.names(t, stream))
		found := o.row(t, account, row)
		require.Equal(t, "1", found.Cash.String())

		winner.lock(t, nil)
		for i, n := range []*node{loser, winner} {
			match := o.row(t, account, row).Revision
			out, err := ledgercmd.EditRow(patient(t), as(t, func(r *commands.Request) { r.IfMatch = &match }), n.Books, bank.Ledger,
				ledgercmd.RowAt{Account: account, Row: row},
				asked{Out: rupees(int64(5 + i))})
			require.NoError(t, err, "the revision that a read shows is the one to match")
			require.Equal(t, book.Row{Account: account, Date: today - 10, In: booked(1), Out: booked(int64(5 + i))}, out.State)
		}
		require.Equal(t, "-5", o.row(t, account, row).Cash.String())
		o.agree(t)
	})
}

func TestADeletionOfARowThatLostToTheLockLeavesIt(t *testing.T) {
	t.Parallel()
	lost(t, func(t *testing.T, o *office, loser, winner *node) {
		account := winner.open(t)
		row := winner.add(t, account, today-10)
		loser.store.at("bankrow-", winner.locks(t, today-10))
		_, err := ledgercmd.DeleteRow(patient(t), as(t), loser.Books, bank.Ledger, account, row)
		require.ErrorIs(t, err, errLocked)
		require.NotNil(t, o.row(t, account, row))
		winner.lock(t, nil)
		_, err = ledgercmd.DeleteRow(patient(t), as(t), loser.Books, bank.Ledger, account, row)
		require.NoError(t, err)
		require.Nil(t, o.row(t, account, row))
		o.agree(t)
	})
}

func TestAMoveIsRefusedWhenEitherOfItsDatesIsLocked(t *testing.T) {
	t.Parallel()
	for name, dates := range map[string][2]unit.Date{
		"out of the locked period": {today - 10, today}, "into it": {today, today - 10}, "within it": {today - 11, today - 12},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := openOffice(t)
			loser, winner := o.node(t), o.node(t)
			account := winner.open(t)
			row := winner.add(t, account, dates[0])
			move := asked{Date: &dates[1]}
			loser.store.at("bankrow-", winner.locks(t, today-10))
			_, err := ledgercmd.EditRow(patient(t), as(t), loser.Books, bank.Ledger, ledgercmd.RowAt{Account: account, Row: row}, move)
			require.ErrorIs(t, err, errLocked)
			require.Equal(t, dates[0], o.row(t, account, row).Date)
			_, err = ledgercmd.EditRow(patient(t), as(t), loser.Books, bank.Ledger, ledgercmd.RowAt{Account: account, Row: row}, move)
			require.ErrorIs(t, err, errLocked, "and is refused before it, once that is known")
			require.Len(t, o.names(t, bank.Ledger.Rows.Stream(idText(row))), 1)
			o.agree(t)
		})
	}
}

func TestARowThatLostToTheDeletionOfItsAccountNeverWas(t *testing.T) {
	t.Parallel()
	lost(t, func(t *testing.T, o *office, loser, winner *node) {
		account := winner.open(t)
		row := winner.add(t, account, today)
		deletes := func() error {
			_, err := ledgercmd.DeleteAccount(patient(t), as(t), winner.Books, bank.Ledger, account)
			return err
		}
		loser.store.at("bankrow-", deletes)
		_, err := ledgercmd.AddRow(patient(t), as(t), loser.Books, bank.Ledger, account, asked{Date: new(today), In: rupees(1)})
		require.ErrorIs(t, err, bank.Ledger.NoAccount)
		require.Nil(t, o.row(t, account, row))
		_, err = ledgercmd.EditRow(patient(t), as(t), loser.Books, bank.Ledger, ledgercmd.RowAt{Account: account, Row: row}, asked{In: rupees(2)})
		require.ErrorIs(t, err, bank.Ledger.NoAccount, "later calls by row id are 404")
		o.agree(t)
	})
}

func TestABulkThatLostIsRefusedAsAWhole(t *testing.T) {
	t.Parallel()
	lost(t, func(t *testing.T, o *office, loser, winner *node) {
		account := winner.open(t)
		loser.store.at("bankrow-", winner.locks(t, today-10))
		_, err := ledgercmd.PostRows(patient(t), as(t), loser.Books, bank.Ledger, account, []asked{
			{Date: new(today), In: rupees(1)}, {Date: new(today - 10), In: rupees(1)},
		})
		require.ErrorIs(t, err, errLocked)
		require.Zero(t, o.rowsOf(t, bank.Ledger, account))
		o.agree(t)
	})
}

func TestTheDeletionOfAnAccountThatLostToTheLockNeverWas(t *testing.T) {
	t.Parallel()
	lost(t, func(t *testing.T, o *office, loser, winner *node) {
		account := winner.open(t)
		row := winner.add(t, account, today-10)
		loser.store.at("bank-", winner.locks(t, today-10))
		_, err := ledgercmd.DeleteAccount(patient(t), as(t), loser.Books, bank.Ledger, account)
		require.ErrorIs(t, err, errLocked)
		stream := bank.Ledger.Accounts.Stream(idText(account))
		require.Equal(t, []string{"BankAccountOpened"}, o.names(t, stream))
		require.NotNil(t, o.row(t, account, row))
		_, err = ledgercmd.DeleteAccount(patient(t), as(t), loser.Books, bank.Ledger, account)
		require.ErrorIs(t, err, errLocked)
		for _, n := range []*node{loser, winner} {
			a, err := o.views.Account(patient(t), workspace, bank.Ledger, account, ledgerview.As{})
			require.NoError(t, err)
			_, err = ledgercmd.ChangeAccount(patient(t), as(t, func(r *commands.Request) { r.IfMatch = &a.Revision }), n.Books, bank.Ledger, account,
				book.ChangeAccount{Name: new(a.Name + "I")})
			require.NoError(t, err)
			n.add(t, account, today)
		}
		winner.lock(t, nil)
		_, err = ledgercmd.DeleteAccount(patient(t), as(t), loser.Books, bank.Ledger, account)
		require.NoError(t, err)
		require.Nil(t, o.row(t, account, row))
		o.agree(t)
	})
}

func TestARowOfADeletedAccountIsGoneAlsoForWhatChangesNothing(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	n := o.node(t)
	account := n.open(t)
	row := n.add(t, account, today)
	same := asked{Date: new(today)}
	_, err := ledgercmd.EditRow(patient(t), as(t), n.Books, bank.Ledger, ledgercmd.RowAt{Account: account, Row: row}, same)
	require.NoError(t, err)
	_, err = ledgercmd.DeleteAccount(patient(t), as(t), n.Books, bank.Ledger, account)
	require.NoError(t, err)
	_, err = ledgercmd.EditRow(patient(t), as(t), n.Books, bank.Ledger, ledgercmd.RowAt{Account: account, Row: row}, same)
	require.ErrorIs(t, err, bank.Ledger.NoRow)
	o.agree(t)
}

// The oldest row that a deletion knows of need not be the oldest when it lands.
func TestAnAccountIsNotDeletedWithARowThatWasPostedAndLockedMeanwhile(t *testing.T) {
	t.Parallel()
	for name, rows := range map[string]bool{"with a row": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lost(t, func(t *testing.T, o *office, loser, winner *node) {
				account := winner.open(t)
				if rows {
					winner.add(t, account, today-10)
				}
				late := int64(0)
				loser.store.at("bank-", func() error {
					late = winner.add(t, account, today-20)
					return winner.locks(t, today-15)()
				})
				_, err := ledgercmd.DeleteAccount(patient(t), as(t), loser.Books, bank.Ledger, account)
				require.ErrorIs(t, err, fault.Newf(fault.Conflict, "Books are locked through %s", today-15))
				require.NotNil(t, o.row(t, account, late))
				winner.lock(t, nil)
				_, err = ledgercmd.DeleteAccount(patient(t), as(t), loser.Books, bank.Ledger, account)
				require.NoError(t, err)
				require.Nil(t, o.row(t, account, late))
				o.agree(t)
			})
		})
	}
}

func TestAnAccountOpenedOnOneNodeTakesRowsOnAnotherAtOnce(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	one, two := o.node(t), o.node(t)
	for range 20 {
		account := one.open(t)
		row := two.add(t, account, today)
		_, err := ledgercmd.EditRow(patient(t), as(t), one.Books, bank.Ledger, ledgercmd.RowAt{Account: account, Row: row}, asked{In: rupees(2)})
		require.NoError(t, err)
		_, err = ledgercmd.DeleteAccount(patient(t), as(t), two.Books, bank.Ledger, account)
		require.NoError(t, err)
		_, err = ledgercmd.AddRow(patient(t), as(t), one.Books, bank.Ledger, account, asked{Date: new(today), In: rupees(1)})
		require.ErrorIs(t, err, bank.Ledger.NoAccount)
	}
	for i := range 20 {
		account := one.open(t)
		through := today - unit.Date(60-i)
		one.lock(t, &through)
		_, err := ledgercmd.AddRow(patient(t), as(t), two.Books, bank.Ledger, account, asked{Date: new(through), In: rupees(1)})
		require.Error(t, err)
		two.lock(t, nil)
		one.add(t, account, through)
	}
	o.agree(t)
}

func TestTheLockCountsForItsOwnWorkspace(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	n := o.node(t)
	account := n.open(t)
	foreign := as(t, func(r *commands.Request) { r.Workspace = stranger })
	_, err := n.SetLock(patient(t), foreign, bookslock.Set{Through: new(today - 1)})
	require.NoError(t, err)
	row := n.add(t, account, today-5)

	_, err = ledgercmd.AddRow(patient(t), foreign, n.Books, bank.Ledger, account, asked{Date: new(today), In: rupees(1)})
	require.ErrorIs(t, err, bank.Ledger.NoAccount)
	_, err = ledgercmd.PostRows(patient(t), foreign, n.Books, bank.Ledger, account, []asked{{Date: new(today), In: rupees(1)}})
	require.ErrorIs(t, err, bank.Ledger.NoAccount)
	_, err = ledgercmd.EditRow(patient(t), foreign, n.Books, bank.Ledger, ledgercmd.RowAt{Account: account, Row: row}, asked{In: rupees(2)})
	require.ErrorIs(t, err, bank.Ledger.NoRow)
	_, err = ledgercmd.DeleteRow(patient(t), foreign, n.Books, bank.Ledger, account, row)
	require.ErrorIs(t, err, bank.Ledger.NoRow)
	_, err = ledgercmd.ChangeAccount(patient(t), foreign, n.Books, bank.Ledger, account, book.ChangeAccount{Name: new("mine")})
	require.ErrorIs(t, err, bank.Ledger.NoAccount)
	_, err = ledgercmd.DeleteAccount(patient(t), foreign, n.Books, bank.Ledger, account)
	require.ErrorIs(t, err, bank.Ledger.NoAccount)
	o.agree(t)
}

func TestADryRunSaysWhatTheRulesWouldSay(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	n := o.node(t)
	account := n.open(t)
	row := n.add(t, account, today-10)
	n.lock(t, new(today-10))
	head := o.head(t)
	dry := as(t, dryRun)
	out, err := ledgercmd.AddRow(patient(t), dry, n.Books, bank.Ledger, account, asked{Date: new(today), In: rupees(1)})
	require.NoError(t, err)
	require.Empty(t, out.ID)
	require.Equal(t, book.Row{Account: account, Date: today, In: booked(1)}, out.State)
	_, err = ledgercmd.AddRow(patient(t), dry, n.Books, bank.Ledger, account, asked{Date: new(today - 10), In: rupees(1)})
	require.ErrorIs(t, err, errLocked)
	_, err = ledgercmd.AddRow(patient(t), dry, n.Books, bank.Ledger, account+1, asked{Date: new(today), In: rupees(1)})
	require.ErrorIs(t, err, bank.Ledger.NoAccount)
	_, err = ledgercmd.EditRow(patient(t), dry, n.Books, bank.Ledger, ledgercmd.RowAt{Account: account, Row: row}, asked{In: rupees(2)})
	require.ErrorIs(t, err, errLocked)
	_, err = ledgercmd.DeleteAccount(patient(t), dry, n.Books, bank.Ledger, account)
	require.ErrorIs(t, err, errLocked)
	bulk, err := ledgercmd.PostRows(patient(t), dry, n.Books, bank.Ledger, account, []asked{{Date: new(today), In: rupees(1)}})
	require.NoError(t, err)
	require.Len(t, bulk.Rows, 1)
	_, err = n.SetLock(patient(t), dry, bookslock.Set{})
	require.NoError(t, err)
	require.Equal(t, head, o.head(t))
	require.Equal(t, row+1, n.add(t, account, today), "no number was used up")
}

func TestARefusedWriteLeavesItsKeyFree(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	loser, winner := o.node(t), o.node(t)
	account := winner.open(t)
	loser.store.at("bankrow-", winner.locks(t, today-10))
	add := func(n *node) error {
		_, err := ledgercmd.AddRow(patient(t), as(t, keyed), n.Books, bank.Ledger, account, asked{Date: new(today - 10), In: rupees(1)})
		return err
	}
	require.ErrorIs(t, add(loser), errLocked)
	winner.lock(t, nil)
	for _, n := range []*node{loser, winner, o.node(t)} {
		require.NoError(t, add(n))
	}
	require.Equal(t, int64(1), o.rowsOf(t, bank.Ledger, account))
	o.agree(t)
}

func TestARepeatedRequestAnswersTheRowAsItWasThen(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	one, two := o.node(t), o.node(t)
	account := one.open(t)
	add := func(n *node) (commands.Outcome[book.Row], error) {
		return ledgercmd.AddRow(patient(t), as(t, keyed), n.Books, bank.Ledger, account, asked{Date: new(today), In: rupees(1)})
	}
	first, err := add(one)
	require.NoError(t, err)
	_, err = ledgercmd.EditRow(patient(t), as(t), two.Books, bank.Ledger,
		ledgercmd.RowAt{Account: account, Row: id(t, first.ID)}, asked{In: rupees(9)})
	require.NoError(t, err)
	_, err = ledgercmd.DeleteAccount(patient(t), as(t), two.Books, bank.Ledger, account)
	require.NoError(t, err)
	for _, n := range []*node{one, two} {
		again, err := add(n)
		require.NoError(t, err)
		first.Replayed = true
		require.Equal(t, first, again)
	}
	o.agree(t)
}
