package book

import (
	"fmt"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/unit"
)

// A reversal is a new row that mirrors another one: what came IN goes OUT, on a day of its own. So locked days
// do not change, and the books say who corrected what, and when. (A deletion removes a row from the books,
// and a void row counts nothing from its own day on. Neither is possible once that day is locked.)

// ErrVoid refuses a change of a row that is void.
var ErrVoid = fault.New(fault.Conflict, "The row is void and cannot be changed")

// Editable returns why the row can no longer be edited, moved, deleted or made void, nil if it can. A row
// stays as it is once it is reversed or void, or if it reverses another row.
func (r Row) Editable() error {
	switch {
	case r.ReversedBy != 0:
		return conflictWith("reversed_by", r.ReversedBy, "The row is reversed by row %d and cannot be changed")
	case r.Reverses != 0:
		return conflictWith("reverses", r.Reverses, "The row reverses row %d and cannot be changed. It can be reversed")
	case r.Void:
		return ErrVoid
	default:
		return nil
	}
}

// conflictWith returns a conflict that carries the row that it names (CONTRACT.md 0.8).
func conflictWith(field string, row int64, format string) error {
	detail := fmt.Sprintf(format, row)
	return &fault.Error{Kind: fault.Conflict, Detail: detail, Fields: []fault.Field{{Field: field, Message: detail, ID: row}}}
}

// RowReversed records which row reverses this one.
type RowReversed struct {
	By int64 `json:"by"`
}

// RowVoided makes the row count nothing.
type RowVoided struct{}

// Evolve notes which row reverses this one.
func (e RowReversed) Evolve(r Row) Row { r.ReversedBy = e.By; return r }

// Evolve makes the row void.
func (RowVoided) Evolve(r Row) Row { r.Void = r.Void || r.Exists(); return r }

// VoidRow makes a row of the account void: it keeps its place and counts nothing.
type VoidRow struct {
	Ledger  *Ledger
	Account int64
}

// Decide returns the ledger's NoRow where the account has no such row, and a conflict where it is not
// [Row.Editable], as when it is void already.
func (c VoidRow) Decide(r Row) ([]event.Event[Row], error) {
	if !r.Exists() || r.Account != c.Account {
		return nil, c.Ledger.NoRow
	}
	if err := r.Editable(); err != nil {
		return nil, err
	}
	return []event.Event[Row]{RowVoided{}}, nil
}

// ReverseRow records that a row of the account is reversed.
type ReverseRow struct {
	Ledger  *Ledger
	Account int64
	By      int64 // the row that reverses it
}

// Decide returns the ledger's NoRow where the account has no such row, and a conflict for one that is void or reversed. A row that reverses
// another one can be reversed itself.
func (c ReverseRow) Decide(r Row) ([]event.Event[Row], error) {
	switch {
	case !r.Exists() || r.Account != c.Account:
		return nil, c.Ledger.NoRow
	case r.ReversedBy != 0:
		return nil, conflictWith("reversed_by", r.ReversedBy, "The row is reversed by row %d already")
	case r.Void:
		return nil, ErrVoid
	}
	return []event.Event[Row]{RowReversed{By: c.By}}, nil
}

// Reversing is a row that is to be reversed.
type Reversing struct {
	Ledger *Ledger
	ID     int64
	Row
}

// ReverseRows posts the rows that mirror others. Their day is Date; nil: today, or the latest of the rows' own days.
type ReverseRows struct {
	Date  *unit.Date
	Today unit.Date
	Rows  []Reversing
}

// Decide returns the new rows. It refuses a day after tomorrow and one before a row's own.
func (c ReverseRows) Decide(s PostingContext) ([]RowAdded, error) {
	latest := c.Rows[0].Date
	for _, row := range c.Rows {
		latest = max(latest, row.Date)
	}
	date := max(c.Today, latest)
	if c.Date != nil {
		date = *c.Date
	}
	switch {
	case date > c.Today+1:
		return nil, fault.Fields(fault.Field{Field: "date", Message: "must not be after tomorrow"})
	case date < latest:
		return nil, fault.Fields(fault.Field{Field: "date", Message: "must not be before the date of the row"})
	}
	added, bytes := make([]RowAdded, len(c.Rows)), 0
	for i, row := range c.Rows {
		in, out, err := row.Ledger.Mirror(row.In, row.Out)
		if err != nil {
			return nil, fmt.Errorf("mirror row %d: %w", row.ID, err)
		}
		added[i] = RowAdded{Account: row.Account, Date: date, In: in, Out: out, Reverses: row.ID}
		bytes += size(in, out, "")
	}
	if bytes > maxBytes {
		return nil, errTooLarge
	}
	return added, s.CheckDates(date)
}
