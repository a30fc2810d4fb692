package polisher_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/fault"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/polisher"
	"bahi/internal/test/booktest"
	"bahi/internal/test/eventtest"
)

type (
	in  = polisher.In
	out = polisher.Out
)

var g, rupees = booktest.Grams, booktest.Rupees

func TestWhatThePolishingTookOffIsNotOwed(t *testing.T) {
	t.Parallel()
	given, back := out{ItemName: "payal", Weight: g("100"), Pieces: new(int64(12))},
		in{ItemName: "payal", Weight: g("98.5"), LossWeight: g("1.5"), Rate: rupees("5"), Amount: rupees("60")}
	eventtest.Given(t, polisher.Ledger.Rows).Case("nothing is computed").
		When(booktest.Add(polisher.Ledger, []in{back}, []out{given})).Then(booktest.Added([]in{back}, []out{given}))
	require.Equal(t, book.Effect{Cash: 60_00}, back.Effect().Minus(given.Effect()))
}

func TestEntriesAreChecked(t *testing.T) {
	t.Parallel()
	const negative, empty = "must not be negative", "a weight or an amount above 0 is needed"
	booktest.Checks(t, []book.Entry{in{LossWeight: g("1")}, in{Amount: rupees("1"), Rate: rupees("1")},
		out{Weight: g("1"), Pieces: new(int64(0))}, out{Amount: rupees("1")}}, []booktest.Wrong{
		{Entry: in{Pieces: new(int64(5)), Rate: rupees("7"), Weight: g("0")}, Faults: []string{"", empty}},
		{Entry: out{Pieces: new(int64(5))}, Faults: []string{"", empty}},
		{Entry: in{Amount: rupees("1"), Rate: rupees("0")}, Faults: []string{"rate", "must be more than 0"}},
		{Entry: out{Weight: g("1"), Pieces: new(int64(1_000_000_000))}, Faults: []string{"pieces", "must be from 0 to 999999999"}},
		{Entry: in{Weight: g("-1"), LossWeight: g("-2"), Pieces: new(int64(-1)), Amount: rupees("-1"), ItemName: "\u202e", Description: "\x00"},
			Faults: []string{
				"item_name", "control characters are not allowed", "weight", negative, "pieces", "must be from 0 to 999999999", "amount", negative,
				"description", "control characters are not allowed", "loss_weight", negative,
			}},
	})
	eventtest.Given(t, polisher.Ledger.Rows).Case("what could not be reversed").
		When(booktest.Add(polisher.Ledger, []in{{Weight: g("999999999"), LossWeight: g("1")}}, []out(nil))).
		ThenFails(fault.Fields(booktest.Faults("in_entries[0]", "the computed value is too large")...))
}

func TestAReversalTranslates(t *testing.T) {
	t.Parallel()
	newIn, newOut, err := polisher.Ledger.Mirror(
		book.SideOf([]in{{ItemName: "payal", Weight: g("98.5"), LossWeight: g("1.5"), Pieces: new(int64(12)), Rate: rupees("5"),
			Amount: rupees("60"), Description: "late"}, {LossWeight: g("1")}, {Amount: rupees("5")}}),
		book.SideOf([]out{{ItemName: "ring", Weight: g("3"), Pieces: new(int64(1)), Amount: rupees("7"), Description: "paid"}}))
	require.NoError(t, err)
	require.Equal(t, book.SideOf([]in{{ItemName: "ring", Weight: g("3"), Pieces: new(int64(1)), Amount: rupees("7"), Description: "paid"}}),
		newIn)
	require.Equal(t, book.SideOf([]out{{ItemName: "payal", Weight: g("100"), Pieces: new(int64(12)), Amount: rupees("60"),
		Description: "late"}, {Weight: g("1")}, {Amount: rupees("5")}}), newOut)
}

func TestLaws(t *testing.T) {
	t.Parallel()
	booktest.Laws[in, out](t, polisher.Ledger)
}
