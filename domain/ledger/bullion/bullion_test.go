package bullion_test

import (
	"testing"

	"bahi/domain/event"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/bullion"
	"bahi/internal/test/booktest"
	"bahi/internal/test/eventtest"
)

type entry = bullion.Entry

var g, rupees = booktest.Grams, booktest.Rupees

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

// The cut of CONTRACT.md 6.3: 100 g at 7,000 rupees a gram, as sent and as stored.
var (
	sent   = entry{Kind: "rate_cut", FineWeight: g("100"), Rate: rupees("7000")}
	stored = entry{Kind: "rate_cut", FineWeight: g("100"), Rate: rupees("7000"), RateUnit: "per_gram", Amount: rupees("700000"),
		Computed: []string{"amount"}}
	against = entry{Kind: "rate_cut", Amount: rupees("700000"), Counter: true}
	paid    = entry{Kind: "cash", Amount: rupees("5")}
)

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
	history.Case("sent back changed").When(edit([]entry{paid, changed}, nil)).ThenFails(eventtest.Faults("in_entries[1].counter",
		"take `counter` out to set it yourself"))
	history.Case("sent back twice").When(edit([]entry{against, against}, nil)).ThenFails(eventtest.Faults("in_entries[1].counter",
		"take `counter` out to set it yourself"))
	own := entry{Kind: "rate_cut", Amount: rupees("700000")}
	history.Case("set by hand").When(edit([]entry{paid, own}, nil)).Then(edited([]entry{paid, own}, nil))
	history.Case("the cut goes, and it goes").When(edit(nil, []entry{})).Then(edited([]entry{paid}, []entry{}))
	history.Case("its side is emptied, and it goes").When(book.EmptySide{Ledger: bullion.Ledger, Out: true}).
		Then(edited([]entry{paid}, []entry{}))
	eventtest.Given(t, bullion.Ledger.Rows, added([]entry{against}, []entry{stored})).
		Case("the row goes with it").When(book.EmptySide{Ledger: bullion.Ledger, Out: true}).Then(book.RowDeleted{})
	history.Case("the cut changes sides").When(edit([]entry{paid, against, sent}, []entry{})).Then(edited([]entry{paid, stored},
		[]entry{against}))
}
