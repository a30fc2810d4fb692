package ledgercmd_test

import (
	"context"
	"encoding/json"
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
	"bahi/domain/ledger/client"
	"bahi/domain/ledger/khata"
	"bahi/domain/ledger/order"
	"bahi/domain/ledger/orderdraft"
	"bahi/domain/ledger/takada"
	"bahi/domain/patch"
	"bahi/domain/unit"
	"bahi/eventstore"
	"bahi/internal/test/interleavetest"
	"bahi/internal/test/logtest"
	"bahi/internal/test/pgtest"
	"bahi/readmodels/ledgerview"
)

func (n *node) opens(t *testing.T, l *book.Ledger) int64 {
	t.Helper()
	out, err := ledgercmd.OpenAccount(t.Context(), as(t), n.Books, l, book.OpenAccount{Name: "Meena"})
	require.NoError(t, err)
	return id(t, out.ID)
}

func orderOf(holder int64) order.Add {
	return order.Add{Order: order.Order{Client: holder, Date: today, Items: []order.Item{{Name: "ring", Weight: 20_000}}}}
}

func takadaOf(number int64, maker *int64) takada.Add {
	return takada.Add{Takada: takada.Takada{Order: number, Date: today, Items: []takada.Item{{Name: "ring", Weight: 5_000, Karigar: maker}}}}
}

// order reads an order.
func (o *fixture) order(t *testing.T, number int64) ledgerview.ClientOrder {
	t.Helper()
	read, err := o.views.Order(t.Context(), nil, workspace, number)
	require.NoError(t, err)
	return read
}

func TestSlipsOfOtherClientsAreWarnedOf(t *testing.T) {
	t.Parallel()
	o := openFixture(t)
	n := o.node(t)
	holder, other := n.opens(t, client.Ledger), n.opens(t, client.Ledger)
	slipped := func(holder int64, slip string, date unit.Date) commands.Outcome[order.State] {
		c := orderOf(holder)
		c.Slip, c.Date = new(book.Text(slip)), date
		out, err := ledgercmd.AddOrder(t.Context(), as(t), n.Books, c)
		require.NoError(t, err)
		return out
	}
	first := slipped(holder, "A-7", today-365)
	require.Empty(t, first.State.Warnings)
	require.Empty(t, slipped(holder, "A-7", today).State.Warnings, "the client's own")
	require.Empty(t, slipped(other, "A-7", today-731).State.Warnings, "long before")
	require.Empty(t, slipped(other, "A-8", today).State.Warnings)
	near := slipped(other, " a-7", today-364)
	require.Equal(t, []order.Warning{{Field: "slip_number", Message: "order " + first.ID + " of another client has this number",
		ID: id(t, first.ID)}}, near.State.Warnings)
	require.Equal(t, near.State.Warnings, o.order(t, id(t, near.ID)).Warnings)
	edited, err := ledgercmd.EditOrder(t.Context(), as(t), n.Books, id(t, near.ID), order.Edit{Slip: patch.Set(book.Text("A-9"))})
	require.NoError(t, err)
	require.Empty(t, edited.State.Warnings, "another number has none")
}

// drafts creates a draft of a message with entries of one client.
func (n *node) drafts(t *testing.T, text string, holder int64) int64 {
	t.Helper()
	made, _, err := ledgercmd.ReceiveDraft(t.Context(), as(t), n.Books,
		ledgercmd.Message{ID: uuid.NewString(), From: "919812345678", Text: text, At: time.Now()})
	require.NoError(t, err)
	draft := id(t, made)
	_, err = ledgercmd.EditDraft(t.Context(), as(t), n.Books, draft, orderdraft.Edit{Client: patch.Set(holder)})
	require.NoError(t, err)
	return draft
}

func TestSlipNumbersContinueThoseOfOrdersAndOtherDrafts(t *testing.T) {
	t.Parallel()
	o := openFixture(t)
	n := o.node(t)
	holder := n.opens(t, client.Ledger)
	next := func(draft int64) string {
		t.Helper()
		out, err := ledgercmd.AssignSlips(t.Context(), as(t), n.Books, draft)
		require.NoError(t, err)
		return *out.State.Entries[0].Slip
	}
	draft := n.drafts(t, "payal 250 gm", holder)
	require.Equal(t, "1", next(draft))
	require.Equal(t, "1", next(draft), "its own do not count")
	for _, slip := range []string{"41", "0099999999999", "A-500", "४२"} {
		added := orderOf(holder)
		added.Slip = new(book.Text(slip))
		_, err := ledgercmd.AddOrder(t.Context(), as(t), n.Books, added)
		require.NoError(t, err)
	}
	require.Equal(t, "42", next(draft))
	other := n.drafts(t, "slip 77\nring 5 gm", holder)
	require.Equal(t, "78", next(draft))
	_, err := commands.Handle(t.Context(), n.Commands, as(t), orderdraft.Kind, idText(other), orderdraft.Delete{})
	require.NoError(t, err)
	require.Equal(t, "42", next(draft), "a deleted draft gives its number back")
}

func TestAMessageAndThePhoneOfItsSenderAreOneTransaction(t *testing.T) {
	t.Parallel()
	o := openFixture(t)
	n := o.node(t)
	_, _, err := ledgercmd.ReceiveDraft(t.Context(), as(t), n.Books,
		ledgercmd.Message{ID: "m1", From: "919812345678", User: "IN.1", Text: "payal 250 gm", At: time.Now()})
	require.NoError(t, err)
	more := map[string]int{}
	for e, err := range o.store.ReadAll(t.Context(), 0, eventstore.Forwards) {
		require.NoError(t, err)
		var meta event.Meta
		require.NoError(t, json.Unmarshal(e.Meta, &meta))
		more[e.Type] = meta.More
	}
	require.Equal(t, 1, more["OrderSenderMet"], "the draft follows in the same transaction")
}

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
	before := logtest.Head(t, o.store)
	_, err := ledgercmd.DeleteAccount(t.Context(), as(t), n.Books, bank.Ledger, account)
	refused, _ := errors.AsType[*fault.Error](err)
	require.NotNil(t, refused, "%v", err)
	require.Equal(t, fault.Unavailable, refused.Kind)
	require.Equal(t, before, logtest.Head(t, o.store))
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
