package book

import (
	"fmt"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/unit"
)

// maxBulk is how many rows one request may post (CONTRACT.md 0.4).
const maxBulk = 1000

// Bulk is a set of rows posted to one account, all or none. Its stream is named after the id of its
// first row; the others follow without a gap. Its one event is decisive: projections fold it, and the
// events that then fill the rows' own streams only carry it out.
type Bulk[In, Out Entry] struct {
	Posted   event.Position // 0: there is no such bulk
	Account  int64
	Rows     []BulkRow[In, Out]
	Reverses []int64 // the rows that its rows take back, one each; nil: it is no reversal
	Forsaken bool    // its id was given to a reversal that will not be
}

// BulkRow is one row of a bulk.
type BulkRow[In, Out Entry] struct {
	Date unit.Date `json:"date"`
	In   []In      `json:"in_entries,omitempty"`
	Out  []Out     `json:"out_entries,omitempty"`
}

// RowsPosted posts rows, all or none.
type RowsPosted[In, Out Entry] struct {
	Account int64              `json:"account"`
	Rows    []BulkRow[In, Out] `json:"rows"`
}

// RowsRefused tells that the bulk lost a race and never held.
type RowsRefused[In, Out Entry] struct {
	Position event.Position `json:"position"`
	Why      string         `json:"why"`
}

// EvolveAt begins the bulk.
func (e RowsPosted[In, Out]) EvolveAt(_ Bulk[In, Out], at event.Position) Bulk[In, Out] {
	return Bulk[In, Out]{Posted: at, Account: e.Account, Rows: e.Rows}
}

// Evolve serves those who do not ask for positions.
func (e RowsPosted[In, Out]) Evolve(b Bulk[In, Out]) Bulk[In, Out] { return e.EvolveAt(b, 1) }

// Evolve changes nothing: what was refused was void already.
func (RowsRefused[In, Out]) Evolve(b Bulk[In, Out]) Bulk[In, Out] { return b }

// Dates answers every date that the bulk touches, for the rules of [Standing].
func (b Bulk[In, Out]) Dates() []unit.Date {
	dates := make([]unit.Date, len(b.Rows))
	for i, r := range b.Rows {
		dates[i] = r.Date
	}
	return dates
}

// Added is the event of the i-th row's own stream.
func (b Bulk[In, Out]) Added(i int) RowAdded[In, Out] {
	r := b.Rows[i]
	e := RowAdded[In, Out]{Account: b.Account, Date: r.Date, In: r.In, Out: r.Out}
	if b.Reverses != nil {
		e.Reverses = b.Reverses[i]
	}
	return e
}

// BulkChange is a bulk's event of whatever ledger, for those who fold all of them.
type BulkChange interface {
	// BulkChange answers the new rows, whose ids follow one another from the bulk's own. A refusal has none.
	BulkChange() []RowChanged
}

// BulkChange implements [BulkChange].
func (e RowsPosted[In, Out]) BulkChange() []RowChanged {
	return e.EvolveAt(Bulk[In, Out]{}, 0).changes()
}

func (b Bulk[In, Out]) changes() []RowChanged {
	changes := make([]RowChanged, len(b.Rows))
	for i := range b.Rows {
		changes[i] = b.Added(i).RowChange()
	}
	return changes
}

// BulkChange implements [BulkChange].
func (RowsRefused[In, Out]) BulkChange() []RowChanged { return nil }

var errRowsExist = fault.New(fault.Conflict, "Rows exist already")

// PostRows posts rows to an account, all or none. Today bounds the dates.
type PostRows[In, Out Entry] struct {
	Account int64              `json:"-"`
	Today   unit.Date          `json:"-"`
	Rows    []BulkRow[In, Out] `json:"rows"`
}

// Decide refuses the whole bulk for what is wrong with any of its rows, and names each.
func (c PostRows[In, Out]) Decide(b Bulk[In, Out]) ([]event.Event[Bulk[In, Out]], error) {
	switch {
	case b.Posted != 0:
		return nil, errRowsExist
	case len(c.Rows) == 0:
		return nil, fault.Fields(fault.Field{Field: "rows", Message: "at least one row is needed"})
	case len(c.Rows) > maxBulk:
		return nil, fault.Fields(fault.Field{Field: "rows", Message: fmt.Sprintf("at most %d rows", maxBulk)})
	}
	var wrong []fault.Field
	for i, r := range c.Rows {
		add := AddRow[In, Out]{Today: c.Today, Date: r.Date, In: r.In, Out: r.Out}
		wrong = append(wrong, add.check(fmt.Sprintf("rows[%d].", i))...)
	}
	if len(wrong) > 0 {
		return nil, fault.Fields(wrong...)
	}
	return []event.Event[Bulk[In, Out]]{RowsPosted[In, Out]{Account: c.Account, Rows: c.Rows}}, nil
}
