// Package bank is the ledger of the workshop's bank accounts: money in, money out.
package bank

import (
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/ledger/book"
	"bahi/domain/unit"
)

// The shapes that this ledger has in common with the others, with its own entries.
type (
	Account = book.Account[Entry]
	Row     = book.Row[Entry, Entry]
	Bulk    = book.Bulk[Entry, Entry]
)

// Accounts names what a stream bank-<id> holds. A name is for ever: old logs have it.
var Accounts = event.NewKind("bank",
	event.Of[book.AccountOpened[Entry]]("BankAccountOpened", 1),
	event.Of[book.AccountRenamed[Entry]]("BankAccountRenamed", 1),
	event.Of[book.AccountDeleted[Entry]]("BankAccountDeleted", 1),
	event.Of[book.AccountDeletionRefused[Entry]]("BankAccountDeletionRefused", 1),
)

// Rows names what a stream bankrow-<id> holds.
var Rows = event.NewKind("bankrow",
	event.Of[book.RowAdded[Entry, Entry]]("BankRowAdded", 1),
	event.Of[book.RowEdited[Entry, Entry]]("BankRowEdited", 1),
	event.Of[book.RowDeleted[Entry, Entry]]("BankRowDeleted", 1),
	event.Of[book.RowVoided[Entry, Entry]]("BankRowVoided", 1),
	event.Of[book.ReversalAnnounced[Entry, Entry]]("BankRowReversalAnnounced", 1),
	event.Of[book.ReversalDropped[Entry, Entry]]("BankRowReversalDropped", 1),
	event.Of[book.RowReversed[Entry, Entry]]("BankRowReversed", 1),
	event.Of[book.RowRefused[Entry, Entry]]("BankRowRefused", 1),
)

// Bulks names what a stream bankbulk-<first row's id> holds.
var Bulks = event.NewKind("bankbulk",
	event.Of[book.RowsPosted[Entry, Entry]]("BankRowsPosted", 1),
	event.Of[book.RowsReversed[Entry, Entry]]("BankRowsReversed", 1),
	event.Of[book.RowsForsaken[Entry, Entry]]("BankRowsForsaken", 1),
	event.Of[book.RowsRefused[Entry, Entry]]("BankRowsRefused", 1),
)

// What is answered when something is not there, or not for the asker to know.
var (
	ErrNoAccount = fault.New(fault.NotFound, "Bank account not found")
	ErrNoRow     = fault.New(fault.NotFound, "Bank ledger row not found")
)

// Ledger is what is done alike for all ledgers, for this one.
var Ledger = book.Ledger[Entry, Entry, Entry]{
	Name: "bank", Accounts: Accounts, Rows: Rows, Bulks: Bulks, NoAccount: ErrNoAccount, NoRow: ErrNoRow,
	Mirror: book.Exchange[Entry],
}

// maxDescription is in characters: a line of the book, not a letter.
const maxDescription = 500

// Entry is money that came in, or went out.
type Entry struct {
	Description book.Text  `json:"description,omitempty" maxLength:"500"`
	Amount      unit.Money `json:"amount"`
}

// Effect is the amount.
func (e Entry) Effect() book.Effect { return book.Effect{Cash: e.Amount} }

// Check wants a positive amount.
func (e Entry) Check() []fault.Field {
	wrong := book.CheckText("description", e.Description, maxDescription)
	if e.Amount <= 0 {
		wrong = append(wrong, fault.Field{Field: "amount", Message: "must be more than 0"})
	}
	return wrong
}
