package ledgercmd_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bahi/commands"
	"bahi/commands/ledgercmd"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/client"
	"bahi/domain/ledger/karigar"
	"bahi/domain/ledger/order"
	"bahi/domain/ledger/takada"
	"bahi/domain/patch"
	"bahi/domain/unit"
	"bahi/eventstore"
	"bahi/projections"
	"bahi/projections/ledgerproj"
)

// ordersAgree checks that commands and tables have the same orders and takadas, and that the delivered weights equal the weights of the
// takadas.
func (o *fixture) ordersAgree(t *testing.T, rt require.TestingT, judge *node) {
	t.Helper()
	delivered, weights := map[int64]unit.Grams{}, map[int64]unit.Grams{}
	o.everyStream(t, takada.Kind.Category(), func(workspace uuid.UUID, number int64) {
		req := as(t, func(r *commands.Request) { r.Workspace = workspace })
		out, err := ledgercmd.EditTakada(t.Context(), req, judge.Books, number, takada.Edit{})
		read, missing := o.views.Takada(t.Context(), nil, workspace, number)
		if err != nil {
			require.ErrorIs(rt, err, takada.ErrNotFound)
			require.ErrorIs(rt, missing, takada.ErrNotFound, o.tell(t, takada.Kind.Stream(idText(number))))
			return
		}
		require.NoError(rt, missing, o.tell(t, takada.Kind.Stream(idText(number))))
		require.Equal(rt, out.State.Takada, read.Takada)
		require.Equal(rt, out.Revision, *read.Revision)
		delivered[read.Takada.Order] += read.Weight()
	})
	o.everyStream(t, order.Kind.Category(), func(workspace uuid.UUID, number int64) {
		req := as(t, func(r *commands.Request) { r.Workspace = workspace })
		out, err := ledgercmd.EditOrder(t.Context(), req, judge.Books, number, order.Edit{})
		read, missing := o.views.Order(t.Context(), nil, workspace, number)
		if err != nil {
			require.ErrorIs(rt, err, order.ErrNotFound)
			require.ErrorIs(rt, missing, order.ErrNotFound, o.tell(t, order.Kind.Stream(idText(number))))
			return
		}
		require.NoError(rt, missing, o.tell(t, order.Kind.Stream(idText(number))))
		require.Equal(rt, out.State.Order, read.Order)
		require.Equal(rt, out.Revision, *read.Revision)
		weights[number] = *read.Delivered
		require.Equal(rt, delivered[number], weights[number], "delivered of order %d", number)
	})
	for number := range delivered {
		require.Contains(rt, weights, number, "a takada without its order")
	}
}

// everyStream calls take for each stream of a category, with the workspace of its first event.
func (o *fixture) everyStream(t *testing.T, category string, take func(workspace uuid.UUID, number int64)) {
	t.Helper()
	for e, err := range o.store.ReadAll(t.Context(), 0, eventstore.Forwards) {
		require.NoError(t, err)
		of, key := event.SplitStream(e.Stream)
		if of != category || e.Revision != 0 {
			continue
		}
		meta := struct{ Workspace uuid.UUID }{}
		require.NoError(t, json.Unmarshal(e.Meta, &meta))
		take(meta.Workspace, id(t, key))
	}
}

// tell formats the stream's events in the log.
func (o *fixture) tell(t *testing.T, stream string) (text string) {
	t.Helper()
	for e, err := range o.store.ReadStream(t.Context(), stream, 0, eventstore.Forwards) {
		require.NoError(t, err)
		text += fmt.Sprintf("%d %s %d %s %s %s\n", e.Position, e.Stream, e.Revision, e.Type, e.Data, e.Meta)
	}
	return text
}

// orderModel is a workspace's orders.
type orderModel struct {
	t                                  *testing.T
	rt                                 *rapid.T
	spaces                             []uuid.UUID
	clients, karigars, orders, takadas []int64
}

func (d *orderModel) one(of []int64, label string) int64 {
	if len(of) == 0 {
		return 1
	}
	return rapid.SampledFrom(of).Draw(d.rt, label)
}

// step runs one command, even one that the domain refuses.
func (d *orderModel) step(n *node) error {
	space := d.spaces[0]
	if rapid.IntRange(0, 9).Draw(d.rt, "stranger") == 9 {
		space = d.spaces[1]
	}
	req := as(d.t, func(r *commands.Request) { r.Workspace = space })
	ctx := d.t.Context()
	var maker *int64
	if len(d.karigars) > 0 && rapid.Bool().Draw(d.rt, "by a karigar") {
		maker = new(d.one(d.karigars, "karigar"))
	}
	weight := unit.Grams(rapid.IntRange(1, 99).Draw(d.rt, "weight"))
	opened := func(l *book.Ledger, into *[]int64) error {
		out, err := ledgercmd.OpenAccount(ctx, req, n.Books, l, book.OpenAccount{Name: "Meena"})
		if err == nil {
			*into = append(*into, id(d.t, out.ID))
		}
		return err
	}
	steps := []string{"deliver", "edit order", "order", "edit takada", "move takada", "move order", "delete takada", "delete order",
		"karigar", "client", "delete karigar", "delete client"}
	var err error
	switch rapid.SampledFrom(steps).Draw(d.rt, "step") {
	case "client":
		err = opened(client.Ledger, &d.clients)
	case "karigar":
		err = opened(karigar.Ledger, &d.karigars)
	case "order":
		c := orderOf(d.one(d.clients, "client"))
		c.Items[0].Weight, c.Slip = weight, new(book.Text("7"))
		var out commands.Outcome[order.State]
		if out, err = ledgercmd.AddOrder(ctx, req, n.Books, c); out.ID != "" {
			d.orders = append(d.orders, id(d.t, out.ID))
		}
	case "edit order":
		_, err = ledgercmd.EditOrder(ctx, req, n.Books, d.one(d.orders, "order"),
			order.Edit{Items: patch.Set([]order.Item{{Name: "x", Weight: weight}})})
	case "move order":
		_, err = ledgercmd.EditOrder(ctx, req, n.Books, d.one(d.orders, "order"), order.Edit{Client: patch.Set(d.one(d.clients, "to"))})
	case "delete order":
		_, err = ledgercmd.DeleteOrder(ctx, req, n.Books, d.one(d.orders, "order"))
	case "deliver":
		c := takadaOf(d.one(d.orders, "order"), maker)
		c.Items[0].Weight = weight
		var out commands.Outcome[takada.State]
		if out, err = ledgercmd.AddTakada(ctx, req, n.Books, c); out.ID != "" {
			d.takadas = append(d.takadas, id(d.t, out.ID))
		}
	case "edit takada":
		_, err = ledgercmd.EditTakada(ctx, req, n.Books, d.one(d.takadas, "takada"),
			takada.Edit{Items: patch.Set([]takada.Item{{Name: "x", Weight: weight, Karigar: maker}})})
	case "move takada":
		_, err = ledgercmd.EditTakada(ctx, req, n.Books, d.one(d.takadas, "takada"), takada.Edit{Order: patch.Set(d.one(d.orders, "to"))})
	case "delete takada":
		_, err = ledgercmd.DeleteTakada(ctx, req, n.Books, d.one(d.takadas, "takada"))
	case "delete client":
		_, err = ledgercmd.DeleteAccount(ctx, req, n.Books, client.Ledger, d.one(d.clients, "client"))
	case "delete karigar":
		_, err = ledgercmd.DeleteAccount(ctx, req, n.Books, karigar.Ledger, d.one(d.karigars, "karigar"))
	}
	if _, refused := errors.AsType[*fault.Error](err); refused {
		return nil
	}
	return err
}

// TestFiveCommandsKeepTheRules covers concurrent commands and processes that die.
func TestCommandsAndOrdersAgreeWhateverHappens(t *testing.T) {
	t.Parallel()
	o := openFixture(t)
	n := o.node(t)
	rapid.Check(t, func(rt *rapid.T) {
		d := &orderModel{t: t, rt: rt, spaces: []uuid.UUID{uuid.New(), uuid.New()}}
		begin := as(t, func(r *commands.Request) { r.Workspace = d.spaces[0] })
		for range 2 {
			out, err := ledgercmd.OpenAccount(t.Context(), begin, n.Books, client.Ledger, book.OpenAccount{Name: "Meena"})
			require.NoError(rt, err)
			d.clients = append(d.clients, id(t, out.ID))
			ordered, err := ledgercmd.AddOrder(t.Context(), begin, n.Books, orderOf(d.clients[0]))
			require.NoError(rt, err)
			d.orders = append(d.orders, id(t, ordered.ID))
		}
		delivered, err := ledgercmd.AddTakada(t.Context(), begin, n.Books, takadaOf(d.orders[0], nil))
		require.NoError(rt, err)
		d.takadas = append(d.takadas, id(t, delivered.ID))
		for range rapid.IntRange(3, 14).Draw(rt, "steps") {
			require.NoError(rt, d.step(n))
		}
	})
	judge := o.node(t)
	o.ordersAgree(t, t, judge)
	build := projections.Build{Store: o.store, Config: o.pool.Config().ConnConfig.Copy(), Projection: ledgerproj.Orders, Log: judge.Log}
	for stops, size := range []int{1, 7, math.MaxInt} {
		differences, err := build.Fold(context.WithoutCancel(t.Context()), size, stops)
		require.NoError(t, err)
		require.Empty(t, differences, "folded in batches of %d", size)
	}
	found := map[string]int{}
	for e, err := range o.store.ReadAll(t.Context(), 0, eventstore.Forwards) {
		require.NoError(t, err)
		found[e.Type]++
	}
	require.Positive(t, found["OrderTakadaDetached"]+found["TakadaDeleted"], "one kind alone may be missing by chance")
	t.Logf("%v", found)
}
