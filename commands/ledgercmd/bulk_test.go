package ledgercmd_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/commands/ledgercmd"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/ledger/bank"
	"bahi/domain/unit"
	"bahi/eventstore"
	"bahi/readmodels/ledgerview"
)

func three() []asked {
	return []asked{{Date: new(today), In: rupees(1)}, {Date: new(today - 1), In: rupees(1)}, {Date: new(today), In: rupees(1)}}
}

func (n *node) post(t *testing.T, account int64, rows []asked, change ...func(*commands.Request)) (ledgercmd.Posted, error) {
	t.Helper()
	return ledgercmd.PostRows(t.Context(), as(t, change...), n.Books, bank.Ledger, account, rows)
}

// after returns how many of its transaction's events follow on each event of the log after a position.
func (o *office) after(t *testing.T, position event.Position) (more []int) {
	t.Helper()
	for e, err := range o.store.ReadAll(t.Context(), position, eventstore.Forwards) {
		require.NoError(t, err)
		var meta event.Meta
		require.NoError(t, json.Unmarshal(e.Meta, &meta))
		more = append(more, meta.More)
	}
	return more
}

func TestRowsPostedTogetherAreOneTransaction(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	n := o.node(t)
	account := n.open(t)
	n.add(t, account, today-9) // numbers are reserved
	before := o.head(t)
	out, err := n.post(t, account, three())
	require.NoError(t, err)
	require.Equal(t, before+3, out.Position)
	require.Equal(t, []int{2, 1, 0}, o.after(t, before))
	first := out.First
	require.Equal(t, first+3, n.add(t, account, today), "its numbers follow one another")
	rows, total, err := o.views.Rows(t.Context(), nil, ledgerview.AccountKey{Workspace: workspace, Ledger: bank.Ledger, ID: account},
		ledgerview.Selection{Page: 1})
	require.NoError(t, err)
	require.EqualValues(t, 5, total)
	require.Equal(t, []int64{first + 1, first, first + 2, first + 3}, []int64{rows[1].ID, rows[2].ID, rows[3].ID, rows[4].ID})
	for row := first; row < first+3; row++ {
		require.Equal(t, []string{"BankRowAdded"}, o.names(t, bank.Ledger.Rows.Stream(idText(row))))
	}
	o.agree(t)
}

func TestRowsThatAreNotThereAreNotFound(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	n := o.node(t)
	account := n.open(t)
	out, err := n.post(t, account, three())
	require.NoError(t, err)
	foreign := as(t, func(r *commands.Request) { r.Workspace = stranger })
	_, noRow := ledgercmd.EditRow(t.Context(), as(t), n.Books, bank.Ledger,
		ledgercmd.RowAt{Account: account, Row: out.First + 3}, asked{Date: new(today - 2)})
	_, anothers := ledgercmd.EditRow(t.Context(), as(t), n.Books, bank.Ledger,
		ledgercmd.RowAt{Account: account + 1, Row: out.First}, asked{Date: new(today - 2)})
	_, abroad := ledgercmd.DeleteRow(t.Context(), foreign, n.Books, bank.Ledger, account, out.First+1)
	for name, err := range map[string]error{"no such row": noRow, "another account": anothers, "another workspace": abroad} {
		require.ErrorIs(t, err, bank.Ledger.NoRow, name)
	}
}

func TestRowsWithAKeyArePostedOnce(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	one, two := o.node(t), o.node(t)
	account := one.open(t)
	first, err := one.post(t, account, three(), keyed)
	require.NoError(t, err)
	_, err = ledgercmd.EditRow(t.Context(), as(t), two.Books, bank.Ledger,
		ledgercmd.RowAt{Account: account, Row: first.First + 1}, asked{In: rupees(9)})
	require.NoError(t, err)
	first.Replayed = true
	for _, n := range []*node{one, two} {
		again, err := n.post(t, account, three(), keyed)
		require.NoError(t, err)
		require.Equal(t, first, again, "as they were posted")
	}
	require.EqualValues(t, 3, o.rowsOf(t, bank.Ledger, account))
	o.agree(t)
}

// A process that dies has posted all rows or none. Its repetition finds out which.
func TestAProcessThatDiesHasPostedAllRowsOrNone(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	dead, n := o.node(t), o.node(t)
	account := n.open(t)
	dead.store.at("bankrow-", func() error { return errCrash })
	_, err := dead.post(t, account, three(), keyed)
	require.ErrorIs(t, err, errCrash)
	require.Zero(t, o.rowsOf(t, bank.Ledger, account))
	out, err := n.post(t, account, three(), keyed)
	require.NoError(t, err)
	require.False(t, out.Replayed)
	require.EqualValues(t, 3, o.rowsOf(t, bank.Ledger, account))
	o.agree(t)
}

// blind is books that know nothing.
type blind struct{ ledgercmd.Reads }

func (blind) EarliestRow(context.Context, uuid.UUID, int64) (*unit.Date, error) { return nil, errCrash }

func TestBooksThatDoNotAnswerAreNotTakenForEmpty(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	n := o.node(t)
	account := n.open(t)
	n.Reads = blind{}
	_, err := ledgercmd.DeleteAccount(t.Context(), as(t), n.Books, bank.Ledger, account)
	require.ErrorIs(t, err, errCrash)
	require.Equal(t, []string{"BankAccountOpened"}, o.names(t, bank.Ledger.Accounts.Stream(idText(account))))
}

// A projection that has stopped lacks the newest rows. Commands must not decide by it.
func TestBooksThatAreLateAreNotTakenForComplete(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	n := o.node(t)
	account := n.open(t)
	o.park(t)
	n.add(t, account, today-10)
	n.lock(t, new(today-10))
	_, err := ledgercmd.DeleteAccount(t.Context(), as(t), n.Books, bank.Ledger, account)
	refused, _ := errors.AsType[*fault.Error](err)
	require.NotNil(t, refused, "%v", err)
	require.Equal(t, fault.Unavailable, refused.Kind)
	require.Equal(t, []string{"BankAccountOpened"}, o.names(t, bank.Ledger.Accounts.Stream(idText(account))))
}

// park stops the books at an event that they cannot read.
func (o *office) park(t *testing.T) {
	t.Helper()
	_, err := o.store.Append(t.Context(), eventstore.To("bankrow-999999", eventstore.NoStream, event.Proposed{
		ID: uuid.New(), Type: "BankRowAdded", Data: []byte(`{}`), Meta: []byte(`{"schema":99}`),
	}))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		var parked bool
		require.NoError(t, o.pool.QueryRow(t.Context(),
			`select error is not null from projection.generation where live and name = 'books'`).Scan(&parked))
		return parked
	}, 30e9, 5e6)
}
