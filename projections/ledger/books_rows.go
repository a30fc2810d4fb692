package ledger

import (
	"bahi/domain/event"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/khata"
)

func (f *books) foldBulk(r *event.Recorded[any], first int64, e event.Event[book.Bulk]) error {
	b := event.Evolve(book.Bulk{}, e, r.Position)
	if b.Posted == 0 {
		return nil
	}
	row := func(id int64) (book.Row, error) { return f.row(id), nil }
	if f.standing(b.Account, r).Refuses(b.Dates()...) != nil || b.NotReserved(first, r.Position, row) != nil {
		return nil //nolint:nilerr // a bulk that breaks a rule is void, all of it
	}
	for i := range b.Rows {
		added := first + int64(i)
		f.foldRow(r, added, first, b.Added(i), 0)
		if b.Reverses != nil {
			before := f.current[b.Reverses[i]]
			after := before.next(r, book.RowReversed{By: added}.Evolve(before.Row))
			after.revision = before.revision // its own stream is told later
			f.succeed(before, after)
		}
	}
	f.bulks = append(f.bulks, bulk{id: first, ledger: ledgerOf(r), account: b.Account, position: int64(r.Position), followUps: len(b.Rows) + len(b.Reverses)})
	return nil
}

// foldKhata posts the rows of a khata. Only a locked date makes all of them void, which each part of a fill knows: a row of an account that
// is not open is as if the account had been deleted just after it.
func (f *books) foldKhata(r *event.Recorded[any], number int64, e khata.Submitted) {
	if e.Refuses(f.lock(r.Meta.Workspace).through) != nil {
		return
	}
	var group *bulk
	for i, row := range e.Rows {
		a := f.accounts[row.Account]
		if !f.part.Has(row.Account) || a == nil || a.ledger != row.Ledger {
			continue
		}
		id := e.First + int64(i)
		if group == nil || group.account != row.Account {
			f.bulks = append(f.bulks, bulk{id: id, ledger: row.Ledger, account: row.Account, khata: &number, position: int64(r.Position)})
			group = &f.bulks[len(f.bulks)-1]
		}
		group.followUps++
		f.foldRow(r, id, group.id, row.Added(), 0)
	}
}

// row is a row as it is now.
func (f *books) row(id int64) book.Row {
	if v := f.current[id]; v != nil {
		return v.Row
	}
	return book.Row{}
}

// carryOut counts an event that only carries out what its bulk has decided.
func (f *books) carryOut(r *event.Recorded[any], row int64, e event.Event[book.Row]) {
	of := carried{position: int64(r.Meta.Of)}
	if added, ok := e.(book.RowAdded); ok {
		of.account = added.Account
	} else {
		if f.current[row] == nil {
			return // it is of an account that falls to another part
		}
		of.account = f.current[row].Account
		f.pass(f.current[row], r, f.current[row].Row, r.Revision)
	}
	f.filled[of]++
}

// foldRow takes an event of a row; bulk is that which it was posted in, 0 for none.
func (f *books) foldRow(r *event.Recorded[any], row, bulk int64, e event.Event[book.Row], revision int64) {
	before := f.current[row]
	var was book.Row
	if before != nil {
		was = before.Row
	}
	is := event.Evolve(was, e, r.Position)
	refused := book.RefusesStep(was, is, func() (book.Standing, error) { return f.standing(is.Account, r), nil })
	switch {
	case refused != nil:
		f.pass(before, r, was, revision)
	case !book.Changes(was, is):
		f.pass(before, r, is, revision)
	default:
		if !was.Exists() {
			before = nil
		}
		after := before.next(r, is)
		after.row, after.revision = row, revision
		if before == nil {
			after.bulk = bulk
		}
		f.succeed(before, after)
		f.sums.change(before, after)
	}
}

// succeed puts a row's new version in the place of the one before.
func (f *books) succeed(before, after *version) {
	if before != nil {
		before.to = after.from
		if before.stored {
			f.ended = append(f.ended, before)
		}
	}
	after.first = after.revision
	f.current[after.row] = after
	f.versions = append(f.versions, after)
}

// next is the version of a row that an event begins; v is the one before, nil for none.
func (v *version) next(r *event.Recorded[any], row book.Row) *version {
	after := &version{Row: row, from: int64(r.Position), to: stillCurrent, actor: r.Meta.Actor, reason: r.Meta.Reason, at: r.At}
	if v != nil {
		after.row, after.bulk = v.row, v.bulk
	}
	return after
}

// pass notes an event of the row's own stream that changed nothing of what the books say: the version goes on, and the
// next If-Match is about the stream.
func (f *books) pass(current *version, r *event.Recorded[any], row book.Row, revision int64) {
	if current == nil || !row.Exists() {
		return
	}
	current.Row, current.revision = row, revision
	f.notes = append(f.notes, note{current.row, int64(r.Position), revision})
	if current.stored {
		f.passed = append(f.passed, current)
	}
}
