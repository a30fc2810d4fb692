package ledgercmd_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/commands/ledgercmd"
	"bahi/domain/fault"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/client"
	"bahi/domain/ledger/order"
	"bahi/domain/ledger/orderdraft"
	"bahi/domain/patch"
	"bahi/domain/unit"
	"bahi/readmodels"
	"bahi/readmodels/ledgerview"
)

// drafts makes a draft of a message, whose entries are a client's.
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

// pending are the ids of the drafts that wait for their review.
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

// Another process deletes the client between the look at it and the append.
func TestConversionForAClientWhoIsDeletedMeanwhileIsRefused(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	n, other := o.node(t), o.node(t)
	first, second := n.opens(t, client.Ledger), n.opens(t, client.Ledger)
	draft := n.drafts(t, "slip 7\npayal 250 gm", first)
	added, err := ledgercmd.AddDraftEntry(t.Context(), as(t), n.Books, draft, orderdraft.AddEntry{EditEntry: orderdraft.EditEntry{
		Item: patch.Set(book.Text("ring")), Weight: patch.Set(unit.Grams(5_000)), ClientID: patch.Set(second), Slip: patch.Set(book.Text("8")),
	}})
	require.NoError(t, err)
	n.store.at("orderdraft-", other.ends(t, client.Ledger, second))
	_, err = n.converts(t, draft)
	require.ErrorIs(t, err, orderdraft.ErrNotReady)
	require.Equal(t, []int64{draft}, o.pending(t))
	require.Empty(t, o.ordersOf(t, first), "all or none")

	_, err = other.converts(t, draft)
	refused := new(fault.Error)
	require.ErrorAs(t, err, &refused)
	last := added.State.Entries[len(added.State.Entries)-1]
	require.Equal(t, []fault.Field{{Field: "entries[1].client_id", Message: "there is no such client", ID: last.ID}}, refused.Fields)
	_, err = ledgercmd.EditDraftEntry(t.Context(), as(t), other.Books, draft, orderdraft.EditEntry{ID: last.ID, ClientID: patch.Set(first)})
	require.NoError(t, err)
	out, err := other.converts(t, draft)
	require.NoError(t, err)
	require.Len(t, out.State.Orders, 2)
	require.Len(t, o.ordersOf(t, first), 2)
	require.Empty(t, o.pending(t))
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

func TestRefusedAndRepeatedChangesOfDraftsUseUpNoNumber(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	n := o.node(t)
	holder := n.opens(t, client.Ledger)
	draft := n.drafts(t, "slip 7\npayal 250 gm", holder)
	dry, err := n.converts(t, draft, dryRun)
	require.NoError(t, err)
	require.Zero(t, dry.State.Orders[0].ID)
	_, err = n.converts(t, draft, func(r *commands.Request) { r.IfMatch = new(int64(0)) })
	require.ErrorIs(t, err, commands.ErrStale)
	_, err = n.converts(t, draft, func(r *commands.Request) { r.Workspace = stranger })
	require.ErrorIs(t, err, orderdraft.ErrNotFound)
	ring := orderdraft.AddEntry{EditEntry: orderdraft.EditEntry{Item: patch.Set(book.Text("ring")), ClientID: patch.Set(holder + 1000)}}
	_, err = ledgercmd.AddDraftEntry(t.Context(), as(t), n.Books, draft, ring)
	require.Equal(t, invalid("client_id", "there is no such client"), err)
	ring.ClientID = patch.Set(holder)
	first, err := ledgercmd.AddDraftEntry(t.Context(), as(t, keyed), n.Books, draft, ring)
	require.NoError(t, err)
	again, err := ledgercmd.AddDraftEntry(t.Context(), as(t, keyed), n.Books, draft, ring)
	require.NoError(t, err)
	require.True(t, again.Replayed)
	require.Equal(t, first.State.Entries, again.State.Entries)
	require.Equal(t, first.State.Entries[0].ID+1, first.State.Entries[1].ID)
}
