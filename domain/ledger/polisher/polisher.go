// Package polisher is the ledger of the polishers, enamellers and platers. The OUT side has the weight of pieces for them, the IN side the
// weight of returned pieces.
package polisher

import (
	"bahi/domain/fault"
	"bahi/domain/ledger/book"
	"bahi/domain/unit"
)

// Ledger is the ledger of polishers. The types of its accounts are 0 regular, 1 meena (enamel) and 2 rodium (rhodium
// plating).
var Ledger = book.New(book.Spec[In, Out]{
	Name: "polisher", Title: "Polisher", Events: "Polisher", Types: 3, Metal: true, Gross: true,
	NoAccount: "Polisher not found", Mirror: mirror,
	In: func(v book.Movement) In {
		return In{Weight: v.FineWeight, Metal: v.Metal, Amount: v.Amount, Description: v.Description}
	},
	Out: func(v book.Movement) Out {
		return Out{Weight: v.FineWeight, Metal: v.Metal, Amount: v.Amount, Description: v.Description}
	},
})

// In has the pieces that a polisher returned, with the polishing loss and the charge for labour.
type In struct {
	ItemName    book.Text   `json:"item_name,omitempty" maxLength:"200" doc:"Name of the item"`
	Weight      *unit.Grams `json:"weight,omitempty" doc:"Weight in grams"`
	LossWeight  *unit.Grams `json:"loss_weight,omitempty" doc:"Polishing loss in grams; the polisher does not owe it"`
	Metal       book.Metal  `json:"metal,omitempty" maxLength:"40" doc:"Metal of the entry; absent: that of the account"`
	Pieces      *int64      `json:"pieces,omitempty" minimum:"0" maximum:"999999999" doc:"Number of pieces"`
	Rate        *unit.Money `json:"rate,omitempty" doc:"Labour rate in rupees; for information only"`
	Amount      *unit.Money `json:"amount,omitempty" doc:"Labour in rupees, owed to the polisher"`
	Description book.Text   `json:"description,omitempty" maxLength:"500" doc:"Description of the entry"`
}

// Effect returns the weight plus the loss in metal, and the labour in cash.
func (e In) Effect() book.Effect {
	return book.Effect{Cash: book.Value(e.Amount), Fine: book.Value(e.Weight) + book.Value(e.LossWeight)}
}

// Lost returns the polishing loss.
func (e In) Lost() unit.Grams { return book.Value(e.LossWeight) }

// MetalName returns the metal that the entry names.
func (e In) MetalName() book.Metal { return e.Metal }

// Check requires a weight, a loss or an amount.
func (e In) Check() []fault.Field {
	c := Out{e.ItemName, e.Weight, e.Metal, e.Pieces, e.Amount, e.Description}.checked(e.Weight != nil || e.LossWeight != nil)
	c.Weight("loss_weight", e.LossWeight)
	c.Rate("rate", e.Rate)
	if e.Effect() == (book.Effect{}) {
		c.Empty()
	}
	return c.Faults()
}

// Out has the pieces or the money that a polisher received.
type Out struct {
	ItemName    book.Text   `json:"item_name,omitempty" maxLength:"200" doc:"Name of the item"`
	Weight      *unit.Grams `json:"weight,omitempty" doc:"Weight in grams"`
	Metal       book.Metal  `json:"metal,omitempty" maxLength:"40" doc:"Metal of the entry; absent: that of the account"`
	Pieces      *int64      `json:"pieces,omitempty" minimum:"0" maximum:"999999999" doc:"Number of pieces"`
	Amount      *unit.Money `json:"amount,omitempty" doc:"Amount in rupees, paid to the polisher"`
	Description book.Text   `json:"description,omitempty" maxLength:"500" doc:"Description of the entry"`
}

// Effect returns the weight in metal, and the amount in cash.
func (e Out) Effect() book.Effect {
	return book.Effect{Cash: book.Value(e.Amount), Fine: book.Value(e.Weight)}
}

// MetalName returns the metal that the entry names.
func (e Out) MetalName() book.Metal { return e.Metal }

// Check requires a weight or an amount.
func (e Out) Check() []fault.Field {
	c := e.checked(e.Weight != nil)
	if e.Effect() == (book.Effect{}) {
		c.Empty()
	}
	return c.Faults()
}

func (e Out) checked(hasMetal bool) (c book.Checker) {
	c.Text("item_name", e.ItemName, book.MaxItemName)
	c.Weight("weight", e.Weight)
	c.Metallic(e.Metal, hasMetal)
	c.Pieces("pieces", e.Pieces)
	c.Amount("amount", e.Amount)
	c.Text("description", e.Description, book.MaxDescription)
	return c
}

// mirror converts the entries. The new OUT weight includes the loss (CONTRACT.md L7).
func mirror(in []In, out []Out) (newIn []In, newOut []Out) {
	for _, e := range in {
		o := Out{e.ItemName, e.Weight, e.Metal, e.Pieces, e.Amount, e.Description}
		if e.LossWeight != nil {
			o.Weight = new(e.Effect().Fine)
		}
		newOut = append(newOut, o)
	}
	for _, e := range out {
		newIn = append(newIn, In{ItemName: e.ItemName, Weight: e.Weight, Metal: e.Metal, Pieces: e.Pieces, Amount: e.Amount,
			Description: e.Description})
	}
	return newIn, newOut
}
