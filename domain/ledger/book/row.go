package book

import (
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/unit"
)

// Row is what decisions about a row need, which is all of it: an edit changes a part.
type Row struct {
	Account  int64
	Date     unit.Date
	In, Out  Side
	Warnings Warnings
	Deleted  bool
	Void     bool // it stays where it is and counts nothing

	Reverses   int64 // the row that this one reverses; 0: none
	ReversedBy int64 // the row that reverses this one; 0: none
	PairedWith int64 // the row of another account that takes what this one gives, or gives what it takes; 0: none
}

// Exists reports whether the row was added and not deleted.
func (r Row) Exists() bool { return r.Account != 0 && !r.Deleted }

// Counts returns what the row counts on each side: nothing when it is void.
func (r Row) Counts() (in, out Effect) {
	if r.Void {
		return Effect{}, Effect{}
	}
	return r.In.Effect, r.Out.Effect
}

// Change is what a step made of a row, in a word.
func Change(before, after Row) string {
	switch {
	case after.Deleted:
		return "deleted"
	case !before.Exists():
		return "added"
	case after.Void && !before.Void:
		return "voided"
	case after.ReversedBy != 0 && before.ReversedBy == 0:
		return "reversed"
	case after.PairedWith != 0 && before.PairedWith == 0:
		return "paired"
	case after.PairedWith == 0 && before.PairedWith != 0:
		return "unpaired"
	default:
		return "edited"
	}
}

// RowAdded posts a row.
type RowAdded struct {
	Account  int64     `json:"account"`
	Date     unit.Date `json:"date"`
	In       Side      `json:"in_entries,omitzero"`
	Out      Side      `json:"out_entries,omitzero"`
	Warnings Warnings  `json:"warnings,omitempty"`
	// Reverses is the row that this one reverses, absent for a row of its own right.
	Reverses int64 `json:"reverses,omitempty"`
}

// RowEdited changes what is present: the date (the row moves), a whole side, all warnings.
type RowEdited struct {
	Date     *unit.Date `json:"date,omitempty"`
	In       *Side      `json:"in_entries,omitempty"`
	Out      *Side      `json:"out_entries,omitempty"`
	Warnings *Warnings  `json:"warnings,omitempty"`
}

// RowDeleted ends the row.
type RowDeleted struct{}

// Evolve begins the row, unless it exists.
func (e RowAdded) Evolve(r Row) Row {
	if r.Exists() {
		return r
	}
	return Row{Account: e.Account, Date: e.Date, In: e.In, Out: e.Out, Warnings: e.Warnings, Reverses: e.Reverses}
}

// PostsTo returns the account.
func (e RowAdded) PostsTo() int64 { return e.Account }

// Evolve replaces what is present.
func (e RowEdited) Evolve(r Row) Row {
	if !r.Exists() {
		return r
	}
	if e.Date != nil {
		r.Date = *e.Date
	}
	if e.In != nil {
		r.In = *e.In
	}
	if e.Out != nil {
		r.Out = *e.Out
	}
	if e.Warnings != nil {
		r.Warnings = *e.Warnings
	}
	return r
}

// Evolve ends the row.
func (RowDeleted) Evolve(r Row) Row { r.Deleted = r.Account != 0; return r }

// RowInput is what somebody wants a row to be. On an edit, what is absent stays.
type RowInput struct {
	Date    *unit.Date
	In, Out SideInput
}

// check returns what is wrong with a row beside what is wrong with its entries, and then that.
func (r Row) check(today unit.Date, entries []fault.Field) (wrong []fault.Field) {
	if r.Date > today+1 {
		wrong = append(wrong, fault.Field{Field: "date", Message: "must not be after tomorrow"})
	}
	if len(entries) == 0 && r.In.IsZero() && r.Out.IsZero() {
		wrong = append(wrong, fault.Field{Field: "in_entries", Message: "at least one entry is needed, on either side"})
	}
	if size(r.In, r.Out, r.Warnings) > maxBytes {
		wrong = append(wrong, fault.Field{Field: "in_entries", Message: "both sides together have more than 1,000,000 bytes"})
	}
	return append(wrong, entries...)
}

// An event has at most 1,000,000 bytes (CONTRACT.md L10), of which a row takes rowBytes besides its entries. The rest of it, such as
// the reason, takes less than is left.
const (
	maxBytes = 990_000
	rowBytes = 200
)

// size returns how many bytes a row takes of an event.
func size(in, out Side, w Warnings) int { return len(in.text) + len(out.text) + len(w) + rowBytes }

// errTooLarge is the refusal of rows that do not fit into one transaction.
var errTooLarge = fault.Fields(fault.Field{Field: "rows", Message: "more than 1,000,000 bytes together: send fewer at once"})

// AddRow posts a row to an account. Today bounds the date.
type AddRow struct {
	Ledger  *Ledger
	Account int64
	Today   unit.Date
	RowInput
}

// Decide refuses rows without entries, entries that the ledger refuses, and dates after tomorrow.
func (c AddRow) Decide(r Row) ([]event.Event[Row], error) {
	if r.Account != 0 {
		return nil, fault.New(fault.Conflict, "Row exists already")
	}
	row, err := c.Row()
	if err != nil {
		return nil, err
	}
	return []event.Event[Row]{row}, nil
}

// Row returns the row, or what is wrong with it.
func (c AddRow) Row() (RowAdded, error) {
	row, wrong := c.row()
	if len(wrong) > 0 {
		return row, fault.Fields(wrong...)
	}
	return row, nil
}

func (c AddRow) row() (RowAdded, []fault.Field) {
	row, wrong := c.Ledger.decide(Row{}, c.RowInput)
	return RowAdded{Account: c.Account, Date: row.Date, In: row.In, Out: row.Out, Warnings: row.Warnings}, row.check(c.Today, wrong)
}

// EditRow changes what is asked for of a row of the account. Today bounds the date.
type EditRow struct {
	Ledger  *Ledger
	Account int64
	Today   unit.Date
	RowInput
}

// Decide returns the ledger's NoRow where the account has no such row, and a conflict where it is not
// [Row.Editable]. The rest is as in [AddRow].
func (c EditRow) Decide(r Row) ([]event.Event[Row], error) {
	if !r.Exists() || r.Account != c.Account {
		return nil, c.Ledger.NoRow
	}
	after, wrong := c.Ledger.decide(r, c.RowInput)
	if len(wrong) == 0 && after == r {
		return nil, nil
	}
	if err := r.Editable(); err != nil {
		return nil, err
	}
	if wrong = after.check(c.Today, wrong); len(wrong) > 0 {
		return nil, fault.Fields(wrong...)
	}
	return []event.Event[Row]{edited(r, after)}, nil
}

// edited returns the event that makes one row of another.
func edited(before, after Row) (e RowEdited) {
	if after.Date != before.Date {
		e.Date = &after.Date
	}
	if after.In != before.In {
		e.In = &after.In
	}
	if after.Out != before.Out {
		e.Out = &after.Out
	}
	if after.Warnings != before.Warnings {
		e.Warnings = &after.Warnings
	}
	return e
}

// DeleteRow ends a row of the account; of any account where that is 0.
type DeleteRow struct {
	Ledger  *Ledger
	Account int64
}

// Decide returns the ledger's NoRow where the account has no such row, and a conflict where it is not
// [Row.Editable].
func (c DeleteRow) Decide(r Row) ([]event.Event[Row], error) {
	if !r.Exists() || c.Account != 0 && r.Account != c.Account {
		return nil, c.Ledger.NoRow
	}
	if err := r.Editable(); err != nil {
		return nil, err
	}
	return []event.Event[Row]{RowDeleted{}}, nil
}

// EmptySide removes all entries of a row's one side, and the row when it has no other (CONTRACT.md G23).
type EmptySide struct {
	Ledger *Ledger
	Out    bool // the OUT side, else the IN side
}

// Decide returns NotFound where there is no such row, or the side is empty already (CONTRACT.md L12).
func (c EmptySide) Decide(r Row) ([]event.Event[Row], error) {
	if !r.Exists() {
		return nil, c.Ledger.NoRow
	}
	side, name, asked := r.In, "in", RowInput{In: c.Ledger.in.none}
	if c.Out {
		side, name, asked = r.Out, "out", RowInput{Out: c.Ledger.out.none}
	}
	if side.IsZero() {
		return nil, fault.Newf(fault.NotFound, "Row has no %s entries", name)
	}
	if err := r.Editable(); err != nil {
		return nil, err
	}
	after, wrong := c.Ledger.decide(r, asked)
	switch {
	case len(wrong) > 0:
		return nil, fault.Fields(wrong...)
	case after.In.IsZero() && after.Out.IsZero():
		return []event.Event[Row]{RowDeleted{}}, nil
	default:
		return []event.Event[Row]{edited(r, after)}, nil
	}
}
