// Package karigar is the ledger of the artisans. The OUT side has metal for them, the IN side has finished pieces.
package karigar

import (
	"bahi/domain/fault"
	"bahi/domain/ledger/book"
	"bahi/domain/unit"
)

// Ledger is the ledger of karigars.
var Ledger = book.New(book.Spec[In, Out]{
	Name: "karigar", Title: "Karigar", Events: "Karigar", Metal: true, NoAccount: "Karigar not found", Mirror: mirror,
	In: func(v book.Movement) In {
		return In{ItemName: v.Description, FineWeight: v.FineWeight, Metal: v.Metal, Other: v.Amount}
	},
	Out: func(v book.Movement) Out {
		return Out{ItemName: v.Description, FineWeight: v.FineWeight, Metal: v.Metal, Amount: v.Amount}
	},
})

// In is a finished piece that a karigar returned, or a karigar's charge. The credited metal is the fine weight plus the agreed wastage
// (CONTRACT.md 6.2).
type In struct {
	ItemName       book.Text     `json:"item_name,omitempty" maxLength:"200" doc:"Name of the item"`
	PureWeight     *unit.Grams   `json:"pure_weight,omitempty" doc:"Net metal of the piece in grams, without stones"`
	FinePercent    *unit.Percent `json:"fine_percent,omitempty" doc:"Fineness in percent"`
	FineWeight     *unit.Grams   `json:"fine_weight,omitempty" doc:"In grams: pure_weight x fine_percent / 100, unless it is given"`
	Metal          book.Metal    `json:"metal,omitempty" maxLength:"40" doc:"Metal of the entry; absent: that of the account"`
	WastagePercent *unit.Percent `json:"wastage_percent,omitempty" doc:"Wastage in percent"`
	WastageWeight  *unit.Grams   `json:"wastage_weight,omitempty" doc:"In grams: pure_weight x wastage_percent / 100, unless it is given"`
	Other          *unit.Money   `json:"other,omitempty" doc:"Labour and other charges in rupees, owed to the karigar"`
	Computed       []string      `json:"computed,omitempty" readOnly:"true" doc:"The fields that were not given"`
}

// Effect returns fine weight plus wastage in metal, and the charge in cash.
func (e In) Effect() book.Effect {
	return book.Effect{Cash: book.Value(e.Other), Fine: book.Value(e.FineWeight) + book.Value(e.WastageWeight)}
}

// Lost returns the wastage.
func (e In) Lost() unit.Grams { return book.Value(e.WastageWeight) }

// MetalName returns the metal that the entry names.
func (e In) MetalName() book.Metal { return e.Metal }

// Complete computes the fine weight and the wastage.
func (e In) Complete(c *book.Computer) In {
	e.FineWeight = c.Part("fine_weight", e.FineWeight, e.PureWeight, e.FinePercent)
	e.WastageWeight = c.Part("wastage_weight", e.WastageWeight, e.PureWeight, e.WastagePercent)
	e.Computed = c.Computed()
	return e
}

// Check requires metal, wastage or a charge.
func (e In) Check() []fault.Field {
	var c book.Checker
	c.Text("item_name", e.ItemName, book.MaxItemName)
	c.Metal("pure_weight", e.PureWeight, "fine_percent", e.FinePercent, e.FineWeight)
	c.Metallic(e.Metal, e.PureWeight != nil || e.FineWeight != nil || e.WastageWeight != nil)
	c.Wastage(e.WastagePercent, e.WastageWeight, "pure_weight", e.PureWeight)
	c.Amount("other", e.Other)
	if book.Value(e.PureWeight) == 0 && e.Effect() == (book.Effect{}) {
		c.Empty()
	}
	return c.Faults()
}

// Out is metal or money that a karigar received.
type Out struct {
	ItemName   book.Text     `json:"item_name,omitempty" maxLength:"200" doc:"Name of the item"`
	Weight     *unit.Grams   `json:"weight,omitempty" doc:"Weight in grams"`
	Touch      *unit.Percent `json:"touch,omitempty" doc:"Purity in percent"`
	FineWeight *unit.Grams   `json:"fine_weight,omitempty" doc:"In grams: weight x touch / 100, unless it is given"`
	Metal      book.Metal    `json:"metal,omitempty" maxLength:"40" doc:"Metal of the entry; absent: that of the account"`
	Amount     *unit.Money   `json:"amount,omitempty" doc:"Amount in rupees, paid to the karigar"`
	Computed   []string      `json:"computed,omitempty" readOnly:"true" doc:"The fields that were not given"`
}

// Effect returns the fine weight in metal, and the amount in cash.
func (e Out) Effect() book.Effect {
	return book.Effect{Cash: book.Value(e.Amount), Fine: book.Value(e.FineWeight)}
}

// MetalName returns the metal that the entry names.
func (e Out) MetalName() book.Metal { return e.Metal }

// Complete computes the fine weight.
func (e Out) Complete(c *book.Computer) Out {
	e.FineWeight = c.Part("fine_weight", e.FineWeight, e.Weight, e.Touch)
	e.Computed = c.Computed()
	return e
}

// Check requires metal or an amount.
func (e Out) Check() []fault.Field {
	var c book.Checker
	c.Text("item_name", e.ItemName, book.MaxItemName)
	c.Metal("weight", e.Weight, "touch", e.Touch, e.FineWeight)
	c.Metallic(e.Metal, e.Weight != nil || e.FineWeight != nil)
	c.Amount("amount", e.Amount)
	if book.Value(e.Weight) == 0 && e.Effect() == (book.Effect{}) {
		c.Empty()
	}
	return c.Faults()
}

// mirror converts the entries: IN and OUT entries have different fields (CONTRACT.md L7).
func mirror(in []In, out []Out) (newIn []In, newOut []Out) {
	for _, e := range in {
		o := Out{ItemName: e.ItemName, Weight: e.PureWeight, FineWeight: e.FineWeight, Metal: e.Metal, Amount: e.Other}
		if e.WastageWeight != nil {
			o.FineWeight = new(e.Effect().Fine)
		}
		newOut = append(newOut, o)
	}
	for _, e := range out {
		newIn = append(newIn, In{ItemName: e.ItemName, PureWeight: e.Weight, FineWeight: e.FineWeight, Metal: e.Metal, Other: e.Amount})
	}
	return newIn, newOut
}
