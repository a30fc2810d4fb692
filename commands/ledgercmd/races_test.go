package ledgercmd_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/commands/ledgercmd"
	"bahi/domain/fault"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
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
		_, err := ledgercmd.AddRow(t.Context(), as(t), loser.Books, bank.Ledger, account, asked{Date: new(today - 10), In: rupees(1)})
		require.ErrorIs(t, err, errLocked)
		require.Equal(t, head+2, o.head(t), "numbers and the lock")
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
	_, err := ledgercmd.EditRow(t.Context(), as(t), n.Books, bank.Ledger, ledgercmd.RowAt{Account: account, Row: row}, same)
	require.NoError(t, err)
	_, err = ledgercmd.DeleteAccount(t.Context(), as(t), n.Books, bank.Ledger, account)
	require.NoError(t, err)
	_, err = ledgercmd.EditRow(t.Context(), as(t), n.Books, bank.Ledger, ledgercmd.RowAt{Account: account, Row: row}, same)
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
				_, err := ledgercmd.DeleteAccount(t.Context(), as(t), loser.Books, bank.Ledger, account)
				require.ErrorIs(t, err, fault.Newf(fault.Conflict, "Books are locked through %s", today-15))
				require.NotNil(t, o.row(t, account, late))
				winner.lock(t, nil)
				_, err = ledgercmd.DeleteAccount(t.Context(), as(t), loser.Books, bank.Ledger, account)
				require.NoError(t, err)
				require.Nil(t, o.row(t, account, late))
				o.agree(t)
			})
		})
	}
}

func TestARepeatedRequestAnswersTheRowAsItWasThen(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	one, two := o.node(t), o.node(t)
	account := one.open(t)
	add := func(n *node) (commands.Outcome[book.Row], error) {
		return ledgercmd.AddRow(t.Context(), as(t, keyed), n.Books, bank.Ledger, account, asked{Date: new(today), In: rupees(1)})
	}
	first, err := add(one)
	require.NoError(t, err)
	_, err = ledgercmd.EditRow(t.Context(), as(t), two.Books, bank.Ledger,
		ledgercmd.RowAt{Account: account, Row: id(t, first.ID)}, asked{In: rupees(9)})
	require.NoError(t, err)
	_, err = ledgercmd.DeleteAccount(t.Context(), as(t), two.Books, bank.Ledger, account)
	require.NoError(t, err)
	for _, n := range []*node{one, two} {
		again, err := add(n)
		require.NoError(t, err)
		first.Replayed = true
		require.Equal(t, first, again)
	}
	o.agree(t)
}
