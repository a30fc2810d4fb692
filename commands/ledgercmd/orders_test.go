package ledgercmd_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/commands/ledgercmd"
	"bahi/domain/fault"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/client"
	"bahi/domain/ledger/karigar"
	"bahi/domain/ledger/order"
	"bahi/domain/ledger/orderdraft"
	"bahi/domain/ledger/takada"
	"bahi/domain/patch"
	"bahi/domain/unit"
	"bahi/readmodels"
	"bahi/readmodels/ledgerview"
)

func (n *node) opens(t *testing.T, l *book.Ledger) int64 {
	t.Helper()
	out, err := ledgercmd.OpenAccount(t.Context(), as(t), n.Books, l, book.OpenAccount{Name: "Meena"})
	require.NoError(t, err)
	return id(t, out.ID)
}

// ends is another process that deletes an account.
func (n *node) ends(t *testing.T, l *book.Ledger, account int64) func() error {
	t.Helper()
	return func() error {
		_, err := ledgercmd.DeleteAccount(t.Context(), as(t), n.Books, l, account)
		return err
	}
}

func orderOf(holder int64) order.Add {
	return order.Add{Order: order.Order{Client: holder, Date: today, Items: []order.Item{{Name: "ring", Weight: 20_000}}}}
}

func takadaOf(number int64, maker *int64) takada.Add {
	return takada.Add{Takada: takada.Takada{Order: number, Date: today, Items: []takada.Item{{Name: "ring", Weight: 5_000, Karigar: maker}}}}
}

func (n *node) orders(t *testing.T, holder int64) int64 {
	t.Helper()
	out, err := ledgercmd.AddOrder(t.Context(), as(t), n.Books, orderOf(holder))
	require.NoError(t, err)
	return id(t, out.ID)
}

func (n *node) delivers(t *testing.T, number int64) int64 {
	t.Helper()
	out, err := ledgercmd.AddTakada(t.Context(), as(t), n.Books, takadaOf(number, nil))
	require.NoError(t, err)
	return id(t, out.ID)
}

// order reads an order, nil if there is none.
func (o *office) order(t *testing.T, number int64) *ledgerview.ClientOrder {
	t.Helper()
	return found(t, order.ErrNotFound, func() (ledgerview.ClientOrder, error) { return o.views.Order(t.Context(), nil, workspace, number) })
}

// takada reads a takada, nil if there is none.
func (o *office) takada(t *testing.T, number int64) *ledgerview.ClientTakada {
	t.Helper()
	return found(t, takada.ErrNotFound, func() (ledgerview.ClientTakada, error) { return o.views.Takada(t.Context(), nil, workspace, number) })
}

func found[T any](t *testing.T, missing error, read func() (T, error)) *T {
	t.Helper()
	one, err := read()
	if errors.Is(err, missing) {
		return nil
	}
	require.NoError(t, err)
	return &one
}

func (o *office) takadas(t *testing.T) (all []int64) {
	t.Helper()
	_, err := o.views.EachTakada(t.Context(), nil, workspace, readmodels.Page{Number: 1}, ledgerview.TakadaFilter{},
		func(one ledgerview.ClientTakada) error {
			all = append(all, one.ID)
			return nil
		})
	require.NoError(t, err)
	return all
}

// A client with two orders and their takadas is deleted. Nothing is written to their streams.
func TestOrdersAndTakadasEndWithTheirClient(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	n := o.node(t)
	staying := n.delivers(t, n.orders(t, n.opens(t, client.Ledger)))
	holder := n.opens(t, client.Ledger)
	first, second := n.orders(t, holder), n.orders(t, holder)
	delivered := []int64{n.delivers(t, first), n.delivers(t, first), n.delivers(t, second)}
	n.lock(t, new(today-10))
	_, err := ledgercmd.EditOrder(t.Context(), as(t), n.Books, first, order.Edit{Date: patch.Set(today - 20)})
	require.NoError(t, err, "the lock binds ledger rows only")
	head := o.head(t)
	require.NoError(t, n.ends(t, client.Ledger, holder)())
	require.Equal(t, head+1, o.head(t))
	require.Nil(t, o.order(t, first))
	require.Nil(t, o.order(t, second))
	require.Equal(t, []int64{staying}, o.takadas(t))
	for _, n := range []*node{n, o.node(t)} {
		_, err := ledgercmd.EditOrder(t.Context(), as(t), n.Books, first, order.Edit{})
		require.ErrorIs(t, err, order.ErrNotFound)
		_, err = ledgercmd.EditOrder(t.Context(), as(t), n.Books, second, order.Edit{Date: patch.Set(today + 5)})
		require.ErrorIs(t, err, order.ErrNotFound, "whatever else is wrong")
		_, err = ledgercmd.DeleteOrder(t.Context(), as(t), n.Books, second)
		require.ErrorIs(t, err, order.ErrNotFound)
		_, err = ledgercmd.EditTakada(t.Context(), as(t), n.Books, delivered[0], takada.Edit{})
		require.ErrorIs(t, err, takada.ErrNotFound)
		_, err = ledgercmd.DeleteTakada(t.Context(), as(t), n.Books, delivered[2])
		require.ErrorIs(t, err, takada.ErrNotFound)
		_, err = ledgercmd.AddTakada(t.Context(), as(t), n.Books, takadaOf(first, nil))
		require.Equal(t, invalid("client_order_id", "there is no such order"), err)
		_, err = ledgercmd.AddOrder(t.Context(), as(t), n.Books, orderOf(holder))
		require.Equal(t, invalid("client_id", "there is no such client"), err)
	}
	history, err := o.views.OrderHistory(t.Context(), nil, workspace, first)
	require.NoError(t, err)
	require.Equal(t, []string{"added", "edited", "deleted"}, []string{history[0].Change, history[1].Change, history[2].Change})
	require.Equal(t, "because", history[2].Reason, "the deletion is the client's")
	o.ordersAgree(t, t, n)
}

func invalid(field, message string) error {
	return fault.Fields(fault.Field{Field: field, Message: message})
}

func TestATakadaStaysWhenItsKarigarIsDeleted(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	n := o.node(t)
	maker := n.opens(t, karigar.Ledger)
	number := n.orders(t, n.opens(t, client.Ledger))
	out, err := ledgercmd.AddTakada(t.Context(), as(t), n.Books, takadaOf(number, &maker))
	require.NoError(t, err)
	one := id(t, out.ID)
	require.NoError(t, n.ends(t, karigar.Ledger, maker)())
	read := o.takada(t, one)
	require.Nil(t, read.Items[0].Karigar)
	require.Zero(t, *read.Revision, "its revision does not move")
	edited, err := ledgercmd.EditTakada(t.Context(), as(t), n.Books, one, takada.Edit{Date: patch.Set(today - 1)})
	require.NoError(t, err)
	require.Nil(t, edited.State.Items[0].Karigar)
	_, err = ledgercmd.EditTakada(t.Context(), as(t), n.Books, one,
		takada.Edit{Items: patch.Set([]takada.Item{{Name: "x", Weight: 1, Karigar: &maker}})})
	require.Equal(t, invalid("items[0].karigar_id", "there is no such karigar"), err)
	history, err := o.views.TakadaHistory(t.Context(), nil, workspace, one)
	require.NoError(t, err)
	require.Equal(t, maker, *history[0].After.Items[0].Karigar, "the history has what was recorded")
	o.ordersAgree(t, t, n)
}

func TestSlipsOfOtherClientsAreWarnedOf(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
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

func (n *node) converts(t *testing.T, draft int64, change ...func(*commands.Request)) (commands.Outcome[orderdraft.State], error) {
	t.Helper()
	return ledgercmd.ConvertDraft(t.Context(), as(t, change...), n.Books, draft, orderdraft.Convert{})
}

// pending returns the ids of the drafts that wait for their review.
func (o *office) pending(t *testing.T) (all []int64) {
	t.Helper()
	found, _, err := o.views.OrderDrafts(t.Context(), nil, workspace, time.UTC, readmodels.Page{Number: 1}, ledgerview.DraftFilter{})
	require.NoError(t, err)
	for _, d := range found {
		all = append(all, d.ID)
	}
	return all
}

func (o *office) ordersOf(t *testing.T, holder int64) (all []ledgerview.ClientOrder) {
	t.Helper()
	all, _, err := o.views.Orders(t.Context(), nil, workspace, readmodels.Page{Number: 1, Size: 50}, ledgerview.OrderFilter{Client: holder})
	require.NoError(t, err)
	return all
}

// A draft becomes two orders, in one transaction.
func TestADraftBecomesOrdersAllOrNone(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	dead, n := o.node(t), o.node(t)
	holder := n.opens(t, client.Ledger)
	draft := n.drafts(t, "slip 7\npayal 250 gm", holder)
	_, err := ledgercmd.AddDraftEntry(t.Context(), as(t), n.Books, draft, orderdraft.AddEntry{EditEntry: orderdraft.EditEntry{
		Item: patch.Set(book.Text("ring")), Weight: patch.Set(unit.Grams(5_000)), ClientID: patch.Set(holder), Slip: patch.Set(book.Text("8")),
	}})
	require.NoError(t, err)
	dead.store.at("orderdraft-", func() error { return errCrash })
	_, err = dead.converts(t, draft, keyed)
	require.ErrorIs(t, err, errCrash)
	require.Equal(t, []int64{draft}, o.pending(t))
	require.Empty(t, o.ordersOf(t, holder))

	out, err := n.converts(t, draft, keyed)
	require.NoError(t, err)
	require.Equal(t, []int{3, 2, 1, 0}, o.after(t, out.Position-4), "the key, the draft and its orders")
	require.Empty(t, o.pending(t))
	shown := o.ordersOf(t, holder)
	require.Len(t, shown, 2)
	for i, made := range out.State.Orders {
		require.Equal(t, made.ID, shown[i].ID)
		require.Equal(t, made.Items, shown[i].Items)
		require.Equal(t, []string{"ClientOrderAdded"}, o.names(t, order.Kind.Stream(idText(made.ID))))
	}
	again, err := dead.converts(t, draft, keyed)
	require.NoError(t, err)
	require.True(t, again.Replayed)
	require.Equal(t, out.State.Orders, again.State.Orders)
	_, err = n.converts(t, draft)
	require.ErrorIs(t, err, orderdraft.ErrNotFound)
	n.delivers(t, out.State.Orders[1].ID)
	o.ordersAgree(t, t, n)
}

func TestSlipNumbersContinueThoseOfOrdersAndOtherDrafts(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
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
