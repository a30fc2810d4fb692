package ledgercmd_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/commands/ledgercmd"
	"bahi/domain/fault"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/client"
	"bahi/domain/ledger/karigar"
	"bahi/domain/ledger/order"
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

// ends is what another process does: it deletes an account.
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

// moves gives an order to another client.
func (n *node) moves(t *testing.T, number, to int64, change ...func(*commands.Request)) (commands.Outcome[order.State], error) {
	t.Helper()
	return ledgercmd.EditOrder(t.Context(), as(t, change...), n.Books, number, order.Edit{Client: patch.Set(to)})
}

// order reads an order, nil when it is not there.
func (o *office) order(t *testing.T, number int64) *ledgerview.ClientOrder {
	t.Helper()
	return found(t, order.ErrNotFound, func() (ledgerview.ClientOrder, error) { return o.views.Order(t.Context(), nil, workspace, number) })
}

// takada reads a takada, nil when it is not there.
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
	require.Equal(t, []string{"added", "deleted"}, []string{history[0].Change, history[1].Change})
	require.Equal(t, "because", history[1].Reason, "the deletion is the client's")
	o.ordersAgree(t, t, n)
}

func invalid(field, message string) error {
	return fault.Fields(fault.Field{Field: field, Message: message})
}

func TestADeletionOfAClientThatWasRefusedLeavesItsOrders(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	n := o.node(t)
	holder := n.opens(t, client.Ledger)
	number := n.orders(t, holder)
	_, err := ledgercmd.AddRow(t.Context(), as(t), n.Books, client.Ledger, holder,
		asked{Date: new(today - 10), In: book.Entries([]client.In{{Amount: new(unit.Money(100))}})})
	require.NoError(t, err)
	n.lock(t, new(today-10))
	require.ErrorIs(t, n.ends(t, client.Ledger, holder)(), errLocked)
	require.NotNil(t, o.order(t, number))
	_, err = ledgercmd.EditOrder(t.Context(), as(t), n.Books, number, order.Edit{Date: patch.Set(today - 20)})
	require.NoError(t, err, "the lock binds ledger rows only")
	o.ordersAgree(t, t, n)
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

func TestAnOrderWithTakadasKeepsItsClient(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	winner := o.node(t)
	holder, other := winner.opens(t, client.Ledger), winner.opens(t, client.Ledger)

	alone := winner.orders(t, holder)
	out, err := winner.moves(t, alone, other, dryRun)
	require.NoError(t, err)
	require.Equal(t, other, out.State.Client)
	require.Equal(t, holder, o.order(t, alone).Client, "a dry run appends nothing")
	out, err = winner.moves(t, alone, other, keyed)
	require.NoError(t, err)
	require.Equal(t, other, o.order(t, alone).Client)
	again, err := winner.moves(t, alone, other, keyed)
	require.NoError(t, err)
	require.True(t, again.Replayed)
	require.Equal(t, out.Revision, again.Revision)

	delivered := winner.orders(t, holder)
	winner.delivers(t, delivered)
	for _, change := range []func(*commands.Request){dryRun, func(*commands.Request) {}} {
		_, err = winner.moves(t, delivered, other, change)
		require.ErrorIs(t, err, order.ErrHasTakadas)
	}
	_, err = winner.moves(t, delivered, other, func(r *commands.Request) { r.IfMatch = new(int64(7)) })
	require.ErrorIs(t, err, commands.ErrStale)
	_, err = winner.moves(t, delivered, 999_999)
	require.Equal(t, invalid("client_id", "there is no such client"), err)

	o.ordersAgree(t, t, winner)
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
