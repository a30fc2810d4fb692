package ledgerproj

import (
	"bahi/domain/event"
	"bahi/domain/ledger/book"
)

// foldRow applies an event of a row.
func (f *books) foldRow(r *event.Recorded[any], id int64, e event.Event[book.Row]) {
	before := f.current[id]
	if _, added := e.(book.RowAdded); before == nil && !added {
		return // the row's account belongs to another partition
	}
	after := &version{row: id, from: int64(r.Position), to: stillCurrent, revision: r.Revision, actor: r.Meta.Actor, reason: r.Meta.Reason,
		at: r.At}
	if before == nil {
		after.Row = e.Evolve(book.Row{})
		after.loss = after.Lost()
		if r := f.current[after.Reverses]; r != nil {
			after.loss -= r.Lost() // the wastage of a row and its reversal cancel each other
		}
	} else {
		after.Row = e.Evolve(before.Row)
		after.loss = before.loss + after.Lost() - before.Lost()
		before.to = after.from
		if before.stored {
			f.ended = append(f.ended, before)
		}
	}
	f.current[id] = after
	f.versions = append(f.versions, after)
	f.sums.change(before, after)
}
