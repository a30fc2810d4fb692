package book

import (
	"errors"
	"fmt"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/unit"
)

// maxBulk is the maximum number of rows in one request (CONTRACT.md 0.4).
const maxBulk = 1000

// Post posts a row that [PostRows] or [ReverseRows] has decided.
type Post struct{ RowAdded }

// Decide returns the row. The caller assigns its new number.
func (c Post) Decide(Row) ([]event.Event[Row], error) { return []event.Event[Row]{c.RowAdded}, nil }

// PostRows posts rows to an account, all or none. No date may be after the day that follows Today.
type PostRows struct {
	Ledger  *Ledger
	Account int64
	Today   unit.Date
	Rows    []RowInput
	Reason  string // of the request
}

// Decide returns the rows. If any row has a fault, it refuses all rows and lists all faults.
func (c PostRows) Decide(s PostingContext) ([]RowAdded, error) {
	switch {
	case len(c.Rows) == 0:
		return nil, fault.Wrong("rows", "at least one row is needed")
	case len(c.Rows) > maxBulk:
		return nil, fault.Wrong("rows", fmt.Sprintf("at most %d rows", maxBulk))
	}
	var (
		wrong []fault.Field
		rows  = make([]RowAdded, len(c.Rows))
		bytes int
	)
	for i, asked := range c.Rows {
		row, faults := AddRow{Ledger: c.Ledger, Account: c.Account, Today: c.Today, RowInput: asked}.row()
		for _, f := range faults {
			wrong = append(wrong, f.Placed(func(field string) string { return fmt.Sprintf("rows[%d].%s", i, field) }))
		}
		rows[i] = row
		bytes += row.Bytes(c.Reason)
	}
	switch {
	case len(wrong) > 0:
		return nil, fault.Besides(fault.Fields(wrong...), refused(rows, s))
	case bytes > MaxBytes:
		return nil, errTooLarge
	}
	return rows, refused(rows, s)
}

// refused returns the error of rows that must not be posted, or nil. The error lists each row in a locked period.
func refused(rows []RowAdded, s PostingContext) error {
	dates := make([]unit.Date, len(rows))
	for i, r := range rows {
		dates[i] = r.Date
	}
	err := s.CheckDates(dates...)
	refused, ok := errors.AsType[*fault.Error](err)
	if !ok || refused.Kind != fault.Conflict {
		return err
	}
	refused.Fields = nil
	for i, r := range rows {
		if s.CheckDates(r.Date) != nil {
			refused.Fields = append(refused.Fields, fault.Field{Field: fmt.Sprintf("rows[%d].date", i), Message: refused.Detail})
		}
	}
	return refused
}
