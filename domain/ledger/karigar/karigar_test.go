package karigar_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bahi/domain/event"
	"bahi/domain/event/eventtest"
	"bahi/domain/fault"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/karigar"
	"bahi/domain/unit"
)

type (
	in  = karigar.In
	out = karigar.Out
)

var today = unit.DateOf(time.Date(2025, 3, 31, 0, 0, 0, 0, time.UTC))

// add asks for a new row.
func add(ins []in, outs []out) event.Command[book.Row] {
	return book.AddRow{Ledger: karigar.Ledger, Account: 4, Today: today, Asked: book.Asked{Date: &today, In: book.Entries(ins), Out: book.Entries(outs)}}
}

func parsed[Q any](parse func(string) (Q, error)) func(string) *Q {
	return func(text string) *Q {
		q, err := parse(text)
		if err != nil {
			panic(err)
		}
		return &q
	}
}

var (
	g       = parsed(unit.ParseGrams)
	percent = parsed(unit.ParsePercent)
	rupees  = parsed(unit.ParseMoney)
)

// The example of CONTRACT.md 6.3.
func TestWeightsAreComputed(t *testing.T) {
	t.Parallel()
	none := eventtest.Given(t, karigar.Ledger.Rows)
	silver := out{ItemName: "fine silver", Weight: g("500"), Touch: percent("99.5")}
	stored := silver
	stored.FineWeight, stored.Computed = g("497.5"), []string{"fine_weight"}
	none.Case("given out").When(add(nil, []out{silver})).Then(book.RowAdded{Account: 4, Date: today, Out: book.SideOf([]out{stored})})
	require.Equal(t, book.Effect{Fine: 497_500}, stored.Effect())

	payal := in{ItemName: "payal", PureWeight: g("520"), FinePercent: percent("92"), WastagePercent: percent("2"), Other: rupees("1500")}
	back := payal
	back.FineWeight, back.WastageWeight, back.Computed = g("478.4"), g("10.4"), []string{"fine_weight", "wastage_weight"}
	none.Case("received back").When(add([]in{payal}, nil)).Then(book.RowAdded{Account: 4, Date: today, In: book.SideOf([]in{back})})
	require.Equal(t, book.Effect{Cash: 1500_00, Fine: 488_800}, back.Effect())

	agreed := payal
	agreed.FineWeight, agreed.WastageWeight = g("478.4"), g("12")
	none.Case("the agreement on paper is kept, with a warning").When(add([]in{agreed}, nil)).Then(book.RowAdded{
		Account: 4, Date: today, In: book.SideOf([]in{agreed}),
		Warnings: `[{"field":"in_entries[0].wastage_weight","message":"differs from what the other values say","given":12,"computed":10.4}]`,
	})
}

func TestEntriesAreChecked(t *testing.T) {
	t.Parallel()
	long := book.Text(strings.Repeat("₹", 201))
	for _, good := range []book.Entry{
		in{FineWeight: g("1")}, in{WastageWeight: g("1")}, in{Other: rupees("1")}, in{PureWeight: g("1"), FineWeight: g("0")}, in{ItemName: long[3:], Other: rupees("1")},
		out{FineWeight: g("1")}, out{Amount: rupees("1")}, out{Weight: g("1"), Touch: percent("0"), FineWeight: g("0")},
	} {
		require.Empty(t, good.Check(), "%+v", good)
	}
	const negative, empty = "must not be negative", "a weight or an amount above 0 is needed"
	for _, c := range []struct {
		bad  book.Entry
		want []string
	}{
		{in{}, []string{"", empty}},
		{in{ItemName: "payal", PureWeight: g("0"), FinePercent: percent("92"), FineWeight: g("0"), Other: rupees("0")}, []string{"", empty}},
		{in{PureWeight: g("5")}, []string{"pure_weight", "wants fine_percent or fine_weight too"}},
		{in{PureWeight: g("5"), WastagePercent: percent("2"), WastageWeight: g("0.1")}, []string{"pure_weight", "wants fine_percent or fine_weight too"}},
		{in{FinePercent: percent("92"), Other: rupees("1")}, []string{"fine_percent", "wants pure_weight too"}},
		{in{WastagePercent: percent("2"), Other: rupees("1")}, []string{"wastage_percent", "wants pure_weight too"}},
		{in{PureWeight: g("-1"), FinePercent: percent("101"), FineWeight: g("-1"), WastagePercent: percent("-1"), WastageWeight: g("-1"), Other: rupees("-1")}, []string{
			"pure_weight", negative, "fine_percent", "must be from 0 to 100", "fine_weight", negative,
			"wastage_percent", "must be from 0 to 100", "wastage_weight", negative, "other", negative,
		}},
		{in{ItemName: long, Other: rupees("1")}, []string{"item_name", "at most 200 characters"}},
		{out{}, []string{"", empty}},
		{out{Weight: g("5"), Amount: rupees("1")}, []string{"weight", "wants touch or fine_weight too"}},
		{out{Touch: percent("92"), FineWeight: g("1")}, []string{"touch", "wants weight too"}},
		{out{ItemName: "\x00", Weight: g("1"), FineWeight: g("-1"), Amount: rupees("-1")}, []string{
			"item_name", "control characters are not allowed", "fine_weight", negative, "amount", negative,
		}},
	} {
		var want []fault.Field
		for pair := range slices.Chunk(c.want, 2) {
			want = append(want, fault.Field{Field: pair[0], Message: pair[1]})
		}
		require.Equal(t, want, c.bad.Check(), "%+v", c.bad)
	}
	eventtest.Given(t, karigar.Ledger.Rows).Case("what could not be reversed").
		When(add([]in{{FineWeight: g("999999999"), WastageWeight: g("1")}}, nil)).
		ThenFails(fault.Fields(fault.Field{Field: "in_entries[0]", Message: "comes to more digits than the books have"}))
}

func TestAReversalTranslates(t *testing.T) {
	t.Parallel()
	newIn, newOut, err := karigar.Ledger.Mirror(
		book.SideOf([]in{
			{ItemName: "payal", PureWeight: g("520"), FinePercent: percent("92"), FineWeight: g("478.4"), WastageWeight: g("10.4"), Other: rupees("1500"), Computed: []string{"fine_weight"}},
			{WastageWeight: g("3")}, {Other: rupees("5")},
		}),
		book.SideOf([]out{{ItemName: "silver", Weight: g("500"), Touch: percent("99.5"), FineWeight: g("497.5"), Amount: rupees("7")}}))
	require.NoError(t, err)
	require.Equal(t, book.SideOf([]in{{ItemName: "silver", PureWeight: g("500"), FineWeight: g("497.5"), Other: rupees("7")}}), newIn)
	require.Equal(t, book.SideOf([]out{{ItemName: "payal", Weight: g("520"), FineWeight: g("488.8"), Amount: rupees("1500")}, {FineWeight: g("3")}, {Amount: rupees("5")}}), newOut)
}

// some is nothing, or one of the numbers up to most.
func some[Q ~int64](t *rapid.T, name string, most int64) *Q {
	if !rapid.Bool().Draw(t, "has "+name) {
		return nil
	}
	return new(Q(rapid.Int64Range(0, most).Draw(t, name)))
}

// Whatever is taken can be reversed by entries that are taken too.
func TestEveryEntryIsReversedByAnOrdinaryOne(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ins := []in{{
			PureWeight: some[unit.Grams](t, "pure", 1e12-1), FinePercent: some[unit.Percent](t, "percent", 1e5), FineWeight: some[unit.Grams](t, "fine", 1e12-1),
			WastagePercent: some[unit.Percent](t, "wastage percent", 1e5), WastageWeight: some[unit.Grams](t, "wastage", 1e12-1), Other: some[unit.Money](t, "other", 1e15-1),
		}}
		outs := []out{{
			Weight: some[unit.Grams](t, "weight", 1e12-1), Touch: some[unit.Percent](t, "touch", 1e5), FineWeight: some[unit.Grams](t, "out", 1e12-1), Amount: some[unit.Money](t, "amount", 1e15-1),
		}}
		for _, sides := range []struct {
			in  []in
			out []out
		}{{ins, nil}, {nil, outs}} {
			events, err := add(sides.in, sides.out).Decide(book.Row{})
			if err != nil {
				continue
			}
			row := events[0].Evolve(book.Row{})
			newIn, newOut, err := karigar.Ledger.Mirror(row.In, row.Out)
			require.NoError(t, err)
			require.Equal(t, []book.Effect{row.Out.Effect, row.In.Effect}, []book.Effect{newIn.Effect, newOut.Effect})
			entriesIn, err := book.EntriesOf[in](newIn)
			require.NoError(t, err)
			entriesOut, err := book.EntriesOf[out](newOut)
			require.NoError(t, err)
			again, err := add(entriesIn, entriesOut).Decide(book.Row{})
			require.NoError(t, err)
			require.Equal(t, book.RowAdded{Account: 4, Date: today, In: newIn, Out: newOut}, again[0])
		}
	})
}
