package ledgercmd_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/commands/ledgercmd"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/khata"
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

// after returns, for each event after a position of the log, the number of its transaction's later events.
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

// A process that dies has posted all rows or none. A retry returns which.
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

// blind is books with unreadable tables.
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

// The tables of a stopped projection lack the newest rows. Commands must not depend on them.
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

// park parks the books at an unreadable event.
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
	}, time.Minute, 5*time.Millisecond)
}

// Another node locks the day between a node's check of the rules and its append. So the node decides again, and refuses the row.
func TestARowThatLostToTheLockNeverWas(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	loser, winner := o.node(t), o.node(t)
	account := winner.open(t)
	loser.store.at("bankrow-", winner.locks(t, today-10))
	head := o.head(t)
	_, err := ledgercmd.AddRow(t.Context(), as(t), loser.Books, bank.Ledger, account, asked{Date: new(today - 10), In: rupees(1)})
	require.ErrorIs(t, err, fault.Newf(fault.Conflict, "Books are locked through %s", today-10))
	require.Equal(t, head+2, o.head(t), "numbers and the lock")
	o.agree(t)
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

// An older row may be added between a deletion's read and its append.
func TestAnAccountIsNotDeletedWithARowThatWasPostedAndLockedMeanwhile(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	loser, winner := o.node(t), o.node(t)
	for name, rows := range map[string]bool{"with a row": true, "without": false} {
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
		require.ErrorIs(t, err, fault.Newf(fault.Conflict, "Books are locked through %s", today-15), name)
		require.NotNil(t, o.row(t, account, late))
		winner.lock(t, nil)
		_, err = ledgercmd.DeleteAccount(t.Context(), as(t), loser.Books, bank.Ledger, account)
		require.NoError(t, err, name)
		require.Nil(t, o.row(t, account, late))
	}
	o.agree(t)
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

func (n *node) reverse(t *testing.T, req commands.Request, account int64, rows ...int64) (ledgercmd.Posted, error) {
	return ledgercmd.ReverseRows(t.Context(), req, n.Books, bank.Ledger, account, ledgercmd.Reversal{Rows: rows})
}

// balance is the account's balance.
func (o *office) balance(t *testing.T, account int64) string {
	t.Helper()
	a, err := o.views.Account(t.Context(), nil, ledgerview.AccountKey{Workspace: workspace, Ledger: bank.Ledger, ID: account}, ledgerview.As{})
	require.NoError(t, err)
	return a.Cash.String()
}

func TestRowsAreReversedTogetherAndKnowOfEachOther(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	n := o.node(t)
	account := n.open(t)
	one, kept, two := n.add(t, account, today-3), n.add(t, account, today-2), n.add(t, account, today-1)
	before := o.head(t)
	out, err := n.reverse(t, as(t), account, two, one)
	require.NoError(t, err)
	require.Equal(t, []int{3, 2, 1, 0}, o.after(t, before), "one transaction")
	require.Equal(t, "1", o.balance(t, account))
	for i, old := range []int64{two, one} {
		back := o.row(t, account, out.First+int64(i))
		require.Equal(t, old, back.Reverses)
		require.Equal(t, today, back.Date)
		require.JSONEq(t, `[{"amount":1}]`, string(back.Out.JSON()))
		require.JSONEq(t, `[]`, string(back.In.JSON()))
		require.Equal(t, out.First+int64(i), o.row(t, account, old).ReversedBy)
		require.EqualValues(t, 1, o.row(t, account, old).Revision)
		require.Equal(t, []string{"BankRowAdded", "BankRowReversed"}, o.names(t, bank.Ledger.Rows.Stream(idText(old))))
		require.Equal(t, []string{"BankRowAdded"}, o.names(t, bank.Ledger.Rows.Stream(idText(out.First+int64(i)))))
	}
	require.Zero(t, o.row(t, account, kept).ReversedBy)
	o.agree(t)

	again, err := n.reverse(t, as(t), account, out.First)
	require.NoError(t, err, "a reversal can be reversed")
	require.Equal(t, "2", o.balance(t, account))
	_, err = o.node(t).reverse(t, as(t), account, kept, out.First)
	require.ErrorIs(t, err, fault.Newf(fault.Conflict, "Row %d: The row is reversed by row %d already", out.First, again.First))
	_, err = o.node(t).reverse(t, as(t), account, one)
	require.ErrorIs(t, err, fault.Newf(fault.Conflict, "The row is reversed by row %d already", out.First+1))
	_, err = n.reverse(t, as(t), account, make([]int64, 1001)...)
	require.Equal(t, fault.Fields(fault.Field{Field: "rows", Message: "at most 1000 rows"}), err)
	require.Zero(t, o.row(t, account, kept).ReversedBy, "all or none")
	o.agree(t)
}

// Clerks reverse overlapping groups at once. Each row is reversed once, and each group as a whole or not at all.
func TestOverlappingReversalsAreAllOrNone(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	nodes := []*node{o.node(t), o.node(t), o.node(t)}
	account := nodes[0].open(t)
	rows := make([]int64, 6)
	for i := range rows {
		rows[i] = nodes[0].add(t, account, today)
	}
	groups := [][]int64{{rows[0], rows[1], rows[2]}, {rows[2], rows[3], rows[4]}, {rows[4], rows[5], rows[0]}}
	errs := make([]error, len(groups))
	var all sync.WaitGroup
	for i, n := range nodes {
		all.Go(func() { _, errs[i] = n.reverse(t, as(t), account, groups[i]...) })
	}
	all.Wait()
	succeeded := 0
	for i := range nodes {
		if errs[i] == nil {
			succeeded++
			continue
		}
		refused := &fault.Error{}
		require.ErrorAs(t, errs[i], &refused)
		require.Contains(t, []fault.Kind{fault.Conflict, fault.Unavailable}, refused.Kind)
	}
	require.LessOrEqual(t, succeeded, 1, "any two of them share a row")
	require.Equal(t, idText(int64(len(rows)-3*succeeded)), o.balance(t, account))
	o.agree(t)
}

// page is the submission of a page: a row of each of three bank accounts.
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
