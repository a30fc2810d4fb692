package book_test

import (
	"slices"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bahi/domain/fault"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/domain/unit"
	"bahi/internal/test/eventtest"
)

// smith is a ledger that counts metal: its accounts have types, its entries values that follow from others, and a cut on the
// OUT side wants a counter entry on the IN side. It writes under the names of a ledger that is stored.
var smith = book.New(book.Spec[piece, piece]{
	Name: "polisher", Title: "Smith", Types: 3, Metal: true, NoAccount: "Smith not found", Mirror: book.Exchange[piece],
	AddCounterEntries: counters,
})

// piece is an entry of smith's.
type piece struct {
	Weight   *unit.Grams   `json:"weight,omitempty"`
	Touch    *unit.Percent `json:"touch,omitempty"`
	Fine     *unit.Grams   `json:"fine_weight,omitempty"`
	Rate     *unit.Money   `json:"rate,omitempty"` // of a gram of a cut
	Amount   *unit.Money   `json:"amount,omitempty"`
	Counter  bool          `json:"counter,omitempty"`
	Computed []string      `json:"computed,omitempty"`
}

func (p piece) Effect() (e book.Effect) {
	if p.Fine != nil {
		e.Fine = *p.Fine
	}
	if p.Amount != nil {
		e.Cash = *p.Amount
	}
	return e
}

func (p piece) Check() []fault.Field {
	var c book.Checker
	c.Weight("weight", p.Weight)
	c.Percent("touch", p.Touch)
	c.Weight("fine_weight", p.Fine)
	c.Amount("rate", p.Rate)
	c.Amount("amount", p.Amount)
	return c.Faults()
}

func (p piece) Complete(c *book.Computer) piece {
	if p.Weight != nil && p.Touch != nil {
		p.Fine = c.Grams("fine_weight", p.Fine, p.Weight.Decimal().Mul(p.Touch.Decimal()).Shift(-2))
	}
	p.Computed = c.Computed()
	return p
}

// counters writes the IN entry of the OUT entry that has a rate, unless one without counter is sent against it.
func counters(c *book.Computer, asked, before book.Sides[piece, piece]) book.Sides[piece, piece] {
	own := -1
	for i, p := range asked.In {
		switch {
		case !p.Counter:
			own = i
		case !slices.ContainsFunc(before.In, func(was piece) bool { return was.Counter && *was.Amount == *p.Amount }):
			c.Wrong("in_entries.counter", "take `counter` out to set it yourself")
		}
	}
	for _, cut := range asked.Out {
		if cut.Rate == nil {
			continue
		}
		formula := cut.Fine.Decimal().Mul(cut.Rate.Decimal())
		if own >= 0 {
			c.Money("in_entries[0].amount", asked.In[own].Amount, formula)
			break
		}
		asked.In = slices.DeleteFunc(asked.In, func(p piece) bool { return p.Counter })
		return book.Sides[piece, piece]{In: append(asked.In, piece{Amount: c.Money("in_entries.amount", nil, formula), Counter: true}),
			Out: asked.Out}
	}
	asked.In = slices.DeleteFunc(asked.In, func(p piece) bool { return p.Counter })
	return asked
}

func grams(text string) *unit.Grams {
	g, err := unit.ParseGrams(text)
	if err != nil {
		panic(err)
	}
	return &g
}

func percent(text string) *unit.Percent {
	p, err := unit.ParsePercent(text)
	if err != nil {
		panic(err)
	}
	return &p
}

func rupees(text string) *unit.Money {
	m, err := unit.ParseMoney(text)
	if err != nil {
		panic(err)
	}
	return &m
}

// computed names the fields of an entry that the ledger computed.
func computed(p piece, fields ...string) piece { p.Computed = fields; return p }

func sideOf(pieces ...piece) book.Side { return book.SideOf(pieces) }

// addPieces asks for a new row of smith's.
func addPieces(in, out []piece) addRow {
	return addRow{Ledger: smith, Account: 12, Today: today,
		RowInput: book.RowInput{Date: new(today), In: book.Entries(in), Out: book.Entries(out)}}
}

// editPieces asks for other entries; a nil side stays.
func editPieces(in, out []piece) editRow {
	c := editRow{Ledger: smith, Account: 12, Today: today}
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
	none := eventtest.Given(t, smith.Rows)
	for sentence, c := range map[string]struct{ given, stored piece }{
		"what is absent is computed, and named": {
			piece{Weight: grams("500"), Touch: percent("99.5")},
			computed(piece{Weight: grams("500"), Touch: percent("99.5"), Fine: grams("497.5")}, "fine_weight")},
		"half a milligram is rounded away from zero": {
			piece{Weight: grams("0.001"), Touch: percent("50")},
			computed(piece{Weight: grams("0.001"), Touch: percent("50"), Fine: grams("0.001")}, "fine_weight")},
		"the names of computed fields are not the client's to send": {
			computed(piece{Fine: grams("3")}, "fine_weight", "weight"), piece{Fine: grams("3")}},
		"a given value within the tolerance is kept": {
			piece{Weight: grams("100"), Touch: percent("92"), Fine: grams("92.46")},
			piece{Weight: grams("100"), Touch: percent("92"), Fine: grams("92.46")}},
		"of little metal, ten milligrams are tolerated": {
			piece{Weight: grams("1"), Touch: percent("92"), Fine: grams("0.93")},
			piece{Weight: grams("1"), Touch: percent("92"), Fine: grams("0.93")}},
	} {
		none.Case(sentence).When(addPieces(nil, []piece{c.given})).Then(added{Account: 12, Date: today, Out: sideOf(c.stored)})
	}
	for sentence, c := range map[string]struct {
		fine, given string
	}{"far from the formula": {"92.461", "92.461"}, "0 is a value, not an absent one": {"0", "0"}} {
		p := piece{Weight: grams("100"), Touch: percent("92"), Fine: grams(c.fine)}
		none.Case(sentence).When(addPieces(nil, []piece{{Fine: grams("1")}, p})).
			Then(added{Account: 12, Date: today, Out: sideOf(piece{Fine: grams("1")}, p),
				Warnings: warning("out_entries[1].fine_weight", c.given, "92")})
	}
}

func TestComputedValuesAreComputedAgainWhenTheyAreSentBack(t *testing.T) {
	t.Parallel()
	stored := computed(piece{Weight: grams("100"), Touch: percent("92"), Fine: grams("92")}, "fine_weight")
	history := eventtest.Given(t, smith.Rows, added{Account: 12, Date: today, Out: sideOf(stored)})
	history.Case("as it was").When(editPieces(nil, []piece{stored})).ThenNothing()
	heavier := stored
	heavier.Weight = grams("200")
	history.Case("with another weight").When(editPieces(nil, []piece{heavier})).
		Then(edited{Out: new(sideOf(computed(piece{Weight: grams("200"), Touch: percent("92"), Fine: grams("184")}, "fine_weight")))})
	agreed := piece{Weight: grams("100"), Touch: percent("92"), Fine: grams("91")}
	history.Case("with a value of their own").When(editPieces(nil, []piece{agreed})).
		Then(edited{Out: new(sideOf(agreed)), Warnings: new(warning("out_entries[0].fine_weight", "91", "92"))})
	moved := stored
	moved.Computed = nil
	history.Case("on the other side it counts as given").When(editPieces([]piece{moved}, nil)).Then(edited{In: new(sideOf(moved))})
}

func TestWarningsOfASideGoWithIt(t *testing.T) {
	t.Parallel()
	odd := piece{Weight: grams("100"), Touch: percent("92"), Fine: grams("91")}
	warned := warning("in_entries[0].fine_weight", "91", "92")
	history := eventtest.Given(t, smith.Rows,
		added{Account: 12, Date: today, In: sideOf(odd), Out: sideOf(piece{Fine: grams("1")}), Warnings: warned})
	history.Case("they stay with the other side's entries").When(editPieces(nil,
		[]piece{{Fine: grams("2")}})).Then(edited{Out: new(sideOf(piece{Fine: grams("2")}))})
	history.Case("and with another date").When(editRow{Ledger: smith, Account: 12, Today: today,
		RowInput: book.RowInput{Date: new(today - 1)}}).Then(edited{Date: new(today - 1)})
	history.Case("they go with its entries").When(editPieces([]piece{{Fine: grams("91")}}, nil)).
		Then(edited{In: new(sideOf(piece{Fine: grams("91")})), Warnings: new(book.Warnings(""))})
	history.Case("and when the side is emptied").When(emptySide{Ledger: smith}).Then(edited{In: new(sideOf()),
		Warnings: new(book.Warnings(""))})
	history.Case("they stay when the other is").When(emptySide{Ledger: smith, Out: true}).Then(edited{Out: new(sideOf())})
}

func TestWeightsPercentsAndAmountsAreChecked(t *testing.T) {
	t.Parallel()
	none := eventtest.Given(t, smith.Rows)
	bad := []piece{{Touch: percent("100.001"), Rate: new(unit.Money(-1))}, {Weight: new(unit.Grams(-1)), Amount: new(unit.Money(-1))}}
	none.Case("each fault is named").When(addPieces([]piece{{Touch: new(unit.Percent(-1))}}, bad)).ThenFails(invalid(
		"in_entries[0].touch", "must be from 0 to 100",
		"out_entries[0].touch", "must be from 0 to 100", "out_entries[0].rate", "must not be negative",
		"out_entries[1].weight", "must not be negative", "out_entries[1].amount", "must not be negative"))
	most := piece{Weight: grams("999999999.999"), Touch: percent("100")}
	none.Case("as much as there is").When(addPieces(nil, []piece{most})).
		Then(added{Account: 12, Date: today,
			Out: sideOf(computed(piece{Weight: most.Weight, Touch: most.Touch, Fine: most.Weight}, "fine_weight"))})
	const tooMany = "the computed value is too large"
	none.Case("a computed value is not longer than a given one").
		When(addPieces(nil, []piece{{Fine: grams("999999999"), Rate: rupees("99999999999.99")}})).ThenFails(invalid("in_entries.amount", tooMany))
}

func TestAccountsOfSomeLedgersHaveTypes(t *testing.T) {
	t.Parallel()
	none := eventtest.Given(t, smith.Accounts)
	wrong := invalid("type", "expected a number from 0 to 2")
	for _, known := range []int{0, 2} {
		none.Case("a known type").When(openAccount{Ledger: smith, Name: "Imran", Type: &known}).Then(opened{Name: "Imran", Type: &known})
	}
	for _, unknown := range []*int{nil, new(-1), new(3)} {
		none.Case("no such type").When(openAccount{Ledger: smith, Name: "Imran", Type: unknown}).ThenFails(wrong)
	}
	none.Case("all faults at once").When(openAccount{Ledger: smith}).ThenFails(invalid("name", "must not be empty", "type",
		"expected a number from 0 to 2"))
	imran := eventtest.Given(t, smith.Accounts, opened{Name: "Imran", Type: new(1)})
	imran.Case("another type").When(changeAccount{Ledger: smith, Type: new(2)}).Then(book.AccountTypeChanged{From: 1, To: 2})
	imran.Case("another name, too").When(changeAccount{Ledger: smith, Name: new("Ali"), Type: new(0)}).
		Then(renamed{From: "Imran", To: "Ali"}, book.AccountTypeChanged{From: 1, To: 0})
	imran.Case("the same").When(changeAccount{Ledger: smith, Type: new(1)}).ThenNothing()
	imran.Case("a name alone").When(changeAccount{Ledger: smith, Name: new("Ali")}).Then(renamed{From: "Imran", To: "Ali"})
	imran.Case("no such type").When(changeAccount{Ledger: smith, Type: new(3)}).ThenFails(wrong)
	imran.Case("nothing").When(changeAccount{Ledger: smith}).ThenFails(invalid("name", "is required"))
	require.Equal(t, 2, *imran.And(book.AccountTypeChanged{From: 1, To: 2}).State().Type)
	noTypes := invalid("type", "accounts of this ledger have none")
	eventtest.Given(t, bank.Ledger.Accounts).Case("a bank account").When(openAccount{Ledger: bank.Ledger, Name: "HDFC",
		Type: new(0)}).ThenFails(noTypes)
	eventtest.Given(t, bank.Ledger.Accounts, opened{Name: "HDFC"}).
		Case("a bank account").When(changeAccount{Ledger: bank.Ledger, Type: new(0)}).ThenFails(noTypes)
}

func TestAnEntryThatWantsOneOnTheOtherSideGetsIt(t *testing.T) {
	t.Parallel()
	cut := func(rate string) piece { return piece{Fine: grams("100"), Rate: rupees(rate)} }
	counter := func(amount string) piece { return piece{Amount: rupees(amount), Counter: true} }
	paid := piece{Amount: rupees("5")}
	none := eventtest.Given(t, smith.Rows)
	row := added{Account: 12, Date: today, In: sideOf(counter("700000")), Out: sideOf(cut("7000"))}
	none.Case("only the cut is sent").When(addPieces(nil, []piece{cut("7000")})).Then(row)
	none.Case("an entry against it is sent").When(addPieces([]piece{{Amount: rupees("700000")}}, []piece{cut("7000")})).
		Then(added{Account: 12, Date: today, In: sideOf(piece{Amount: rupees("700000")}), Out: sideOf(cut("7000"))})
	none.Case("one that differs is kept, with a warning").When(addPieces([]piece{{Amount: rupees("600000")}}, []piece{cut("7000")})).
		Then(added{Account: 12, Date: today, In: sideOf(piece{Amount: rupees("600000")}), Out: sideOf(cut("7000")),
			Warnings: warning("in_entries[0].amount", "600000", "700000")})
	yours := invalid("in_entries.counter", "take `counter` out to set it yourself")
	none.Case("nobody else writes a counter entry").When(addPieces([]piece{counter("700000")}, []piece{cut("7000")})).ThenFails(yours)

	history := eventtest.Given(t, smith.Rows, row)
	history.Case("sent back as it is").When(editPieces([]piece{counter("700000")}, []piece{cut("7000")})).ThenNothing()
	history.Case("one side sent back").When(editPieces([]piece{counter("700000")}, nil)).ThenNothing()
	history.Case("the cut is edited").When(editPieces(nil, []piece{cut("7100")})).Then(edited{In: new(sideOf(counter("710000"))),
		Out: new(sideOf(cut("7100")))})
	history.Case("sent back with the edited cut").When(editPieces([]piece{counter("700000")}, []piece{cut("7100")})).
		Then(edited{In: new(sideOf(counter("710000"))), Out: new(sideOf(cut("7100")))})
	history.Case("sent back changed").When(editPieces([]piece{counter("1")}, nil)).ThenFails(yours)
	history.Case("it does not go alone").When(editPieces([]piece{}, nil)).ThenNothing()
	history.Case("the cut goes, and it goes").When(editPieces(nil, []piece{{Fine: grams("1")}})).Then(edited{In: new(sideOf()),
		Out: new(sideOf(piece{Fine: grams("1")}))})
	history.Case("the side of the cut goes, and the row with it").When(emptySide{Ledger: smith, Out: true}).Then(rowDeleted{})
	history.Case("another date is no write of entries").When(editRow{Ledger: smith, Account: 12, Today: today,
		RowInput: book.RowInput{Date: new(today - 1)}}).Then(edited{Date: new(today - 1)})
	eventtest.Given(t, smith.Rows, added{Account: 12, Date: today, In: sideOf(paid), Out: sideOf(cut("7000"))}).
		Case("what is not its own stays").When(emptySide{Ledger: smith, Out: true}).Then(edited{Out: new(sideOf())})
}

// anyPiece is an entry as somebody may send it.
func anyPiece(t *rapid.T) (p piece) {
	some := func(name string) bool { return rapid.Bool().Draw(t, name) }
	if some("has weight") {
		p.Weight = new(unit.Grams(rapid.Int64Range(0, 1_000_000_000).Draw(t, "weight")))
	}
	if some("has touch") {
		p.Touch = new(unit.Percent(rapid.Int64Range(0, int64(unit.Whole)).Draw(t, "touch")))
	}
	if some("has fine") {
		p.Fine = new(unit.Grams(rapid.Int64Range(0, 1_000_000_000).Draw(t, "fine")))
	}
	if some("has amount") {
		p.Amount = new(unit.Money(rapid.Int64Range(0, 1_000_000_000).Draw(t, "amount")))
	}
	return p
}

// ambiguous reports whether a given value of a side is one that was computed in another entry, and so is computed when it is sent
// back (CONTRACT.md L6).
func ambiguous(side []piece) bool {
	was := map[unit.Grams]bool{}
	for _, p := range side {
		if len(p.Computed) > 0 {
			was[*p.Fine] = true
		}
	}
	return slices.ContainsFunc(side, func(p piece) bool { return len(p.Computed) == 0 && p.Fine != nil && was[*p.Fine] })
}

func TestEveryRowIsSentBackAndReversed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOfN(rapid.Custom(anyPiece), 0, 4)
		in, out := pieces.Draw(t, "in"), pieces.Draw(t, "out")
		if rapid.Bool().Draw(t, "cut") {
			out = append(out, piece{Fine: new(unit.Grams(rapid.Int64Range(1, 1_000_000).Draw(t, "cut fine"))),
				Rate: new(unit.Money(rapid.Int64Range(1, 1_000_000).Draw(t, "rate")))})
		}
		if len(in)+len(out) == 0 {
			return
		}
		events, err := addPieces(in, out).Decide(book.Row{})
		require.NoError(t, err)
		row := events[0].Evolve(book.Row{})

		ins, err := book.EntriesOf[piece](row.In)
		require.NoError(t, err)
		outs, err := book.EntriesOf[piece](row.Out)
		require.NoError(t, err)
		if ambiguous(ins) || ambiguous(outs) {
			return
		}
		for _, sides := range [][2][]piece{{ins, outs}, {ins, nil}, {nil, outs}} {
			again, err := editPieces(sides[0], sides[1]).Decide(row)
			require.NoError(t, err)
			require.Empty(t, again, "what was read is written back, and nothing changes")
		}

		newIn, newOut, err := smith.Mirror(row.In, row.Out)
		require.NoError(t, err)
		require.Equal(t, row.In.Effect.Minus(row.Out.Effect), newOut.Effect.Minus(newIn.Effect), "a reversal takes back what the row counts")
		measured, err := smith.Measured(book.Row{In: book.StoredSide(string(row.In.JSON()), book.Effect{}),
			Out: book.StoredSide(string(row.Out.JSON()), book.Effect{})})
		require.NoError(t, err)
		require.Equal(t, row.In, measured.In)
		require.Equal(t, row.Out, measured.Out)
		for _, p := range slices.Concat(ins, outs) {
			if p.Weight != nil && p.Touch != nil && slices.Contains(p.Computed, "fine_weight") {
				formula := p.Weight.Decimal().Mul(p.Touch.Decimal()).Shift(-2)
				require.True(t, p.Fine.Decimal().Sub(formula).Abs().LessThanOrEqual(decimal.New(5, -4)))
			}
		}
	})
}
