package ledgercmd_test

import (
	"context"
	"errors"
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
	"bahi/internal/test/interleavetest"
	"bahi/internal/test/pgtest"
)

// inMemory returns a process on a log in memory.
func inMemory(t *testing.T) (*interleavetest.Log, *node) {
	t.Helper()
	log := interleavetest.NewLog()
	b, _, err := startBooks(t.Context(), interleavetest.NewNode(log))
	require.NoError(t, err)
	return log, &node{Books: b}
}

func TestRowsPostedTogetherAreOneTransaction(t *testing.T) {
	t.Parallel()
	log, n := inMemory(t)
	account := n.open(t)
	n.add(t, account, today-9) // numbers are reserved
	before := event.Position(len(log.After(0)))
	rows := []asked{{Date: new(today), In: rupees(1)}, {Date: new(today - 1), In: rupees(1)}, {Date: new(today), In: rupees(1)}}
	out, err := ledgercmd.PostRows(t.Context(), as(t), n.Books, bank.Ledger, account, rows)
	require.NoError(t, err)
	require.Equal(t, before+3, out.Position)
	for i, e := range log.After(before) {
		require.Equal(t, bank.Ledger.Rows.Stream(idText(out.First+int64(i))), e.Stream)
		require.Equal(t, "BankRowAdded", e.Type)
		require.Equal(t, 2-i, event.More(e.Meta))
	}
	require.Equal(t, out.First+3, n.add(t, account, today), "its numbers follow one another")
}

// blind is a view of the books whose tables cannot be read.
type blind struct{ ledgercmd.Reads }

func (blind) EarliestRow(context.Context, uuid.UUID, int64) (*unit.Date, error) { return nil, errCrash }

func TestBooksThatDoNotAnswerAreNotTakenForEmpty(t *testing.T) {
	t.Parallel()
	log, n := inMemory(t)
	account := n.open(t)
	before := log.After(0)
	n.Reads = blind{}
	_, err := ledgercmd.DeleteAccount(t.Context(), as(t), n.Books, bank.Ledger, account)
	require.ErrorIs(t, err, errCrash)
	require.Equal(t, before, log.After(0))
}

// The tables of a stopped projection lack the newest rows. Commands must not depend on them.
func TestBooksThatAreLateAreNotTakenForComplete(t *testing.T) {
	t.Parallel()
	o := openFixture(t)
	n := o.node(t)
	account := n.open(t)
	o.park(t)
	n.add(t, account, today-10)
	n.lock(t, new(today-10))
	before := o.head(t)
	_, err := ledgercmd.DeleteAccount(t.Context(), as(t), n.Books, bank.Ledger, account)
	refused, _ := errors.AsType[*fault.Error](err)
	require.NotNil(t, refused, "%v", err)
	require.Equal(t, fault.Unavailable, refused.Kind)
	require.Equal(t, before, o.head(t))
}

// park parks the books at an unreadable event.
func (o *fixture) park(t *testing.T) {
	t.Helper()
	_, err := o.store.Append(t.Context(), eventstore.To("bankrow-999999", eventstore.NoStream, event.Proposed{
		ID: uuid.New(), Type: "BankRowAdded", Data: []byte(`{}`), Meta: []byte(`{"schema":99}`),
	}))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		return pgtest.Value[bool](t, o.pool, `select error is not null from projection.generation where status = 'live' and name = 'books'`)
	}, time.Minute, 5*time.Millisecond)
}

func TestARowOfADeletedAccountIsGoneAlsoForWhatChangesNothing(t *testing.T) {
	t.Parallel()
	_, n := inMemory(t)
	account := n.open(t)
	row := n.add(t, account, today)
	same := asked{Date: new(today)}
	_, err := ledgercmd.ChangeRow(t.Context(), as(t), n.Books, bank.Ledger, row,
		book.EditRow{Ledger: bank.Ledger, Account: account, Today: n.Books.Today(), RowInput: same})
	require.NoError(t, err)
	_, err = ledgercmd.DeleteAccount(t.Context(), as(t), n.Books, bank.Ledger, account)
	require.NoError(t, err)
	_, err = ledgercmd.ChangeRow(t.Context(), as(t), n.Books, bank.Ledger, row,
		book.EditRow{Ledger: bank.Ledger, Account: account, Today: n.Books.Today(), RowInput: same})
	require.ErrorIs(t, err, bank.Ledger.NoRow)
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

// uploads records an upload and its result.
func (n *node) uploads(t *testing.T) int64 {
	t.Helper()
	out, err := commands.Create(t.Context(), n.Commands, as(t), khata.Kind, n.Commands.IDFromSeries("row", 1),
		khata.Upload{Uploaded: khata.Uploaded{Pipeline: khata.V1, Blob: "khata/a", Type: "image/png"},
			Read: &khata.Read{Engine: "tesseract", Pages: 1, Entries: 4}})
	require.NoError(t, err)
	return id(t, out.ID)
}
