// Package domain lists every kind of stream of the system.
package domain

import (
	"bahi/domain/event"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/bookslock"
	"bahi/domain/marketplace/apikey"
	"bahi/domain/number"
	"bahi/domain/request"
)

// Catalogue has every Kind, once.
var Catalogue = event.NewCatalogue(
	apikey.Kind,
	bank.Accounts,
	bank.Rows,
	bank.Bulks,
	bookslock.Kind,
	number.Kind,
	request.Kind,
)
