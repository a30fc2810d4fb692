package book_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/bullion"
	"bahi/domain/ledger/polisher"
	"bahi/domain/unit"
	"bahi/internal/test/booktest"
	"bahi/internal/test/eventtest"
)

// The rules of metal are tested through bullion's entries, and those of types through the polishers' accounts.
type piece = bullion.Entry

// metal is an entry of metal: "" is absent. The ledger has computed the named fields.
func metal(weight, touch, fine string, computed ...string) piece {
	p := piece{Kind: "metal", Computed: computed}
	if weight != "" {
		p.Weight, p.Touch = booktest.Grams(weight), booktest.Percent(touch)
	}
	if fine != "" {
		p.FineWeight = booktest.Grams(fine)
	}
	return p
}

func out(pieces ...piece) book.Side { return book.SideOf(pieces) }

// editPieces returns an edit of the entries; a nil side stays.
func editPieces(in, out []piece) event.Command[book.Row] {
	c := editRow{Ledger: bullion.Ledger, Account: 12, Today: today}
	if in != nil {
		c.In = book.Entries(in)
	}
	if out != nil {
		c.Out = book.Entries(out)
	}
	return c
}

// warning is a row's only one.
func warning(field, given, computed string) book.Warnings {
	return book.Warnings(`[{"field":"` + field + `","message":"differs from what the other values say","given":` + given + `,"computed":` +
		computed + `}]`)
}

func TestAbsentValuesAreComputed(t *testing.T) {
	t.Parallel()
	none := eventtest.Given(t, bullion.Ledger.Rows)
	for sentence, c := range map[string]struct {
		given, stored piece
		warnings      book.Warnings
	}{
		"what is absent is computed, and named":                     {metal("500", "99.5", ""), metal("500", "99.5", "497.5", "fine_weight"), ""},
		"half a milligram is rounded away from zero":                {metal("0.001", "50", ""), metal("0.001", "50", "0.001", "fine_weight"), ""},
		"the names of computed fields are not the client's to send": {metal("", "", "3", "fine_weight", "weight"), metal("", "", "3"), ""},
		"a given value within the tolerance is kept":                {metal("100", "92", "92.46"), metal("100", "92", "92.46"), ""},
		"of little metal, ten milligrams are tolerated":             {metal("1", "92", "0.93"), metal("1", "92", "0.93"), ""},
		"far from the formula": {metal("100", "92", "92.461"), metal("100", "92", "92.461"),
			warning("out_entries[1].fine_weight", "92.461", "92")},
		"0 is a value, not an absent one": {metal("100", "92", "0"), metal("100", "92", "0"), warning("out_entries[1].fine_weight", "0", "92")},
	} {
		one := metal("", "", "1")
		none.Case(sentence).When(addRow{Ledger: bullion.Ledger, Account: 12, Today: today,
			RowInput: book.RowInput{Date: new(today), Out: book.Entries([]piece{one, c.given})}}).
			Then(added{Account: 12, Date: today, Out: out(one, c.stored), Warnings: c.warnings})
	}
}

func TestComputedValuesAreComputedAgainWhenTheyAreSentBack(t *testing.T) {
	t.Parallel()
	stored := metal("100", "92", "92", "fine_weight")
	history := eventtest.Given(t, bullion.Ledger.Rows, added{Account: 12, Date: today, Out: out(stored)})
	history.Case("as it was").When(editPieces(nil, []piece{stored})).ThenNothing()
	history.Case("with another weight").When(editPieces(nil, []piece{metal("200", "92", "92", "fine_weight")})).
		Then(edited{Out: new(out(metal("200", "92", "184", "fine_weight")))})
	agreed := metal("100", "92", "91")
	history.Case("with a value of their own").When(editPieces(nil, []piece{agreed})).
		Then(edited{Out: new(out(agreed)), Warnings: new(warning("out_entries[0].fine_weight", "91", "92"))})
	moved := metal("100", "92", "92")
	history.Case("on the other side it counts as given").When(editPieces([]piece{moved}, nil)).Then(edited{In: new(out(moved))})
}

func TestTheEntriesOfARowHaveOneMetal(t *testing.T) {
	t.Parallel()
	of := func(name book.Metal) piece {
		p := metal("", "", "1")
		p.Metal = name
		return p
	}
	none := eventtest.Given(t, bullion.Ledger.Rows)
	for sentence, c := range map[string]struct {
		in, out []piece
		wrong   string
	}{
		"one metal":                      {[]piece{of("gold")}, []piece{of("gold"), of("gold")}, ""},
		"gold and silver on a side":      {nil, []piece{of("gold"), of("silver")}, "out_entries[1].metal"},
		"gold in and silver out":         {[]piece{of("gold")}, []piece{of("silver")}, "out_entries[0].metal"},
		"gold, and that of the account":  {[]piece{of("")}, []piece{of("gold")}, "in_entries[0].metal"},
		"cash has no metal":              {[]piece{{Kind: "cash", Amount: new(unit.Money(500))}}, []piece{of("gold")}, ""},
		"the account's metal everywhere": {[]piece{of("")}, []piece{of("")}, ""},
	} {
		row := book.RowInput{Date: new(today), In: book.Entries(c.in), Out: book.Entries(c.out)}
		asked := none.Case(sentence).When(addRow{Ledger: bullion.Ledger, Account: 12, Today: today, RowInput: row})
		if c.wrong == "" {
			asked.Then(added{Account: 12, Date: today, In: out(c.in...), Out: out(c.out...)})
		} else {
			asked.ThenFails(eventtest.Faults(c.wrong, "all entries of a row must have one metal: expected gold"))
		}
	}
}

func TestWarningsOfASideGoWithIt(t *testing.T) {
	t.Parallel()
	one, two := metal("", "", "1"), metal("", "", "2")
	history := eventtest.Given(t, bullion.Ledger.Rows,
		added{Account: 12, Date: today, In: out(metal("100", "92", "91")), Out: out(one),
			Warnings: warning("in_entries[0].fine_weight", "91", "92")})
	history.Case("they stay with the other side's entries").When(editPieces(nil, []piece{two})).Then(edited{Out: new(out(two))})
	history.Case("and with another date").When(editRow{Ledger: bullion.Ledger, Account: 12, Today: today,
		RowInput: book.RowInput{Date: new(today - 1)}}).Then(edited{Date: new(today - 1)})
	history.Case("they go with its entries").When(editPieces([]piece{two}, nil)).
		Then(edited{In: new(out(two)), Warnings: new(book.Warnings(""))})
	history.Case("and when the side is emptied").When(emptySide{Ledger: bullion.Ledger}).
		Then(edited{In: new(out()), Warnings: new(book.Warnings(""))})
	history.Case("they stay when the other is").When(emptySide{Ledger: bullion.Ledger, Out: true}).Then(edited{Out: new(out())})
}

func TestAccountsOfSomeLedgersHaveTypes(t *testing.T) {
	t.Parallel()
	none := eventtest.Given(t, polisher.Ledger.Accounts)
	wrong := eventtest.Faults("type", "expected a number from 0 to 2")
	for _, known := range []int{0, 2} {
		none.Case("a known type").When(openAccount{Ledger: polisher.Ledger, Name: "Imran", Type: &known}).
			Then(opened{Name: "Imran", Type: &known})
	}
	for _, unknown := range []*int{nil, new(-1), new(3)} {
		none.Case("no such type").When(openAccount{Ledger: polisher.Ledger, Name: "Imran", Type: unknown}).ThenFails(wrong)
	}
	none.Case("all faults at once").When(openAccount{Ledger: polisher.Ledger}).ThenFails(eventtest.Faults("name", "must not be empty", "type",
		"expected a number from 0 to 2"))
	imran := eventtest.Given(t, polisher.Ledger.Accounts, opened{Name: "Imran", Type: new(1)})
	imran.Case("another type").When(changeAccount{Ledger: polisher.Ledger, Type: new(2)}).Then(book.AccountTypeChanged{From: 1, To: 2})
	imran.Case("another name, too").When(changeAccount{Ledger: polisher.Ledger, Name: new("Ali"), Type: new(0)}).
		Then(renamed{From: "Imran", To: "Ali"}, book.AccountTypeChanged{From: 1, To: 0})
	imran.Case("the same").When(changeAccount{Ledger: polisher.Ledger, Type: new(1)}).ThenNothing()
	imran.Case("a name alone").When(changeAccount{Ledger: polisher.Ledger, Name: new("Ali")}).Then(renamed{From: "Imran", To: "Ali"})
	imran.Case("no such type").When(changeAccount{Ledger: polisher.Ledger, Type: new(3)}).ThenFails(wrong)
	imran.Case("nothing").When(changeAccount{Ledger: polisher.Ledger}).ThenFails(eventtest.Faults("name", "is required"))
	require.Equal(t, 2, *imran.And(book.AccountTypeChanged{From: 1, To: 2}).State().Type)
	noTypes := eventtest.Faults("type", "accounts of this ledger have none")
	eventtest.Given(t, bank.Ledger.Accounts).Case("a bank account").When(openAccount{Ledger: bank.Ledger, Name: "HDFC",
		Type: new(0)}).ThenFails(noTypes)
	eventtest.Given(t, bank.Ledger.Accounts, opened{Name: "HDFC"}).
		Case("a bank account").When(changeAccount{Ledger: bank.Ledger, Type: new(0)}).ThenFails(noTypes)
}
