package book

import (
	"fmt"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/unit"
)

// A reversal is a new row with its own date and with the exchanged sides of another row. It changes no locked date, and the log has the
// actor and the time. A deleted row is no longer in the ledger. A void row stays without effect. Deleting and voiding are refused if the
// row's date is locked.

// ErrVoid reports a change of a void row.
var ErrVoid = fault.New(fault.Conflict, "The row is void and cannot be changed")

// Editable returns the error of editing, moving, deleting or voiding the row, or nil. A row is final if it is reversed or void, or reverses
// another row.
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

// conflictWith returns a conflict that contains the id of another row (CONTRACT.md 0.8).
func conflictWith(field string, row int64, format string) error {
	detail := fmt.Sprintf(format, row)
	return &fault.Error{Kind: fault.Conflict, Detail: detail, Fields: []fault.Field{{Field: field, Message: detail, ID: row}}}
}

// RowReversed records the row that reverses this one.
type RowReversed struct {
	By int64 `json:"by"`
}

// RowVoided records that the row is void.
type RowVoided struct{}

// Evolve sets the row that reverses this one.
func (e RowReversed) Evolve(r Row) Row { r.ReversedBy = e.By; return r }

// Evolve marks the row as void.
func (RowVoided) Evolve(r Row) Row { r.Void = r.Void || r.Exists(); return r }

// VoidRow voids a row of the account: it stays in the ledger and has no effect.
type VoidRow struct {
	Ledger  *Ledger
	Account int64
}

// Decide returns the ledger's NoRow if the account has no such row, and a conflict if the row is not [Row.Editable].
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

// Decide returns the ledger's NoRow if the account has no such row, and a conflict for a void or reversed row. A
// reversal can itself be reversed.
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

// ReverseRows posts the reversals of rows. Their date is Date; nil: today, or the latest date of the rows if that is
// later.
type ReverseRows struct {
	Date   *unit.Date
	Today  unit.Date
	Rows   []LedgerRow
	Reason string // of the request
}

// Decide returns the new rows. It refuses a date after tomorrow and a date before that of a row.
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
		return nil, fault.Wrong("date", "must not be after tomorrow")
	case date < latest:
		return nil, fault.Wrong("date", "must not be before the date of the row")
	}
	added, bytes := make([]RowAdded, len(c.Rows)), 0
	for i, row := range c.Rows {
		in, out, err := row.Ledger.Mirror(row.In, row.Out)
		if err != nil {
			return nil, fmt.Errorf("mirror row %d: %w", row.ID, err)
		}
		added[i] = RowAdded{Account: row.Account, Date: date, In: in, Out: out, Reverses: row.ID}
		bytes += added[i].Bytes(c.Reason) + bytesBeside(c.Reason) // the reversed row has an event too
		if row.PairedWith != 0 {
			bytes += bytesBeside(c.Reason)
		}
	}
	if bytes > MaxBytes {
		return nil, errTooLarge
	}
	return added, s.CheckDates(date)
}
