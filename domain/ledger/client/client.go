// Package client is the ledger of the customers. The OUT side has pieces and bills, the IN side has metal and money.
package client

import (
	"bahi/domain/fault"
	"bahi/domain/ledger/book"
	"bahi/domain/unit"
)

// Ledger is the ledger of clients.
var Ledger = book.New(book.Spec[In, Out]{
	Name: "client", Title: "Client", Events: "Client", Metal: true, NoAccount: "Client not found", Mirror: mirror,
	In: func(v book.Movement) In { return In(moved(v)) }, Out: moved,
})

// Out is an item that was delivered or billed to a client. Its metal changes the client's crystal balance, unless a rate
// converts it to money (CONTRACT.md L4).
type Out struct {
	ItemName       book.Text     `json:"item_name,omitempty" maxLength:"200" doc:"Name of the item"`
	SlipNumber     book.Text     `json:"slip_number,omitempty" maxLength:"40" doc:"Number of the order slip"`
	Weight         *unit.Grams   `json:"weight,omitempty" doc:"Weight in grams"`
	Touch          *unit.Percent `json:"touch,omitempty" doc:"Purity in percent"`
	WastagePercent *unit.Percent `json:"wastage_percent,omitempty" doc:"Wastage in percent, added to the touch"`
	WastageWeight  *unit.Grams   `json:"wastage_weight,omitempty" doc:"In grams, contained in fine_weight: weight x wastage_percent / 100, unless it is given"`
	FineWeight     *unit.Grams   `json:"fine_weight,omitempty" doc:"In grams: weight x (touch + wastage_percent) / 100, unless it is given. Without wastage_percent, wastage_weight is added"`
	Metal          book.Metal    `json:"metal,omitempty" maxLength:"40" doc:"Metal of the entry; absent: that of the account"`
	MakingCharge   *unit.Money   `json:"making_charge,omitempty" doc:"Making charge in rupees, billed in addition to the amount; OUT only"`
	Rate           *unit.Money   `json:"rate,omitempty" doc:"Price of a gram of fine metal in rupees. With a rate, the metal does not change the crystal balance"`
	Amount         *unit.Money   `json:"amount,omitempty" doc:"Amount in rupees. With a rate: fine_weight x rate, unless given"`
	Description    book.Text     `json:"description,omitempty" maxLength:"500" doc:"Description of the entry"`
	Computed       []string      `json:"computed,omitempty" readOnly:"true" doc:"The fields that were not given"`
}

// In is an item that a client returned or paid. It has the fields of [Out] except the making charge.
type In Out

func moved(v book.Movement) Out {
	return Out{FineWeight: v.FineWeight, Metal: v.Metal, Amount: v.Amount, Description: v.Description}
}

// MetalName returns the metal that the entry names.
func (e Out) MetalName() book.Metal { return e.Metal }

// MetalName returns the metal that the entry names.
func (e In) MetalName() book.Metal { return e.Metal }

// Effect returns the fine weight of unpriced metal, and the amount plus the making charge in cash.
func (e Out) Effect() book.Effect {
	effect := book.Effect{Cash: book.Value(e.Amount) + book.Value(e.MakingCharge), Fine: book.Value(e.FineWeight)}
	if e.Rate != nil {
		effect.Fine = 0
	}
	return effect
}

// Effect is [Out.Effect].
func (e In) Effect() book.Effect { return Out(e).Effect() }

// Complete computes the wastage, the fine weight and the amount.
func (e Out) Complete(c *book.Computer) Out {
	e.WastageWeight = c.Part("wastage_weight", e.WastageWeight, e.Weight, e.WastagePercent)
	if e.Weight != nil && e.Touch != nil {
		fine := book.Share(*e.Weight, *e.Touch+book.Value(e.WastagePercent))
		if e.WastagePercent == nil {
			fine = fine.Add(book.Value(e.WastageWeight).Decimal())
		}
		e.FineWeight = c.Grams("fine_weight", e.FineWeight, fine)
	}
	if e.Rate != nil && e.FineWeight != nil {
		e.Amount = c.Money("amount", e.Amount, e.FineWeight.Decimal().Mul(e.Rate.Decimal()))
	}
	e.Computed = c.Computed()
	return e
}

// Complete is [Out.Complete].
func (e In) Complete(c *book.Computer) In { return In(Out(e).Complete(c)) }

// Check requires metal, an amount or a making charge.
func (e Out) Check() []fault.Field {
	var c book.Checker
	c.Text("item_name", e.ItemName, book.MaxItemName)
	c.Text("slip_number", e.SlipNumber, book.MaxSlipNumber)
	c.Metal("weight", e.Weight, "touch", e.Touch, e.FineWeight)
	c.Metallic(e.Metal, e.Weight != nil || e.FineWeight != nil)
	c.Wastage(e.WastagePercent, e.WastageWeight, "weight", e.Weight)
	const needsMetal = "requires weight or fine_weight"
	if e.WastageWeight != nil && e.Weight == nil && e.FineWeight == nil {
		c.Wrong("wastage_weight", needsMetal)
	}
	c.Amount("making_charge", e.MakingCharge)
	c.Rate("rate", e.Rate)
	if e.Rate != nil && book.Value(e.Weight) == 0 && book.Value(e.FineWeight) == 0 {
		c.Wrong("rate", needsMetal)
	}
	c.Amount("amount", e.Amount)
	c.Text("description", e.Description, book.MaxDescription)
	if book.Value(e.Weight)+book.Value(e.FineWeight)+book.Value(e.WastageWeight) == 0 && book.Value(e.Amount)+book.Value(e.MakingCharge) == 0 {
		c.Empty()
	}
	return c.Faults()
}

// Check is [Out.Check], and refuses a making charge.
func (e In) Check() []fault.Field {
	wrong := Out(e).Check()
	if e.MakingCharge != nil {
		wrong = append(wrong, fault.Field{Field: "making_charge", Message: "only OUT entries have one"})
	}
	return wrong
}

// mirror exchanges the sides. An IN entry has no making charge, so its amount includes it (CONTRACT.md L7).
func mirror(in []In, out []Out) (newIn []In, newOut []Out) {
	for _, e := range in {
		e.Computed = nil
		newOut = append(newOut, Out(e))
	}
	for _, e := range out {
		if e.MakingCharge != nil {
			e.Amount, e.MakingCharge = new(e.Effect().Cash), nil
		}
		e.Computed = nil
		newIn = append(newIn, In(e))
	}
	return newIn, newOut
}
