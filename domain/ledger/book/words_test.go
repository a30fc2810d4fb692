package book_test

import (
	"time"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/domain/unit"
)

// The rules of all ledgers are tested through the bank's.
type (
	entry = bank.Entry

	accountEvent    = event.Event[bank.Account]
	opened          = book.AccountOpened[entry]
	renamed         = book.AccountRenamed[entry]
	accountDeleted  = book.AccountDeleted[entry]
	deletionRefused = book.AccountDeletionRefused[entry]
	openAccount     = book.OpenAccount[entry]
	renameAccount   = book.RenameAccount[entry]
	deleteAccount   = book.DeleteAccount[entry]

	rowEvent   = event.Event[bank.Row]
	added      = book.RowAdded[entry, entry]
	edited     = book.RowEdited[entry, entry]
	rowDeleted = book.RowDeleted[entry, entry]
	rowRefused = book.RowRefused[entry, entry]
	addRow     = book.AddRow[entry, entry]
	editRow    = book.EditRow[entry, entry]
	deleteRow  = book.DeleteRow[entry, entry]

	rowVoided = book.RowVoided[entry, entry]
	announced = book.ReversalAnnounced[entry, entry]
	dropped   = book.ReversalDropped[entry, entry]
	reversed  = book.RowReversed[entry, entry]
	voidRow   = book.VoidRow[entry, entry]
	announce  = book.AnnounceReversal[entry, entry]
	drop      = book.DropReversal[entry, entry]

	rowsReversed = book.RowsReversed[entry, entry]
	rowsForsaken = book.RowsForsaken[entry, entry]
	reverseRows  = book.ReverseRows[entry, entry]
	forsakeRows  = book.ForsakeRows[entry, entry]
	reversalRow  = book.ReversalRow[entry, entry]

	bulkRow     = book.BulkRow[entry, entry]
	posted      = book.RowsPosted[entry, entry]
	rowsRefused = book.RowsRefused[entry, entry]
	postRows    = book.PostRows[entry, entry]
)

// today is when all these tests take place.
var today = day(2025, time.March, 31)

func day(y int, m time.Month, d int) unit.Date {
	return unit.DateOf(time.Date(y, m, d, 0, 0, 0, 0, time.UTC))
}

// of is a side with one entry of each amount, in rupees.
func of(amounts ...int64) []entry {
	side := make([]entry, len(amounts))
	for i, a := range amounts {
		side[i] = entry{Amount: unit.Money(a * 100)}
	}
	return side
}

// texts is a side with one entry of 3 rupees for each description.
func texts(descriptions ...string) []entry {
	side := make([]entry, len(descriptions))
	for i, d := range descriptions {
		side[i] = entry{Description: book.Text(d), Amount: 3_00}
	}
	return side
}

func invalid(fieldsAndMessages ...string) *fault.Error {
	var fields []fault.Field
	for i := 0; i < len(fieldsAndMessages); i += 2 {
		fields = append(fields, fault.Field{Field: fieldsAndMessages[i], Message: fieldsAndMessages[i+1]})
	}
	return fault.Fields(fields...)
}
