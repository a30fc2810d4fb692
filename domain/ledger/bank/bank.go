// Package bank is the ledger of the workshop's bank accounts.
package bank

import (
	"bahi/domain/fault"
	"bahi/domain/ledger/book"
	"bahi/domain/unit"
)

// Ledger is the ledger of bank accounts.
var Ledger = book.New(book.Spec[Entry, Entry]{
	Name: "bank", Title: "Bank", Events: "BankAccount", Held: true, NoAccount: "Bank account not found",
	Mirror: book.Exchange[Entry], In: moved, Out: moved,
})

// Entry is money that an account received or paid.
type Entry struct {
	Description book.Text  `json:"description,omitempty" maxLength:"500" doc:"Description of the entry"`
	Amount      unit.Money `json:"amount" doc:"Amount in rupees"`
}

func moved(v book.Movement) Entry { return Entry{v.Description, *v.Amount} }

// Effect returns the amount in cash.
func (e Entry) Effect() book.Effect { return book.Effect{Cash: e.Amount} }

// Check requires a positive amount.
func (e Entry) Check() []fault.Field {
	var c book.Checker
	c.Text("description", e.Description, book.MaxDescription)
	if e.Amount <= 0 {
		c.Wrong("amount", "must be more than 0")
	}
	return c.Faults()
}
