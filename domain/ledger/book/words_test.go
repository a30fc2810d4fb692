package book_test

import (
	"time"

	"bahi/domain/event"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/domain/unit"
)

// The rules of all ledgers are tested through the bank's.
type (
	entry = bank.Entry

	opened         = book.AccountOpened
	renamed        = book.AccountRenamed
	accountDeleted = book.AccountDeleted
	openAccount    = book.OpenAccount
	changeAccount  = book.ChangeAccount
	deleteAccount  = book.DeleteAccount

	rowEvent   = event.Event[book.Row]
	added      = book.RowAdded
	edited     = book.RowEdited
	rowDeleted = book.RowDeleted
	addRow     = book.AddRow
	editRow    = book.EditRow
	deleteRow  = book.DeleteRow
	emptySide  = book.EmptySide

	rowVoided  = book.RowVoided
	reversed   = book.RowReversed
	voidRow    = book.VoidRow
	reverseRow = book.ReverseRow
	postRows   = book.PostRows
)

// today is the date of all these tests.
var today = day(2025, time.March, 31)

func day(y int, m time.Month, d int) unit.Date {
	return unit.DateOf(time.Date(y, m, d, 0, 0, 0, 0, time.UTC))
}

// of is a side with one entry of each amount, in rupees.
func of(amounts ...int64) book.Side {
	entries := make([]entry, len(amounts))
	for i, a := range amounts {
		entries[i] = entry{Amount: unit.Money(a * 100)}
	}
	return book.SideOf(entries)
}

// texts is a side with one entry of 3 rupees for each description.
func texts(descriptions ...string) book.Side {
	entries := make([]entry, len(descriptions))
	for i, d := range descriptions {
		entries[i] = entry{Description: book.Text(d), Amount: 3_00}
	}
	return book.SideOf(entries)
}

// given returns the input of a side's entries.
func given(s book.Side) book.SideInput {
	entries, err := book.EntriesOf[entry](s)
	if err != nil {
		panic(err)
	}
	return book.Entries(entries)
}

// ask returns the input of a whole row.
func ask(date unit.Date, in, out book.Side) book.RowInput {
	return book.RowInput{Date: &date, In: given(in), Out: given(out)}
}

// askFor returns the input of an edit.
func askFor(e edited) (asked book.RowInput) {
	asked.Date = e.Date
	if e.In != nil {
		asked.In = given(*e.In)
	}
	if e.Out != nil {
		asked.Out = given(*e.Out)
	}
	return asked
}
