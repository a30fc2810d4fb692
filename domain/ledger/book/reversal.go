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
//
// Rows are reversed in groups, all or none; one row is a group of one. The rows that reverse them are a [Bulk],
// whose one event [RowsReversed] is decisive. But it changes rows that have streams of their own: other commands
// append to them meanwhile, and readers of those streams must learn of the bulk.
// Therefore each row's stream first gets a [ReversalAnnounced], which names the bulk and reserves the row.
// A reserved row does not change until the bulk has decided, or is [RowsAbandoned] and never will. Each of the two
// would be the first event of the bulk's stream, so only one happens. The rows' streams then note the
// outcome: [RowReversed] or [ReversalDropped]. A command that needs a reserved row finishes the reversal, or
// abandons the bulk.
//
// Turned down: an event in each row's own stream that reverses it at once, since nothing makes several of them
// happen together; and a decisive event without reservations, since an edit would have to look for it in tables
// that may be late.

// ErrReversing refuses a change of a reserved row.
var ErrReversing = fault.New(fault.Conflict, "The row is being reversed, try again")

// ErrOvertaken refuses a reversal that another change has overtaken.
var ErrOvertaken = fault.New(fault.Conflict, "A row was changed meanwhile, try again")

// ErrVoid refuses a change of a row that is void.
var ErrVoid = fault.New(fault.Conflict, "The row is void and stays as it is")

// ErrNotReserved refuses a reversal of a row that changed after the reversal was planned.
var ErrNotReserved = fault.New(fault.Conflict, "A row was changed after its reversal was planned")

// Editable returns why the row can no longer be edited, moved, deleted or made void, nil if it can. A row
// stays as it is once it is reversed, reserved, void, or reverses another row.
func (r Row) Editable() error {
	switch {
	case r.ReversedBy != 0:
		return conflictWith("reversed_by", r.ReversedBy, "The row is reversed by row %d and stays as it is")
	case r.Reserved != 0:
		return ErrReversing
	case r.Reverses != 0:
		return conflictWith("reverses", r.Reverses, "The row reverses row %d and stays as it is; it can be reversed itself")
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

// ReservedFor reports whether the bulk may take the row back at this position: the bulk has reserved it,
// and the row counts on each side what the bulk's row counts on the other.
func (r Row) ReservedFor(bulk, account int64, back BulkRow, at event.Position) bool {
	return r.Exists() && r.Account == account && r.Reserved == bulk && r.ReservedAt < at &&
		r.In.Effect == back.Out.Effect && r.Out.Effect == back.In.Effect
}

// ReversalAnnounced reserves the row for a bulk that is about to reverse it.
type ReversalAnnounced struct {
	Bulk int64 `json:"bulk"`
}

// ReversalDropped releases the row: the bulk will not reverse it.
type ReversalDropped struct {
	Bulk int64 `json:"bulk"`
}

// RowReversed notes which row reverses this one, as the bulk has decided.
type RowReversed struct {
	By int64 `json:"by"`
}

// RowVoided makes the row count nothing.
type RowVoided struct{}

// EvolveAt reserves the row for the bulk, unless the row does not exist, or is void, reversed or reserved for another bulk.
func (e ReversalAnnounced) EvolveAt(r Row, at event.Position) Row {
	if r.Exists() && !r.Void && r.Reserved == 0 {
		r.Reserved, r.ReservedAt = e.Bulk, at
	}
	return r
}

// Evolve is EvolveAt for folds without positions.
func (e ReversalAnnounced) Evolve(r Row) Row { return e.EvolveAt(r, 1) }

// Evolve releases the row.
func (e ReversalDropped) Evolve(r Row) Row {
	if r.Reserved == e.Bulk && r.ReversedBy == 0 {
		r.Reserved, r.ReservedAt = 0, 0
	}
	return r
}

// Evolve notes which row reverses this one.
func (e RowReversed) Evolve(r Row) Row { r.ReversedBy = e.By; return r }

// Evolve makes the row void.
func (RowVoided) Evolve(r Row) Row { r.Void = r.Void || r.Exists(); return r }

// ReserveRow reserves a row of the account for a bulk that is about to reverse it.
type ReserveRow struct {
	Ledger  *Ledger
	Account int64
	Bulk    int64
}

// Decide returns the ledger's NoRow where the account has no such row, and a conflict for one that is void,
// reversed, or reserved. A row that reverses another can be reversed itself.
func (c ReserveRow) Decide(r Row) ([]event.Event[Row], error) {
	switch {
	case !r.Exists() || r.Account != c.Account:
		return nil, c.Ledger.NoRow
	case r.ReversedBy != 0:
		return nil, conflictWith("reversed_by", r.ReversedBy, "The row is reversed by row %d already")
	case r.Reserved != 0:
		return nil, ErrReversing
	case r.Void:
		return nil, ErrVoid
	}
	return []event.Event[Row]{ReversalAnnounced{Bulk: c.Bulk}}, nil
}

// ReleaseRow clears the reservation of an abandoned reversal.
type ReleaseRow struct {
	Bulk int64
}

// Decide returns no event for a row that is not reserved for the bulk.
func (c ReleaseRow) Decide(r Row) ([]event.Event[Row], error) {
	if r.Reserved != c.Bulk || r.ReversedBy != 0 {
		return nil, nil
	}
	return []event.Event[Row]{ReversalDropped(c)}, nil
}

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

// ReversalRow is one new row of a reversal, and the row that it reverses.
type ReversalRow struct {
	Reverses int64 `json:"reverses"`
	In       Side  `json:"in_entries,omitzero"`
	Out      Side  `json:"out_entries,omitzero"`
}

// RowsReversed reverses rows of an account on a day, all or none. The rows that reverse them are new; their ids
// follow one another from the bulk's own.
type RowsReversed struct {
	Account int64         `json:"account"`
	Date    unit.Date     `json:"date"`
	Rows    []ReversalRow `json:"rows"`
}

// RowsAbandoned ends a bulk that has not decided. It never will.
type RowsAbandoned struct{}

// EvolveAt begins the bulk.
func (e RowsReversed) EvolveAt(_ Bulk, at event.Position) Bulk {
	b := Bulk{Posted: at, Account: e.Account, Rows: make([]BulkRow, len(e.Rows)), Reverses: make([]int64, len(e.Rows))}
	for i, r := range e.Rows {
		b.Rows[i], b.Reverses[i] = BulkRow{Date: e.Date, In: r.In, Out: r.Out}, r.Reverses
	}
	return b
}

// Evolve is EvolveAt for folds without positions.
func (e RowsReversed) Evolve(b Bulk) Bulk { return e.EvolveAt(b, 1) }

// PostsTo returns the account.
func (e RowsReversed) PostsTo() int64 { return e.Account }

// Evolve abandons the bulk.
func (RowsAbandoned) Evolve(b Bulk) Bulk { b.Abandoned = true; return b }

// ReverseRows reverses rows of an account on a day. The day is between Latest, the latest day of these rows, and tomorrow,
// which Today tells.
type ReverseRows struct {
	Account int64
	Date    unit.Date
	Today   unit.Date
	Latest  unit.Date
	Rows    []ReversalRow
}

// Decide refuses a day after tomorrow and one before a row's own.
func (c ReverseRows) Decide(b Bulk) ([]event.Event[Bulk], error) {
	switch {
	case b.Posted != 0:
		return nil, errRowsExist
	case b.Abandoned:
		return nil, ErrOvertaken
	case c.Date > c.Today+1:
		return nil, fault.Fields(fault.Field{Field: "date", Message: "must not be after tomorrow"})
	case c.Date < c.Latest:
		return nil, fault.Fields(fault.Field{Field: "date", Message: "must not be before the date of the row"})
	}
	bytes := 0
	for _, r := range c.Rows {
		bytes += size(r.In, r.Out, "")
	}
	if bytes > mostBytes {
		return nil, errTooLarge
	}
	return []event.Event[Bulk]{RowsReversed{Account: c.Account, Date: c.Date, Rows: c.Rows}}, nil
}

// AbandonRows abandons a bulk that has not decided.
type AbandonRows struct{}

// Decide returns no event for a bulk that has decided, or is abandoned already.
func (AbandonRows) Decide(b Bulk) ([]event.Event[Bulk], error) {
	if b.Posted != 0 || b.Abandoned {
		return nil, nil
	}
	return []event.Event[Bulk]{RowsAbandoned{}}, nil
}
