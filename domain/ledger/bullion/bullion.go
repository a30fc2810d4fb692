// Package bullion is the ledger of the bullion dealers. Both sides have metal and money, and a rate cut converts metal owed to money.
package bullion

import (
	"fmt"
	"slices"

	"github.com/shopspring/decimal"

	"bahi/domain/fault"
	"bahi/domain/ledger/book"
	"bahi/domain/unit"
)

// Ledger is the ledger of bullion dealers.
var Ledger = book.New(book.Spec[Entry, Entry]{
	Name: "bullion", Title: "Bullion", Events: "BullionAccount", Metal: true, NoAccount: "Bullion account not found",
	Mirror: mirror, AddCounterEntries: pair, In: moved, Out: moved,
})

// The kinds of an entry. Each entry has an effect in one unit (CONTRACT.md L1).
const (
	metal   = "metal"
	cash    = "cash"
	rateCut = "rate_cut" // priced metal, or its price in money
)

// perGram is the default unit of a rate.
const perGram = "per_gram"

// rateUnits are the grams of metal to which a rate applies.
var rateUnits = map[string]int64{perGram: 1, "per_10g": 10, "per_kg": 1000}

// Entry is metal, money, or one of the two sides of a rate cut.
type Entry struct {
	Kind        string        `json:"kind,omitempty" enum:"metal,cash,rate_cut" doc:"Kind of the entry; absent: cash for an amount alone, metal for metal alone"`
	ItemName    book.Text     `json:"item_name,omitempty" maxLength:"200" doc:"Name of the item"`
	Weight      *unit.Grams   `json:"weight,omitempty" doc:"Weight in grams"`
	Touch       *unit.Percent `json:"touch,omitempty" doc:"Purity in percent"`
	FineWeight  *unit.Grams   `json:"fine_weight,omitempty" doc:"In grams: weight x touch / 100, unless it is given"`
	Metal       book.Metal    `json:"metal,omitempty" maxLength:"40" doc:"Metal of the entry; absent: that of the account"`
	Rate        *unit.Money   `json:"rate,omitempty" doc:"Price of fine metal in rupees for each rate_unit. In a rate cut of metal: computed from the amount, unless given"`
	RateUnit    string        `json:"rate_unit,omitempty" enum:"per_gram,per_10g,per_kg" doc:"Unit of the rate; absent: per_gram"`
	Amount      *unit.Money   `json:"amount,omitempty" doc:"Amount in rupees. In a rate cut of metal: fine_weight x rate, unless given"`
	Description book.Text     `json:"description,omitempty" maxLength:"500" doc:"Description of the entry"`
	Counter     bool          `json:"counter,omitempty" readOnly:"true" doc:"true: Bahi added this entry as the counter entry of a rate cut"`
	Computed    []string      `json:"computed,omitempty" readOnly:"true" doc:"The fields that were not given"`
}

func moved(v book.Movement) Entry {
	return Entry{FineWeight: v.FineWeight, Metal: v.Metal, Amount: v.Amount, Description: v.Description}
}

// MetalName returns the metal that the entry names.
func (e Entry) MetalName() book.Metal { return e.Metal }

// cutsMetal reports whether the entry is the metal side of a rate cut. Its rate and amount have no effect on the balance. The other side of
// a rate cut is money.
func (e Entry) cutsMetal() bool {
	return e.Kind == rateCut && book.Value(e.Weight)+book.Value(e.FineWeight) > 0
}

// Effect returns the fine weight of a metal entry, or else the amount.
func (e Entry) Effect() book.Effect {
	if e.cutsMetal() {
		return book.Effect{Fine: book.Value(e.FineWeight)}
	}
	return book.Effect{Cash: book.Value(e.Amount), Fine: book.Value(e.FineWeight)}
}

// Complete sets the kind and computes the fine weight and the price of a rate cut of metal.
func (e Entry) Complete(c *book.Computer) Entry {
	hasMetal := e.Weight != nil || e.Touch != nil || e.FineWeight != nil
	if e.Kind == "" && e.Rate == nil && e.RateUnit == "" && hasMetal != (e.Amount != nil) {
		e.Kind = cash
		if hasMetal {
			e.Kind = metal
		}
	}
	e.FineWeight = c.Part("fine_weight", e.FineWeight, e.Weight, e.Touch)
	if e.cutsMetal() && e.FineWeight != nil {
		e = e.priced(c)
	}
	if e.Rate != nil && e.RateUnit == "" {
		e.RateUnit = perGram
	}
	e.Computed = c.Computed()
	return e
}

// priced computes the amount of a rate cut of metal from its rate, or the rate from its amount.
func (e Entry) priced(c *book.Computer) Entry {
	if c.Sent("rate", e.Rate) != nil {
		e.Amount = c.Money("amount", e.Amount, e.price(*e.FineWeight))
	} else if e.Amount != nil && *e.FineWeight > 0 {
		rate := e.Amount.Decimal().Mul(e.grams()).Div(e.FineWeight.Decimal())
		if e.Rate = nil; rate.Round(unit.MoneyPlaces).IsPositive() {
			e.Rate = c.Money("rate", nil, rate)
		}
	}
	return e
}

// grams returns the weight to which the rate applies.
func (e Entry) grams() decimal.Decimal {
	return decimal.NewFromInt(max(1, rateUnits[e.RateUnit]))
}

// price returns the price of fine metal at the rate.
func (e Entry) price(fine unit.Grams) decimal.Decimal {
	return fine.Decimal().Mul(e.Rate.Decimal()).Div(e.grams())
}

// Check requires a value in exactly the unit of the kind.
func (e Entry) Check() []fault.Field {
	var c book.Checker
	c.Text("item_name", e.ItemName, book.MaxItemName)
	c.Metal("weight", e.Weight, "touch", e.Touch, e.FineWeight)
	c.Metallic(e.Metal, e.Weight != nil || e.FineWeight != nil)
	c.Rate("rate", e.Rate)
	c.Amount("amount", e.Amount)
	c.Text("description", e.Description, book.MaxDescription)
	switch _, known := rateUnits[e.RateUnit]; {
	case e.RateUnit == "":
	case !known:
		c.Wrong("rate_unit", "expected one of per_gram, per_10g, per_kg")
	case e.Rate == nil && e.Kind != rateCut:
		c.Wrong("rate_unit", "requires rate")
	}
	if book.Value(e.Weight)+book.Value(e.FineWeight) == 0 && book.Value(e.Amount) == 0 {
		c.Empty()
		return c.Faults()
	}
	switch e.Kind {
	case "":
		c.Wrong("kind", "is required with metal and a rate or an amount: one of metal, cash, rate_cut")
	case rateCut:
	case metal:
		c.Absent(e.Kind, "amount", e.Amount != nil)
	case cash:
		c.Absent(e.Kind, "weight", e.Weight != nil)
		c.Absent(e.Kind, "touch", e.Touch != nil)
		c.Absent(e.Kind, "fine_weight", e.FineWeight != nil)
		c.Absent(e.Kind, "rate", e.Rate != nil)
	default:
		c.Wrong("kind", "expected one of metal, cash, rate_cut")
	}
	return c.Faults()
}

// mirror exchanges the sides. Computed values become given values. A counter entry stays a counter entry (CONTRACT.md L7).
func mirror(in, out []Entry) (newIn, newOut []Entry) {
	for _, side := range [][]Entry{in, out} {
		for i := range side {
			side[i].Computed = nil
		}
	}
	return out, in
}

// cut is an entry of a rate cut and its index.
type cut struct {
	Entry

	side, at int
}

var sides = [...]string{"in_entries", "out_entries"}

func (e cut) field(name string) string { return fmt.Sprintf("%s[%d].%s", sides[e.side], e.at, name) }

// pair adds the counter entry of a rate cut unless the request has one (CONTRACT.md L2).
func pair(c *book.Computer, asked, before book.Sides[Entry, Entry]) book.Sides[Entry, Entry] {
	lists, stored := [...][]Entry{asked.In, asked.Out}, [...][]Entry{before.In, before.Out}
	var (
		cuts    []cut
		counter = [...]int{-1, -1} // index on each side
	)
	for side, list := range lists {
		for i, e := range list {
			switch one := (cut{e, side, i}); {
			case e.Counter && (counter[side] >= 0 || !slices.ContainsFunc(stored[side], e.same)):
				c.Wrong(one.field("counter"), "take `counter` out to set it yourself")
			case e.Counter:
				counter[side] = i
			case e.Kind == rateCut:
				cuts = append(cuts, one)
			}
		}
	}
	wanted := against(c, cuts)
	for side := range lists {
		switch at := counter[side]; {
		case wanted != nil && side == wanted.side && at >= 0:
			lists[side][at] = wanted.Entry
		case wanted != nil && side == wanted.side:
			lists[side] = append(lists[side], wanted.Entry)
		case at >= 0:
			lists[side] = slices.Delete(lists[side], at, at+1)
		}
	}
	return book.Sides[Entry, Entry]{In: lists[0], Out: lists[1]}
}

// same reports whether two entries are stored alike.
func (e Entry) same(other Entry) bool { return book.SideOf([]Entry{e}) == book.SideOf([]Entry{other}) }

// against returns the counter entry that the rate cut of a row requires, or nil.
func against(c *book.Computer, cuts []cut) *cut {
	switch {
	case len(cuts) == 0:
		return nil
	case len(cuts) > 2, len(cuts) == 2 && cuts[0].cutsMetal() == cuts[1].cutsMetal():
		c.Wrong(cuts[len(cuts)-1].field("kind"), "a row has at most one rate cut: one entry of metal and one of money")
		return nil
	case len(cuts) == 2 && cuts[0].side == cuts[1].side:
		c.Wrong(cuts[1].field("kind"), "the two entries of a rate cut must be on different sides")
		return nil
	case len(cuts) == 2:
		compare(c, cuts)
		return nil
	}
	e := cuts[0]
	counter := cut{Entry{Kind: rateCut, Counter: true}, 1 - e.side, 0}
	switch {
	case e.cutsMetal() && e.Amount == nil, !e.cutsMetal() && e.Rate == nil:
		c.Wrong(e.field("rate"), "is required unless the row has the counter entry")
		return nil
	case e.cutsMetal():
		counter.Amount = e.Amount
	default:
		counter.FineWeight = c.Grams(e.field("amount"), nil, e.Amount.Decimal().Mul(e.grams()).Div(e.Rate.Decimal()))
		if counter.FineWeight == nil {
			return nil
		}
	}
	if counter.Effect() == (book.Effect{}) {
		c.Wrong(e.field("amount"), "the counter entry would be 0")
		return nil
	}
	return &counter
}

// compare warns if the money of a rate cut differs from the price of its metal.
func compare(c *book.Computer, cuts []cut) {
	gold, money := cuts[0], cuts[1]
	if money.cutsMetal() {
		gold, money = money, gold
	}
	switch {
	case gold.Amount != nil && !slices.Contains(gold.Computed, "amount"):
		c.Money(money.field("amount"), money.Amount, gold.Amount.Decimal())
	case gold.Rate != nil:
		c.Money(money.field("amount"), money.Amount, gold.price(*gold.FineWeight))
	case money.Rate != nil:
		c.Money(money.field("amount"), money.Amount, money.price(book.Value(gold.FineWeight)))
	}
}
