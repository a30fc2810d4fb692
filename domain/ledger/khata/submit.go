package khata

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/ledger/book"
	"bahi/domain/unit"
)

// most is the maximum number of entries or rows of one request (CONTRACT.md I20).
const most = 1000

// Asked is a requested row.
type Asked struct {
	Ledger  *book.Ledger
	Account int64
	Row     book.RowInput

	// Place returns the field of the request that corresponds to a field of the row.
	Place func(field string) string
	List  string // the request's list: entries or rows
	Of    []int  // indexes of its entries or of the row in the list
}

// Row is a row of a ledger.
type Row struct {
	*book.Ledger
	book.RowAdded
}

// Submit records that rows were posted, from an upload or without one.
type Submit struct {
	Submitted

	Upload bool // the rows are from an upload
}

// Decide refuses an upload that does not exist, is not read yet, or was already submitted.
func (c Submit) Decide(s State) ([]event.Event[State], error) {
	switch {
	case c.Upload && s.Blob == "":
		return nil, ErrNotFound
	case s.First != 0:
		return nil, ErrSubmitted
	case c.Upload && !s.Done && !s.Failed:
		return nil, ErrNotRead
	}
	return []event.Event[State]{c.Submitted}, nil
}

// PostRows posts rows to several ledgers, all or none.
type PostRows struct {
	Today         unit.Date
	Rows          []Asked
	Closed        func(ledger *book.Ledger, account int64) bool
	LockedThrough *unit.Date
	Reason        string // of the request
}

// Arrange sorts rows so that those of an account are adjacent.
func Arrange(rows []Asked) {
	slices.SortStableFunc(rows, func(a, b Asked) int {
		return cmp.Or(strings.Compare(a.Ledger.Name, b.Ledger.Name), cmp.Compare(a.Account, b.Account))
	})
}

// Decide returns the rows. If any row has a fault, it refuses all rows and lists all faults. It returns a conflict if
// the only faults are locked dates.
func (c PostRows) Decide() ([]Row, error) {
	var (
		wrong, locked []fault.Field
		bytes         int
		rows          = make([]Row, len(c.Rows))
	)
	for i, asked := range c.Rows {
		row, faults := asked.row(c.Today)
		if c.Closed(asked.Ledger, asked.Account) {
			faults = append(faults, fault.Field{Field: "account_id", Message: asked.Ledger.NoAccount.Error()})
		}
		for _, f := range faults {
			wrong = append(wrong, asked.placed(f)...)
		}
		if c.LockedThrough != nil && asked.Row.Date != nil && *asked.Row.Date <= *c.LockedThrough {
			why := fmt.Sprintf("Books are locked through %s", *c.LockedThrough)
			locked = append(locked, asked.placed(fault.Field{Field: "date", Message: why})...)
		}
		rows[i] = row
		bytes += row.Bytes(c.Reason)
	}
	switch {
	case len(wrong) > 0:
		return nil, fault.Fields(append(wrong, locked...)...)
	case len(locked) > 0:
		return nil, &fault.Error{Kind: fault.Conflict, Detail: locked[0].Message, Fields: locked}
	case bytes > book.MaxBytes:
		return nil, fault.Wrong("entries", "more than 4,000,000 bytes together: send fewer at once")
	}
	return rows, nil
}

// placed returns a fault of the row with the names of the request's fields. A fault of the date or the account is one of each entry.
func (a Asked) placed(f fault.Field) (all []fault.Field) {
	if f.Field != "date" && f.Field != "account_id" {
		return []fault.Field{f.Placed(a.Place)}
	}
	for _, i := range a.Of {
		all = append(all, fault.Field{Field: fmt.Sprintf("%s[%d].%s", a.List, i, f.Field), Message: f.Message})
	}
	return all
}

// row returns the row, and its faults by the rules of its ledger.
func (a Asked) row(today unit.Date) (row Row, wrong []fault.Field) {
	row.Ledger = a.Ledger
	events, err := book.AddRow{Ledger: a.Ledger, Account: a.Account, Today: today, RowInput: a.Row}.Decide(book.Row{})
	if refused, ok := errors.AsType[*fault.Error](err); ok {
		if len(refused.Fields) == 0 {
			return row, []fault.Field{{Field: "", Message: refused.Detail}}
		}
		return row, refused.Fields
	}
	row.RowAdded, _ = events[0].(book.RowAdded)
	return row, nil
}

// checkCount refuses an empty list and a list that exceeds the maximum.
func checkCount(field string, count int) error {
	switch {
	case count == 0:
		return fault.Wrong(field, "at least one is needed")
	case count > most:
		return fault.Wrong(field, fmt.Sprintf("at most %d", most))
	}
	return nil
}
