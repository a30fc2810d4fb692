package book

import (
	"errors"
	"fmt"
	"slices"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/unit"
)

// maxBulk is how many rows one request may post (CONTRACT.md 0.4).
const maxBulk = 1000

// Bulk is a set of rows posted to one account, all or none. Its stream is named after the id of its
// first row; the ids of the others follow without a gap. Its one event is decisive: projections fold it. The
// events that then fill the rows' own streams only carry it out.
type Bulk struct {
	Posted    event.Position // 0: there is no such bulk
	Account   int64
	Rows      []BulkRow
	Reverses  []int64 // the rows that its rows reverse, one each; nil: it is no reversal
	Abandoned bool    // it will never decide
}

// BulkRow is one row of a bulk.
type BulkRow struct {
	Date     unit.Date `json:"date"`
	In       Side      `json:"in_entries,omitzero"`
	Out      Side      `json:"out_entries,omitzero"`
	Warnings Warnings  `json:"warnings,omitempty"`
}

// RowsPosted posts rows, all or none.
type RowsPosted struct {
	Account int64     `json:"account"`
	Rows    []BulkRow `json:"rows"`
}

// EvolveAt begins the bulk.
func (e RowsPosted) EvolveAt(_ Bulk, at event.Position) Bulk {
	return Bulk{Posted: at, Account: e.Account, Rows: e.Rows}
}

// Evolve is EvolveAt for folds without positions.
func (e RowsPosted) Evolve(b Bulk) Bulk { return e.EvolveAt(b, 1) }

// PostsTo returns the account.
func (e RowsPosted) PostsTo() int64 { return e.Account }

// Dates returns every date that the bulk touches, for the rules of [Standing].
func (b Bulk) Dates() []unit.Date {
	dates := make([]unit.Date, len(b.Rows))
	for i, r := range b.Rows {
		dates[i] = r.Date
	}
	return dates
}

// RefusedBy returns why the bulk may not be posted, nil if it may. Where rows are in a locked period it names each.
func (b Bulk) RefusedBy(s Standing) error {
	err := s.Refuses(b.Dates()...)
	refused, ok := errors.AsType[*fault.Error](err)
	if !ok || refused.Kind != fault.Conflict || b.Reverses != nil { // the rows of a reversal have one date, of the request
		return err
	}
	named := *refused
	for i, r := range b.Rows {
		if s.Refuses(r.Date) != nil {
			named.Fields = append(named.Fields, fault.Field{Field: fmt.Sprintf("rows[%d].date", i), Message: refused.Detail})
		}
	}
	return &named
}

// Added returns the event of the i-th row's own stream.
func (b Bulk) Added(i int) RowAdded {
	r := b.Rows[i]
	e := RowAdded{Account: b.Account, Date: r.Date, In: r.In, Out: r.Out, Warnings: r.Warnings}
	if b.Reverses != nil {
		e.Reverses = b.Reverses[i]
	}
	return e
}

// NotReserved returns why a reversal may not be posted, nil if it may: each row that it reverses must be [Row.ReservedFor] it,
// once. First is the bulk's id, at its position; row returns a row as it is there.
func (b Bulk) NotReserved(first int64, at event.Position, row func(id int64) (Row, error)) error {
	for i, id := range b.Reverses {
		r, err := row(id)
		if err != nil {
			return err
		}
		if slices.Contains(b.Reverses[:i], id) || !r.ReservedFor(first, b.Account, b.Rows[i], at) {
			return ErrNotReserved
		}
	}
	return nil
}

var errRowsExist = fault.New(fault.Conflict, "Rows exist already")

// PostRows posts rows to an account, all or none. Today bounds the dates.
type PostRows struct {
	Ledger  *Ledger
	Account int64
	Today   unit.Date
	Rows    []Asked
}

// Decide refuses the whole bulk for what is wrong with any of its rows, and names each.
func (c PostRows) Decide(b Bulk) ([]event.Event[Bulk], error) {
	switch {
	case b.Posted != 0:
		return nil, errRowsExist
	case len(c.Rows) == 0:
		return nil, fault.Fields(fault.Field{Field: "rows", Message: "at least one row is needed"})
	case len(c.Rows) > maxBulk:
		return nil, fault.Fields(fault.Field{Field: "rows", Message: fmt.Sprintf("at most %d rows", maxBulk)})
	}
	var (
		wrong []fault.Field
		rows  = make([]BulkRow, len(c.Rows))
		bytes int
	)
	for i, asked := range c.Rows {
		row, faults := AddRow{Ledger: c.Ledger, Today: c.Today, Asked: asked}.row()
		for _, f := range faults {
			wrong = append(wrong, fault.Field{Field: fmt.Sprintf("rows[%d].%s", i, f.Field), Message: f.Message})
		}
		rows[i] = BulkRow{Date: row.Date, In: row.In, Out: row.Out, Warnings: row.Warnings}
		bytes += size(row.In, row.Out, row.Warnings)
	}
	switch {
	case len(wrong) > 0:
		return nil, fault.Fields(wrong...)
	case bytes > mostBytes:
		return nil, errTooLarge
	}
	return []event.Event[Bulk]{RowsPosted{Account: c.Account, Rows: rows}}, nil
}
