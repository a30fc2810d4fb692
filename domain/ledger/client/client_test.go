package client_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/fault"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/client"
	"bahi/internal/test/booktest"
	"bahi/internal/test/eventtest"
)

type (
	in  = client.In
	out = client.Out
)

var g, percent, rupees = booktest.Grams, booktest.Percent, booktest.Rupees

func TestValuesAreComputed(t *testing.T) {
	t.Parallel()
	none := eventtest.Given(t, client.Ledger.Rows)
	for sentence, c := range map[string]struct {
		given, stored out
		effect        book.Effect
	}{
		"the wastage adds to the touch": {
			out{Weight: g("100"), Touch: percent("92"), WastagePercent: percent("3"), MakingCharge: rupees("1500")},
			out{Weight: g("100"), Touch: percent("92"), WastagePercent: percent("3"), WastageWeight: g("3"), FineWeight: g("95"),
				MakingCharge: rupees("1500"), Computed: []string{"wastage_weight", "fine_weight"}},
			book.Effect{Cash: 1500_00, Fine: 95_000},
		},
		"a wastage in grams is part of the fine weight": {
			out{Weight: g("100"), Touch: percent("92"), WastageWeight: g("2.5")},
			out{Weight: g("100"), Touch: percent("92"), WastageWeight: g("2.5"), FineWeight: g("94.5"), Computed: []string{"fine_weight"}},
			book.Effect{Fine: 94_500},
		},
		"beside a percentage, a wastage in grams is information": {
			out{Weight: g("100"), Touch: percent("92"), WastagePercent: percent("3"), WastageWeight: g("3.01")},
			out{Weight: g("100"), Touch: percent("92"), WastagePercent: percent("3"), WastageWeight: g("3.01"), FineWeight: g("95"),
				Computed: []string{"fine_weight"}},
			book.Effect{Fine: 95_000},
		},
		"a given fine weight includes the wastage": {
			out{Weight: g("100"), FineWeight: g("95"), WastageWeight: g("3")},
			out{Weight: g("100"), FineWeight: g("95"), WastageWeight: g("3")},
			book.Effect{Fine: 95_000},
		},
		"a rate makes money of the metal": {
			out{Weight: g("10"), Touch: percent("91.6"), Rate: rupees("7000.50"), MakingCharge: rupees("500")},
			out{Weight: g("10"), Touch: percent("91.6"), FineWeight: g("9.16"), Rate: rupees("7000.50"), Amount: rupees("64124.58"),
				MakingCharge: rupees("500"), Computed: []string{"fine_weight", "amount"}},
			book.Effect{Cash: 64_624_58},
		},
		"metal and money without a rate are two things": {
			out{FineWeight: g("5"), Amount: rupees("100")},
			out{FineWeight: g("5"), Amount: rupees("100")},
			book.Effect{Cash: 100_00, Fine: 5_000},
		},
	} {
		none.Case(sentence).When(booktest.Add(client.Ledger, []in(nil), []out{c.given})).Then(booktest.Added([]in(nil), []out{c.stored}))
		require.Equal(t, c.effect, c.stored.Effect(), sentence)
	}
	agreed := in{FineWeight: g("10"), Rate: rupees("7000"), Amount: rupees("69000")}
	warned := booktest.Added([]in{agreed}, []out(nil))
	warned.Warnings = `[{"field":"in_entries[0].amount","message":"differs from what the other values say","given":69000,"computed":70000}]`
	none.Case("the agreed amount is kept, with a warning").When(booktest.Add(client.Ledger, []in{agreed}, []out(nil))).Then(warned)
	const tooMany = "the computed value is too large"
	none.Case("a computed amount has no more digits than a given one").
		When(booktest.Add(client.Ledger, []in(nil), []out{{FineWeight: g("999999999"), Rate: rupees("20000")}})).
		ThenFails(fault.Fields(booktest.Faults("out_entries[0].amount", tooMany)...))
	none.Case("a bill that its reversal could not have").
		When(booktest.Add(client.Ledger, []in(nil), []out{{Amount: rupees("9999999999999"), MakingCharge: rupees("1")}})).
		ThenFails(fault.Fields(booktest.Faults("out_entries[0]", tooMany)...))
}

func TestEntriesAreChecked(t *testing.T) {
	t.Parallel()
	const negative, empty = "must not be negative", "a weight or an amount above 0 is needed"
	booktest.Checks(t, []book.Entry{
		in{Amount: rupees("1")}, in{FineWeight: g("1"), Rate: rupees("1")}, out{MakingCharge: rupees("1")},
		out{Weight: g("1"), Touch: percent("0"), FineWeight: g("0")},
		out{FineWeight: g("1"), WastageWeight: g("1")},
		out{Amount: rupees("1"), SlipNumber: book.Text(strings.Repeat("7", 40)), Description: book.Text(strings.Repeat("₹", 500))},
	}, []booktest.Wrong{
		{Entry: in{}, Faults: []string{"", empty}},
		{Entry: out{Weight: g("0"), Touch: percent("92"), FineWeight: g("0"), Amount: rupees("0")}, Faults: []string{"", empty}},
		{Entry: out{Weight: g("5"), Amount: rupees("1")}, Faults: []string{"weight", "requires touch or fine_weight"}},
		{Entry: out{Touch: percent("92"), WastagePercent: percent("3"), Amount: rupees("1")},
			Faults: []string{"touch", "requires weight", "wastage_percent", "requires weight"}},
		{Entry: out{WastageWeight: g("1"), Amount: rupees("1")}, Faults: []string{"wastage_weight", "requires weight or fine_weight"}},
		{Entry: out{Rate: rupees("7000"), Amount: rupees("1")}, Faults: []string{"rate", "requires weight or fine_weight"}},
		{Entry: out{FineWeight: g("1"), Rate: rupees("0")}, Faults: []string{"rate", "must be more than 0"}},
		{Entry: in{MakingCharge: rupees("1")}, Faults: []string{"making_charge", "only OUT entries have one"}},
		{
			Entry: out{Weight: g("-1"), Touch: percent("101"), FineWeight: g("-1"), WastagePercent: percent("-1"), WastageWeight: g("-1"),
				MakingCharge: rupees("-1"), Amount: rupees("-1")},
			Faults: []string{
				"weight", negative, "touch", "must be from 0 to 100", "fine_weight", negative, "wastage_percent", "must be from 0 to 100",
				"wastage_weight", negative,
				"making_charge", negative, "amount", negative,
			},
		},
		{
			Entry: out{ItemName: book.Text(strings.Repeat("₹", 201)), SlipNumber: book.Text(strings.Repeat("7", 41)), Description: "\x00",
				Amount: rupees("1")},
			Faults: []string{"item_name", "at most 200 characters", "slip_number", "at most 40 characters", "description",
				"control characters are not allowed"},
		},
	})
}

func TestAReversalBillsTheMakingChargeInTheAmount(t *testing.T) {
	t.Parallel()
	priced := out{ItemName: "payal", SlipNumber: "118", FineWeight: g("10"), Rate: rupees("7000"), Amount: rupees("70000"),
		MakingCharge: rupees("500"), Computed: []string{"amount"}}
	newIn, newOut, err := client.Ledger.Mirror(
		book.SideOf([]in{{Weight: g("10"), Touch: percent("92"), FineWeight: g("9.2"), Description: "old gold",
			Computed: []string{"fine_weight"}}}),
		book.SideOf([]out{priced, {MakingCharge: rupees("20")}, {FineWeight: g("1")}}))
	require.NoError(t, err)
	require.Equal(t, book.SideOf([]in{
		{ItemName: "payal", SlipNumber: "118", FineWeight: g("10"), Rate: rupees("7000"), Amount: rupees("70500")}, {Amount: rupees("20")},
		{FineWeight: g("1")},
	}), newIn)
	require.Equal(t, book.SideOf([]out{{Weight: g("10"), Touch: percent("92"), FineWeight: g("9.2"), Description: "old gold"}}), newOut)
}

func TestLaws(t *testing.T) {
	t.Parallel()
	booktest.Laws[in, out](t, client.Ledger)
}
