// Package ledger lists the ledgers. All other lists of ledgers are derived from this one.
package ledger

import (
	"bahi/domain/event"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/bullion"
	"bahi/domain/ledger/client"
	"bahi/domain/ledger/karigar"
	"bahi/domain/ledger/polisher"
)

// All has all ledgers.
var All = []*book.Ledger{
	bank.Ledger,
	bullion.Ledger,
	client.Ledger,
	karigar.Ledger,
	polisher.Ledger,
}

// Kinds returns the kinds of the ledgers' streams.
func Kinds() (all []event.AnyKind) {
	for _, l := range All {
		all = append(all, l.Accounts, l.Rows)
	}
	return all
}

// Named returns the ledger of that name, or nil.
func Named(name string) *book.Ledger {
	for _, l := range All {
		if l.Name == name {
			return l
		}
	}
	return nil
}

// Of returns the ledger to which a category of streams belongs, or nil.
func Of(category string) *book.Ledger {
	for _, l := range All {
		if category == l.Accounts.Category() || category == l.Rows.Category() {
			return l
		}
	}
	return nil
}
