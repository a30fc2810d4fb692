package bullion_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/bullion"
	"bahi/domain/unit"
	"bahi/internal/test/booktest"
	"bahi/internal/test/eventtest"
)

type entry = bullion.Entry

var g, percent, rupees = booktest.Grams, booktest.Percent, booktest.Rupees

func add(in, out []entry) event.Command[book.Row] { return booktest.Add(bullion.Ledger, in, out) }

func edit(in, out []entry) event.Command[book.Row] { return booktest.Edit(bullion.Ledger, in, out) }

func added(in, out []entry) book.RowAdded { return booktest.Added(in, out) }

func edited(in, out []entry) (e book.RowEdited) {
	if in != nil {
		e.In = new(book.SideOf(in))
	}
	if out != nil {
		e.Out = new(book.SideOf(out))
	}
	return e
}

func wrong(pairs ...string) error { return fault.Fields(booktest.Faults(pairs...)...) }

// The cut of CONTRACT.md 6.3: 100 g at 7,000 rupees a gram, as it is sent and as it is stored.
var (
	sent   = entry{Kind: "rate_cut", FineWeight: g("100"), Rate: rupees("7000")}
	stored = entry{Kind: "rate_cut", FineWeight: g("100"), Rate: rupees("7000"), RateUnit: "per_gram", Amount: rupees("700000"),
		Computed: []string{"amount"}}
	against = entry{Kind: "rate_cut", Amount: rupees("700000"), Counter: true}
	paid    = entry{Kind: "cash", Amount: rupees("5")}
)

func TestTheKindIsInferredWhereItIsPlain(t *testing.T) {
	t.Parallel()
	none := eventtest.Given(t, bullion.Ledger.Rows)
	for sentence, c := range map[string]struct {
		given, stored entry
		effect        book.Effect
	}{
		"an amount alone is cash": {entry{Amount: rupees("5")}, paid, book.Effect{Cash: 5_00}},
		"metal alone is metal": {
			entry{Weight: g("10"), Touch: percent("99.5")},
			entry{Kind: "metal", Weight: g("10"), Touch: percent("99.5"), FineWeight: g("9.95"), Computed: []string{"fine_weight"}},
			book.Effect{Fine: 9_950},
		},
		"metal may say a rate, which counts nothing": {
			entry{Kind: "metal", FineWeight: g("10"), Rate: rupees("72000"), RateUnit: "per_10g"},
			entry{Kind: "metal", FineWeight: g("10"), Rate: rupees("72000"), RateUnit: "per_10g"},
			book.Effect{Fine: 10_000},
		},
	} {
		none.Case(sentence).When(add([]entry{c.given}, nil)).Then(added([]entry{c.stored}, nil))
		require.Equal(t, c.effect, c.stored.Effect(), sentence)
	}
	kind := wrong("in_entries[0].kind", "is required with metal and a rate or an amount: one of metal, cash, rate_cut")
	none.Case("a purchase is no cut").When(add([]entry{{FineWeight: g("10"), Amount: rupees("70000")}}, nil)).ThenFails(kind)
	none.Case("nor is metal with a rate").When(add([]entry{{FineWeight: g("10"), Rate: rupees("7000")}}, nil)).ThenFails(kind)
}

func TestACutGetsItsCounterEntry(t *testing.T) {
	t.Parallel()
	none := eventtest.Given(t, bullion.Ledger.Rows)
	none.Case("metal that was given is priced").When(add(nil, []entry{sent})).Then(added([]entry{against}, []entry{stored}))
	require.Equal(t, book.Effect{Fine: 100_000}, stored.Effect())
	require.Equal(t, book.Effect{Cash: 700000_00}, against.Effect())
	none.Case("metal that was received, beside other entries").When(add([]entry{sent}, []entry{paid})).Then(added([]entry{stored},
		[]entry{paid, against}))

	bySum := entry{Kind: "rate_cut", FineWeight: g("33"), RateUnit: "per_10g", Amount: rupees("100000")}
	byRate := bySum
	byRate.Rate, byRate.Computed = rupees("30303.03"), []string{"rate"}
	none.Case("the rate follows from the amount").When(add(nil,
		[]entry{bySum})).Then(added([]entry{{Kind: "rate_cut", Amount: rupees("100000"), Counter: true}}, []entry{byRate}))
	little := entry{Kind: "rate_cut", FineWeight: g("100"), RateUnit: "per_gram", Amount: rupees("0.01")}
	none.Case("a rate that comes to 0 is none").When(add(nil,
		[]entry{little})).Then(added([]entry{{Kind: "rate_cut", Amount: rupees("0.01"), Counter: true}}, []entry{little}))
	money := entry{Kind: "rate_cut", Amount: rupees("1000"), Rate: rupees("90000"), RateUnit: "per_kg"}
	none.Case("the metal of a cut of money is in the counter entry alone").When(add([]entry{money}, nil)).
		Then(added([]entry{money}, []entry{{Kind: "rate_cut", FineWeight: g("11.111"), Counter: true}}))

	own := entry{Kind: "rate_cut", Amount: rupees("700000")}
	none.Case("both entries are sent").When(add([]entry{own}, []entry{sent})).Then(added([]entry{own}, []entry{stored}))
	low := entry{Kind: "rate_cut", Amount: rupees("600000")}
	warned := added([]entry{low}, []entry{stored})
	warned.Warnings = `[{"field":"in_entries[0].amount","message":"differs from what the other values say","given":600000,"computed":700000}]`
	none.Case("a difference is a warning").When(add([]entry{low}, []entry{sent})).Then(warned)
	bare := entry{Kind: "rate_cut", FineWeight: g("100")}
	none.Case("between them no rate is needed").When(add([]entry{low}, []entry{bare})).Then(added([]entry{low}, []entry{bare}))
	rated := entry{Kind: "rate_cut", Amount: rupees("600000"), Rate: rupees("7000"), RateUnit: "per_gram"}
	warned = added([]entry{bare}, []entry{rated})
	warned.Warnings = `[{"field":"out_entries[0].amount","message":"differs from what the other values say","given":600000,"computed":700000}]`
	none.Case("the rate may be beside the money").When(add([]entry{bare}, []entry{rated})).Then(warned)
	agreed := entry{Kind: "rate_cut", FineWeight: g("100"), Rate: rupees("7000"), RateUnit: "per_gram", Amount: rupees("600000")}
	warned = added([]entry{low}, []entry{agreed})
	warned.Warnings = `[{"field":"out_entries[0].amount","message":"differs from what the other values say","given":600000,"computed":700000}]`
	none.Case("the money is held against the agreed amount").When(add([]entry{low}, []entry{agreed})).Then(warned)
}

func TestACutIsRefused(t *testing.T) {
	t.Parallel()
	none := eventtest.Given(t, bullion.Ledger.Rows)
	const (
		needed = "is required unless the row has the counter entry"
		one    = "a row has at most one rate cut: one entry of metal and one of money"
		zero   = "the counter entry would be 0"
	)
	money := entry{Kind: "rate_cut", Amount: rupees("700000")}
	for sentence, c := range map[string]struct {
		in, out []entry
		err     error
	}{
		"metal alone":  {nil, []entry{{Kind: "rate_cut", FineWeight: g("1")}}, wrong("out_entries[0].rate", needed)},
		"money alone":  {[]entry{paid, money}, nil, wrong("in_entries[1].rate", needed)},
		"two of metal": {[]entry{sent}, []entry{sent}, wrong("out_entries[0].kind", one)},
		"two of money": {[]entry{money}, []entry{sent, money}, wrong("out_entries[1].kind", one)},
		"both on one side": {nil, []entry{sent, money},
			wrong("out_entries[1].kind", "the two entries of a rate cut must be on different sides")},
		"metal for nothing": {nil, []entry{{Kind: "rate_cut", FineWeight: g("0.001"), Rate: rupees("0.01")}},
			wrong("out_entries[0].amount", zero)},
		"metal of no value": {nil, []entry{{Kind: "rate_cut", Weight: g("10"), Touch: percent("0"), Rate: rupees("7000")}},
			wrong("out_entries[0].amount", zero)},
		"money for nothing": {nil, []entry{{Kind: "rate_cut", Amount: rupees("0.01"), Rate: rupees("7000")}},
			wrong("out_entries[0].amount", zero)},
		"more metal than there is": {nil, []entry{{Kind: "rate_cut", Amount: rupees("9999999999999"), Rate: rupees("0.01")}},
			wrong("out_entries[0].amount", "the computed value is too large")},
		"somebody's counter entry": {[]entry{against}, []entry{sent},
			wrong("in_entries[0].counter", "take `counter` out to set it yourself")},
		"more money than there is": {nil, []entry{{Kind: "rate_cut", FineWeight: g("999999999"), Rate: rupees("20000")}},
			wrong("out_entries[0].amount", "the computed value is too large")},
	} {
		none.Case(sentence).When(add(c.in, c.out)).ThenFails(c.err)
	}
}

func TestTheCounterEntryFollowsTheCut(t *testing.T) {
	t.Parallel()
	history := eventtest.Given(t, bullion.Ledger.Rows, added([]entry{paid, against}, []entry{stored}))
	history.Case("sent back as it is").When(edit([]entry{paid, against}, []entry{stored})).ThenNothing()
	history.Case("it does not go alone").When(edit([]entry{paid}, nil)).ThenNothing()
	dearer, more := stored, against
	dearer.Rate, dearer.Amount, more.Amount = rupees("7100"), rupees("710000"), rupees("710000")
	asked := stored
	asked.Rate = rupees("7100")
	history.Case("the rate is edited, and the amounts follow").When(edit(nil, []entry{asked})).Then(edited([]entry{paid, more},
		[]entry{dearer}))
	history.Case("sent back with the edited cut").When(edit([]entry{against, paid}, []entry{asked})).Then(edited([]entry{more, paid},
		[]entry{dearer}))
	changed := against
	changed.Amount = rupees("1")
	history.Case("sent back changed").When(edit([]entry{paid, changed}, nil)).ThenFails(wrong("in_entries[1].counter",
		"take `counter` out to set it yourself"))
	history.Case("sent back twice").When(edit([]entry{against, against}, nil)).ThenFails(wrong("in_entries[1].counter",
		"take `counter` out to set it yourself"))
	own := entry{Kind: "rate_cut", Amount: rupees("700000")}
	history.Case("set by hand").When(edit([]entry{paid, own}, nil)).Then(edited([]entry{paid, own}, nil))
	history.Case("the cut goes, and it goes").When(edit(nil, []entry{})).Then(edited([]entry{paid}, []entry{}))
	history.Case("the cut changes sides").When(edit([]entry{paid, against, sent}, []entry{})).Then(edited([]entry{paid, stored},
		[]entry{against}))
}

func TestEntriesAreChecked(t *testing.T) {
	t.Parallel()
	const negative, empty = "must not be negative", "a weight or an amount above 0 is needed"
	none := func(kind string) string { return "an entry of kind " + kind + " has none" }
	booktest.Checks(t, []book.Entry{paid, stored, against, entry{Kind: "metal", FineWeight: g("1")}}, []booktest.Wrong{
		{Entry: entry{}, Faults: []string{"", empty}},
		{Entry: entry{Kind: "rate_cut", Rate: rupees("7000"), RateUnit: "per_gram", FineWeight: g("0")}, Faults: []string{"", empty}},
		{Entry: entry{Kind: "metal", FineWeight: g("1"), Amount: rupees("0")}, Faults: []string{"amount", none("metal")}},
		{
			Entry: entry{Kind: "cash", Weight: g("1"), Touch: percent("92"), FineWeight: g("1"), Rate: rupees("1"), RateUnit: "per_gram",
				Amount: rupees("1")},
			Faults: []string{"weight", none("cash"), "touch", none("cash"), "fine_weight", none("cash"), "rate", none("cash")},
		},
		{Entry: entry{Kind: "gift", Amount: rupees("1"), Rate: rupees("0"), RateUnit: "per_tola"}, Faults: []string{
			"rate", "must be more than 0", "rate_unit", "expected one of per_gram, per_10g, per_kg", "kind", "expected one of metal, cash, rate_cut",
		}},
		{Entry: entry{Kind: "metal", Weight: g("-1"), Touch: percent("101"), FineWeight: g("-1"), ItemName: "\x00", Description: "\x00"},
			Faults: []string{
				"item_name", "control characters are not allowed", "weight", negative, "touch", "must be from 0 to 100", "fine_weight", negative,
				"description", "control characters are not allowed",
			}},
		{Entry: entry{Kind: "cash", Amount: rupees("-1"), RateUnit: "per_kg"},
			Faults: []string{"amount", negative, "rate_unit", "requires rate"}},
		{Entry: entry{Kind: "metal", Weight: g("5")}, Faults: []string{"weight", "requires touch or fine_weight"}},
	})
}

func TestAReversalExchangesTheSides(t *testing.T) {
	t.Parallel()
	given := stored
	given.Computed = nil
	newIn, newOut, err := bullion.Ledger.Mirror(book.SideOf([]entry{paid, against}), book.SideOf([]entry{stored}))
	require.NoError(t, err)
	require.Equal(t, []book.Side{book.SideOf([]entry{given}), book.SideOf([]entry{paid, against})}, []book.Side{newIn, newOut})
	require.Equal(t, unit.Money(700005_00), newOut.Effect.Cash)
}

func TestLaws(t *testing.T) {
	t.Parallel()
	booktest.Laws[entry, entry](t, bullion.Ledger)
}
