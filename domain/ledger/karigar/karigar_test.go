package karigar_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/karigar"
	"bahi/internal/test/booktest"
	"bahi/internal/test/eventtest"
)

type (
	in  = karigar.In
	out = karigar.Out
)

var g, percent, rupees = booktest.Grams, booktest.Percent, booktest.Rupees

// add asks for a new row.
func add(ins []in, outs []out) event.Command[book.Row] {
	return booktest.Add(karigar.Ledger, ins, outs)
}

// The example of CONTRACT.md 6.3.
func TestWeightsAreComputed(t *testing.T) {
	t.Parallel()
	none := eventtest.Given(t, karigar.Ledger.Rows)
	silver := out{ItemName: "fine silver", Weight: g("500"), Touch: percent("99.5")}
	stored := silver
	stored.FineWeight, stored.Computed = g("497.5"), []string{"fine_weight"}
	none.Case("given out").When(add(nil, []out{silver})).Then(booktest.Added([]in(nil), []out{stored}))
	require.Equal(t, book.Effect{Fine: 497_500}, stored.Effect())

	payal := in{ItemName: "payal", PureWeight: g("520"), FinePercent: percent("92"), WastagePercent: percent("2"), Other: rupees("1500")}
	back := payal
	back.FineWeight, back.WastageWeight, back.Computed = g("478.4"), g("10.4"), []string{"fine_weight", "wastage_weight"}
	none.Case("received back").When(add([]in{payal}, nil)).Then(booktest.Added([]in{back}, []out(nil)))
	require.Equal(t, book.Effect{Cash: 1500_00, Fine: 488_800}, back.Effect())

	agreed := payal
	agreed.FineWeight, agreed.WastageWeight = g("478.4"), g("12")
	warned := booktest.Added([]in{agreed}, []out(nil))
	warned.Warnings = `[{"field":"in_entries[0].wastage_weight","message":"differs from what the other values say","given":12,` +
		`"computed":10.4}]`
	none.Case("the agreement on paper is kept, with a warning").When(add([]in{agreed}, nil)).Then(warned)
}

func TestEntriesAreChecked(t *testing.T) {
	t.Parallel()
	long := book.Text(strings.Repeat("₹", 201))
	const negative, empty = "must not be negative", "a weight or an amount above 0 is needed"
	booktest.Checks(t, []book.Entry{
		in{FineWeight: g("1")}, in{WastageWeight: g("1")}, in{Other: rupees("1")}, in{PureWeight: g("1"), FineWeight: g("0")},
		in{ItemName: long[3:], Other: rupees("1")},
		out{FineWeight: g("1")}, out{Amount: rupees("1")}, out{Weight: g("1"), Touch: percent("0"), FineWeight: g("0")},
	}, []booktest.Wrong{
		{Entry: in{}, Faults: []string{"", empty}},
		{Entry: in{ItemName: "payal", PureWeight: g("0"), FinePercent: percent("92"), FineWeight: g("0"), Other: rupees("0")},
			Faults: []string{"", empty}},
		{Entry: in{PureWeight: g("5")}, Faults: []string{"pure_weight", "requires fine_percent or fine_weight"}},
		{Entry: in{PureWeight: g("5"), WastagePercent: percent("2"), WastageWeight: g("0.1")},
			Faults: []string{"pure_weight", "requires fine_percent or fine_weight"}},
		{Entry: in{FinePercent: percent("92"), Other: rupees("1")}, Faults: []string{"fine_percent", "requires pure_weight"}},
		{Entry: in{WastagePercent: percent("2"), Other: rupees("1")}, Faults: []string{"wastage_percent", "requires pure_weight"}},
		{Entry: in{PureWeight: g("-1"), FinePercent: percent("101"), FineWeight: g("-1"), WastagePercent: percent("-1"), WastageWeight: g("-1"),
			Other: rupees("-1")}, Faults: []string{
			"pure_weight", negative, "fine_percent", "must be from 0 to 100", "fine_weight", negative,
			"wastage_percent", "must be from 0 to 100", "wastage_weight", negative, "other", negative,
		}},
		{Entry: in{ItemName: long, Other: rupees("1")}, Faults: []string{"item_name", "at most 200 characters"}},
		{Entry: out{}, Faults: []string{"", empty}},
		{Entry: out{Weight: g("5"), Amount: rupees("1")}, Faults: []string{"weight", "requires touch or fine_weight"}},
		{Entry: out{Touch: percent("92"), FineWeight: g("1")}, Faults: []string{"touch", "requires weight"}},
		{Entry: out{ItemName: "\x00", Weight: g("1"), FineWeight: g("-1"), Amount: rupees("-1")}, Faults: []string{
			"item_name", "control characters are not allowed", "fine_weight", negative, "amount", negative,
		}},
	})
	eventtest.Given(t, karigar.Ledger.Rows).Case("what could not be reversed").
		When(add([]in{{FineWeight: g("999999999"), WastageWeight: g("1")}}, nil)).
		ThenFails(fault.Fields(fault.Field{Field: "in_entries[0]", Message: "the computed value is too large"}))
}

func TestAReversalTranslates(t *testing.T) {
	t.Parallel()
	newIn, newOut, err := karigar.Ledger.Mirror(
		book.SideOf([]in{
			{ItemName: "payal", PureWeight: g("520"), FinePercent: percent("92"), FineWeight: g("478.4"), WastageWeight: g("10.4"),
				Other: rupees("1500"), Computed: []string{"fine_weight"}},
			{WastageWeight: g("3")}, {Other: rupees("5")},
		}),
		book.SideOf([]out{{ItemName: "silver", Weight: g("500"), Touch: percent("99.5"), FineWeight: g("497.5"), Amount: rupees("7")}}))
	require.NoError(t, err)
	require.Equal(t, book.SideOf([]in{{ItemName: "silver", PureWeight: g("500"), FineWeight: g("497.5"), Other: rupees("7")}}), newIn)
	require.Equal(t, book.SideOf([]out{{ItemName: "payal", Weight: g("520"), FineWeight: g("488.8"), Amount: rupees("1500")},
		{FineWeight: g("3")}, {Amount: rupees("5")}}), newOut)
}

func TestLaws(t *testing.T) {
	t.Parallel()
	booktest.Laws[in, out](t, karigar.Ledger)
}
