package book

import (
	"slices"

	"bahi/domain/event"
)

// names are the stored names of a ledger's streams and events. They are permanent.
type names struct {
	account, row string // the categories of streams

	accounts [5]string // names of accountTypes, in their order; "" if the ledger has no such event
	rows     [7]string // names of rowTypes, in their order
}

// stored has the names of all five ledgers, keyed by ledger name.
var stored = map[string]names{
	"bank": {
		"bank", "bankrow",
		[...]string{"BankAccountOpened", "BankAccountRenamed", "", "BankAccountDeleted", ""},
		[...]string{
			"BankRowAdded", "BankRowEdited", "BankRowDeleted", "BankRowVoided", "BankRowReversed",
			"BankRowPaired", "BankRowUnpaired",
		},
	},
	"bullion": {
		"bullion", "bullionrow",
		[...]string{"BullionAccountOpened", "BullionAccountRenamed", "", "BullionAccountDeleted", "BullionAccountMetalChanged"},
		[...]string{
			"BullionRowAdded", "BullionRowEdited", "BullionRowDeleted", "BullionRowVoided", "BullionRowReversed",
			"BullionRowPaired", "BullionRowUnpaired",
		},
	},
	"client": {
		"client", "clientrow",
		[...]string{"ClientOpened", "ClientRenamed", "", "ClientDeleted", "ClientMetalChanged"},
		[...]string{
			"ClientRowAdded", "ClientRowEdited", "ClientRowDeleted", "ClientRowVoided", "ClientRowReversed",
			"ClientRowPaired", "ClientRowUnpaired",
		},
	},
	"karigar": {
		"karigar", "karigarrow",
		[...]string{"KarigarOpened", "KarigarRenamed", "", "KarigarDeleted", "KarigarMetalChanged"},
		[...]string{
			"KarigarRowAdded", "KarigarRowEdited", "KarigarRowDeleted", "KarigarRowVoided", "KarigarRowReversed",
			"KarigarRowPaired", "KarigarRowUnpaired",
		},
	},
	"polisher": {
		"polisher", "polisherrow",
		[...]string{"PolisherOpened", "PolisherRenamed", "PolisherTypeChanged", "PolisherDeleted", "PolisherMetalChanged"},
		[...]string{
			"PolisherRowAdded", "PolisherRowEdited", "PolisherRowDeleted", "PolisherRowVoided", "PolisherRowReversed",
			"PolisherRowPaired", "PolisherRowUnpaired",
		},
	},
}

// The registered kinds of streams of a ledger.
var (
	accountTypes = [...]func(string) event.Type[Account]{
		typeOf[AccountOpened], typeOf[AccountRenamed], typeOf[AccountTypeChanged], typeOf[AccountDeleted],
		typeOf[AccountMetalChanged],
	}
	rowTypes = [...]func(string) event.Type[Row]{
		typeOf[RowAdded], typeOf[RowEdited], typeOf[RowDeleted], typeOf[RowVoided], typeOf[RowReversed], typeOf[RowPaired],
		typeOf[RowUnpaired],
	}
)

func typeOf[E event.Event[S], S any](name string) event.Type[S] { return event.Of[E, S](name, 1) }

// kindOf returns the kind of a category's streams. Its events are completed when they are read.
func kindOf[S any](category string, names []string, types []func(string) event.Type[S],
	read func(event.Event[S]) (event.Event[S], error)) *event.Kind[S] {
	var used []event.Type[S]
	for i, name := range names {
		if name != "" {
			used = append(used, types[i](name).Reading(read))
		}
	}
	return event.NewKind(category, used...)
}

// LedgerOf returns the name of the ledger to which a category of streams belongs, or "".
func LedgerOf(category string) string { return ledgerOf[category] }

var ledgerOf = func() map[string]string {
	all := map[string]string{}
	for name, n := range stored {
		all[n.account], all[n.row] = name, name
	}
	return all
}()

// EventNames returns the stored names of all five ledgers' events in order.
func EventNames() (all []string) {
	for _, n := range stored {
		for _, name := range slices.Concat(n.accounts[:], n.rows[:]) {
			if name != "" {
				all = append(all, name)
			}
		}
	}
	slices.Sort(all)
	return all
}
