package book

import (
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/unit"
)

// A row is taken back by another one that mirrors it: what came IN goes OUT, on a day of its own. So what
// was locked stays as it was, and the books say who corrected what, and when. (A deletion takes a row out
// of the books, and a void one counts nothing from its own day on; neither is possible once that day is
// locked.)
//
// Rows are reversed in groups, all or none, and one row is a group of one. The rows that take them back
// are a [Bulk] of their own, whose one event [RowsReversed] is decisive. It changes rows that have streams
// of their own, though, which go on meanwhile; and whoever looks at one of those has to find out about the
// bulk. Therefore each row's stream first gets a [ReversalAnnounced] that names the bulk. From there on the
// row's own events stand still, until the bulk has decided, or is [RowsForsaken] and never will. Either is
// the first event of the bulk's stream, so that only one can be. What came of it is then noted in the rows'
// streams: [RowReversed] or [ReversalDropped]. Whoever needs a row whose reversal is announced carries on
// with what is left to do, or forsakes the bulk.
//
// Turned down: an event in each row's own stream that reverses it at once, since nothing joins several of
// them; and a decisive event without announcements, since an edit could then not know of it without
// reading what may be late.

// ErrReversing answers a change of a row whose reversal is announced and not decided.
var ErrReversing = fault.New(fault.Conflict, "The row is being reversed, try again")

// ErrForsaken answers a reversal that somebody else's change has overtaken.
var ErrForsaken = fault.New(fault.Conflict, "A row was changed meanwhile, try again")

// ErrVoid answers a change of a row that is void.
var ErrVoid = fault.New(fault.Conflict, "The row is void and stays as it is")

// ErrNotHeld is why a reversal is void whose rows did not stand as it takes them back.
var ErrNotHeld = fault.New(fault.Conflict, "A row does not stand as it is to be reversed")

// Settled answers why nobody may edit, move, delete or void the row any more, nil if they may. What was
// reversed stays as it was reversed, what reverses as it reverses, and what is void stays void.
func (r Row[In, Out]) Settled() error {
	switch {
	case r.ReversedBy != 0:
		return fault.Newf(fault.Conflict, "The row is reversed by row %d and stays as it is", r.ReversedBy)
	case r.Reversal != 0:
		return ErrReversing
	case r.Reverses != 0:
		return fault.Newf(fault.Conflict, "The row reverses row %d and stays as it is; it can be reversed itself", r.Reverses)
	case r.Void:
		return ErrVoid
	default:
		return nil
	}
}

// Held says whether the row stands as the bulk takes it back at this position: the bulk's reversal of it
// was announced, and it counts on each side what the bulk counts on the other.
func (r Row[In, Out]) Held(bulk, account int64, back BulkRow[In, Out], at event.Position) bool {
	return r.Exists() && r.Account == account && r.Reversal == bulk && r.Announced < at &&
		side(r.In).Effect == side(back.Out).Effect && side(r.Out).Effect == side(back.In).Effect
}

// ReversalAnnounced tells that a bulk is about to take the row back. Until that is decided the row
// stands as it is.
type ReversalAnnounced[In, Out Entry] struct {
	Bulk int64 `json:"bulk"`
}

// ReversalDropped tells that the bulk will not take the row back.
type ReversalDropped[In, Out Entry] struct {
	Bulk int64 `json:"bulk"`
}

// RowReversed tells that another row takes this one back. It only carries out what the bulk has decided.
type RowReversed[In, Out Entry] struct {
	By int64 `json:"by"`
}

// RowVoided lets the row count nothing.
type RowVoided[In, Out Entry] struct{}

// EvolveAt notes the bulk, unless the row is not there, void, reversed, or another bulk's.
func (e ReversalAnnounced[In, Out]) EvolveAt(r Row[In, Out], at event.Position) Row[In, Out] {
	if r.Exists() && !r.Void && r.Reversal == 0 {
		r.Reversal, r.Announced = e.Bulk, at
	}
	return r
}

// Evolve serves those who do not ask for positions.
func (e ReversalAnnounced[In, Out]) Evolve(r Row[In, Out]) Row[In, Out] { return e.EvolveAt(r, 1) }

// Evolve lets the row go.
func (e ReversalDropped[In, Out]) Evolve(r Row[In, Out]) Row[In, Out] {
	if r.Reversal == e.Bulk && r.ReversedBy == 0 {
		r.Reversal, r.Announced = 0, 0
	}
	return r
}

// Evolve notes by which row.
func (e RowReversed[In, Out]) Evolve(r Row[In, Out]) Row[In, Out] { r.ReversedBy = e.By; return r }

// Evolve makes the row void.
func (RowVoided[In, Out]) Evolve(r Row[In, Out]) Row[In, Out] { r.Void = true; return r }

// AnnounceReversal tells a row of the account that a bulk is about to take it back.
type AnnounceReversal[In, Out Entry] struct {
	Account int64
	Bulk    int64
	Missing error
}

// Decide answers Missing for a row that does not stand or is another account's, and a conflict for one
// that is void, reversed, or about to be. A row that reverses another can be reversed itself.
func (c AnnounceReversal[In, Out]) Decide(r Row[In, Out]) ([]event.Event[Row[In, Out]], error) {
	switch {
	case !r.Exists() || r.Account != c.Account:
		return nil, c.Missing
	case r.ReversedBy != 0:
		return nil, fault.Newf(fault.Conflict, "The row is reversed by row %d already", r.ReversedBy)
	case r.Reversal != 0:
		return nil, ErrReversing
	case r.Void:
		return nil, ErrVoid
	}
	return []event.Event[Row[In, Out]]{ReversalAnnounced[In, Out]{Bulk: c.Bulk}}, nil
}

// DropReversal lets a row go whose reversal by the bulk will not be.
type DropReversal[In, Out Entry] struct {
	Bulk int64
}

// Decide decides nothing for a row that the bulk does not hold.
func (c DropReversal[In, Out]) Decide(r Row[In, Out]) ([]event.Event[Row[In, Out]], error) {
	if r.Reversal != c.Bulk || r.ReversedBy != 0 {
		return nil, nil
	}
	return []event.Event[Row[In, Out]]{ReversalDropped[In, Out](c)}, nil
}

// VoidRow lets a row of the account stay where it is and count nothing.
type VoidRow[In, Out Entry] struct {
	Account int64
	Missing error
}

// Decide answers Missing for a row that does not stand or is another account's, and a conflict for one
// that is reversed or reverses another.
func (c VoidRow[In, Out]) Decide(r Row[In, Out]) ([]event.Event[Row[In, Out]], error) {
	if !r.Exists() || r.Account != c.Account {
		return nil, c.Missing
	}
	if r.Void {
		return nil, nil
	}
	if err := r.Settled(); err != nil {
		return nil, err
	}
	return []event.Event[Row[In, Out]]{RowVoided[In, Out]{}}, nil
}

// ReversalRow takes one row back.
type ReversalRow[In, Out Entry] struct {
	Reverses int64 `json:"reverses"`
	In       []In  `json:"in_entries,omitempty"`
	Out      []Out `json:"out_entries,omitempty"`
}

// RowsReversed takes rows of an account back on a day, all or none. The rows that do so are new; their ids
// follow one another from the bulk's own.
type RowsReversed[In, Out Entry] struct {
	Account int64                  `json:"account"`
	Date    unit.Date              `json:"date"`
	Rows    []ReversalRow[In, Out] `json:"rows"`
}

// RowsForsaken tells that the bulk will never be.
type RowsForsaken[In, Out Entry] struct{}

// EvolveAt begins the bulk.
func (e RowsReversed[In, Out]) EvolveAt(_ Bulk[In, Out], at event.Position) Bulk[In, Out] {
	b := Bulk[In, Out]{
		Posted: at, Account: e.Account, Rows: make([]BulkRow[In, Out], len(e.Rows)), Reverses: make([]int64, len(e.Rows)),
	}
	for i, r := range e.Rows {
		b.Rows[i], b.Reverses[i] = BulkRow[In, Out]{Date: e.Date, In: r.In, Out: r.Out}, r.Reverses
	}
	return b
}

// Evolve serves those who do not ask for positions.
func (e RowsReversed[In, Out]) Evolve(b Bulk[In, Out]) Bulk[In, Out] { return e.EvolveAt(b, 1) }

// Evolve notes it.
func (RowsForsaken[In, Out]) Evolve(b Bulk[In, Out]) Bulk[In, Out] { b.Forsaken = true; return b }

// BulkChange implements [BulkChange].
func (e RowsReversed[In, Out]) BulkChange() []RowChanged {
	return e.EvolveAt(Bulk[In, Out]{}, 0).changes()
}

// BulkChange implements [BulkChange].
func (RowsForsaken[In, Out]) BulkChange() []RowChanged { return nil }

// ReverseRows takes rows of an account back on a day. Today bounds the day, and so does Latest, which is
// the latest day of these rows.
type ReverseRows[In, Out Entry] struct {
	Account int64
	Date    unit.Date
	Today   unit.Date
	Latest  unit.Date
	Rows    []ReversalRow[In, Out]
}

// Decide refuses a day after tomorrow and one before a row's own.
func (c ReverseRows[In, Out]) Decide(b Bulk[In, Out]) ([]event.Event[Bulk[In, Out]], error) {
	switch {
	case b.Posted != 0:
		return nil, errRowsExist
	case b.Forsaken:
		return nil, ErrForsaken
	case c.Date > c.Today+1:
		return nil, fault.Fields(fault.Field{Field: "date", Message: "must not be after tomorrow"})
	case c.Date < c.Latest:
		return nil, fault.Fields(fault.Field{Field: "date", Message: "must not be before the date of the row"})
	}
	return []event.Event[Bulk[In, Out]]{RowsReversed[In, Out]{Account: c.Account, Date: c.Date, Rows: c.Rows}}, nil
}

// ForsakeRows lets a bulk never be.
type ForsakeRows[In, Out Entry] struct{}

// Decide decides nothing for a bulk that is there, or is forsaken already.
func (ForsakeRows[In, Out]) Decide(b Bulk[In, Out]) ([]event.Event[Bulk[In, Out]], error) {
	if b.Posted != 0 || b.Forsaken {
		return nil, nil
	}
	return []event.Event[Bulk[In, Out]]{RowsForsaken[In, Out]{}}, nil
}
