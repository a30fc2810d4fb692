package book

import (
	"encoding/json"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/unit"
)

// Row is the state of a row. Decisions require all of it, because an edit changes only a part.
type Row struct {
	Account  int64
	Date     unit.Date
	In, Out  Side
	Warnings Warnings
	Deleted  bool
	Void     bool // the row stays in the ledger and has no effect

	Reverses   int64 // the row that this one reverses; 0: none
	ReversedBy int64 // the row that reverses this one; 0: none
	PairedWith int64 // the row of another account with the opposite value; 0: none
}

// LedgerRow is a row with its ledger and its id.
type LedgerRow struct {
	Ledger *Ledger
	ID     int64 // 0 in a dry run
	Row
}

// Exists reports whether the row was added and not deleted.
func (r Row) Exists() bool { return r.Account != 0 && !r.Deleted }

// Counts returns the effects of the two sides. They are zero for a void row.
func (r Row) Counts() (in, out Effect) {
	if r.Void {
		return Effect{}, Effect{}
	}
	return r.In.Effect, r.Out.Effect
}

// Change returns the name of the change from before to after.
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

// RowAdded records a new row.
type RowAdded struct {
	Account  int64     `json:"account"`
	Date     unit.Date `json:"date"`
	In       Side      `json:"in_entries,omitzero"`
	Out      Side      `json:"out_entries,omitzero"`
	Warnings Warnings  `json:"warnings,omitempty"`
	// Reverses is the row that this one reverses, absent if it is no reversal.
	Reverses int64 `json:"reverses,omitempty"`
}

// RowEdited records the changed parts: the date, whole sides, or all warnings.
type RowEdited struct {
	Date     *unit.Date `json:"date,omitempty"`
	In       *Side      `json:"in_entries,omitempty"`
	Out      *Side      `json:"out_entries,omitempty"`
	Warnings *Warnings  `json:"warnings,omitempty"`
}

// RowDeleted records the deletion of the row.
type RowDeleted struct{}

// Evolve creates the row unless it exists.
func (e RowAdded) Evolve(r Row) Row {
	if r.Exists() {
		return r
	}
	return Row{Account: e.Account, Date: e.Date, In: e.In, Out: e.Out, Warnings: e.Warnings, Reverses: e.Reverses}
}

// PostsTo returns the account.
func (e RowAdded) PostsTo() int64 { return e.Account }

// Evolve replaces the parts that are present.
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

// Evolve marks the row as deleted.
func (RowDeleted) Evolve(r Row) Row { r.Deleted = r.Account != 0; return r }

// RowInput is the requested content of a row. An edit leaves absent parts unchanged.
type RowInput struct {
	Date    *unit.Date
	In, Out SideInput
}

// check returns the faults of the row, followed by those of its entries.
func (r Row) check(today unit.Date, entries []fault.Field) (wrong []fault.Field) {
	if r.Date > today+1 {
		wrong = append(wrong, fault.Field{Field: "date", Message: "must not be after tomorrow"})
	}
	if len(entries) == 0 && r.In.IsZero() && r.Out.IsZero() {
		wrong = append(wrong, fault.Field{Field: "in_entries", Message: "at least one entry is needed, on either side"})
	}
	if len(r.In.text)+len(r.Out.text)+len(r.Warnings)+metaBytes+longestReason > maxBytes {
		wrong = append(wrong, fault.Field{Field: "in_entries", Message: "both sides together have more than 1,000,000 bytes"})
	}
	return append(wrong, entries...)
}

// An event has at most 1,000,000 bytes (CONTRACT.md L10). metaBytes of them are for what is not entries, warnings or the reason. The reason
// has up to 500 characters. Of those, JSON escapes some, such as <, in six bytes.
const (
	metaBytes     = 700
	longestReason = 3_000
	maxBytes      = 1_000_000
)

// bytesBeside returns how many bytes of an event are at most for what is not entries or warnings.
func bytesBeside(reason string) int {
	text, _ := json.Marshal(reason) //nolint:errchkjson // a string
	return metaBytes + len(text)
}

// MaxBytes is the limit of the sum of [RowAdded.Bytes] over the rows of one transaction (CONTRACT.md R18).
const MaxBytes = 4_000_000

// Bytes returns how many bytes of a transaction with a reason the event takes at most.
func (e RowAdded) Bytes(reason string) int {
	return len(e.In.text) + len(e.Out.text) + len(e.Warnings) + bytesBeside(reason)
}

// errTooLarge reports rows that do not fit into one transaction.
var errTooLarge = fault.Wrong("rows", "more than 4,000,000 bytes together: send fewer at once")

// AddRow posts a row to an account. Its date may be at most one day after Today.
type AddRow struct {
	Ledger  *Ledger
	Account int64
	Today   unit.Date
	RowInput
}

// Decide refuses rows without entries, invalid entries, and dates after tomorrow.
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

// Row returns the row, or its faults.
func (c AddRow) Row() (RowAdded, error) {
	row, wrong := c.row()
	return row, fault.Found(wrong)
}

func (c AddRow) row() (RowAdded, []fault.Field) {
	row, wrong := c.Ledger.decide(Row{}, c.RowInput)
	return RowAdded{Account: c.Account, Date: row.Date, In: row.In, Out: row.Out, Warnings: row.Warnings}, row.check(c.Today, wrong)
}

// EditRow changes parts of a row of the account. Its date may be at most one day after Today.
type EditRow struct {
	Ledger  *Ledger
	Account int64
	Today   unit.Date
	RowInput
}

// Check returns the faults that do not depend on the row.
func (c EditRow) Check() error {
	after, wrong := c.Ledger.decide(Row{}, c.RowInput)
	if c.In.entries == nil || c.Out.entries == nil { // the row may have entries on the other side
		after.In = StoredSide("{}", Effect{})
	}
	return fault.Found(after.check(c.Today, wrong))
}

// Decide returns the ledger's NoRow if the account has no such row, and a conflict if the row is not [Row.Editable].
// Otherwise it refuses the same input as [AddRow].
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

// edited returns the event that changes one row into another.
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

// DeleteRow deletes a row of the account. Account 0 means any account.
type DeleteRow struct {
	Ledger  *Ledger
	Account int64
}

// Decide returns the ledger's NoRow if the account has no such row, and a conflict if the row is not [Row.Editable].
func (c DeleteRow) Decide(r Row) ([]event.Event[Row], error) {
	if !r.Exists() || c.Account != 0 && r.Account != c.Account {
		return nil, c.Ledger.NoRow
	}
	if err := r.Editable(); err != nil {
		return nil, err
	}
	return []event.Event[Row]{RowDeleted{}}, nil
}

// EmptySide removes all entries of one side of a row. It deletes the row if the other side is empty (CONTRACT.md G23).
type EmptySide struct {
	Ledger *Ledger
	Out    bool // the OUT side, else the IN side
}

// Decide returns NotFound if the row does not exist or the side is already empty (CONTRACT.md L12).
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
