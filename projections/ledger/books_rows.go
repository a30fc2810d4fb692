package ledger

import (
	"bahi/domain/event"
	"bahi/domain/ledger/book"
	"bahi/domain/unit"
)

func (f *books) foldBulk(r *event.Recorded[any], rows []book.RowChanged) error {
	if len(rows) == 0 {
		return nil
	}
	first, err := numbered(r)
	if err != nil {
		return err
	}
	dates := make([]unit.Date, len(rows))
	for i, row := range rows {
		dates[i] = *row.Date
	}
	if refusal := f.standing(rows[0].Account, r).Refuses(dates...); refusal != nil || !f.holds(first, rows) {
		return nil //nolint:nilerr // a bulk that may not stand is void, all of it
	}
	category, _ := event.SplitStream(r.Stream)
	b := bulk{id: first, ledger: ledgerOf[category], position: int64(r.Position), followUps: len(rows)}
	for i, row := range rows {
		f.foldRow(r, first+int64(i), first, row, 0)
		if row.Reverses != 0 {
			f.reverse(r, row.Reverses, first+int64(i))
			b.followUps++
		}
	}
	f.bulks = append(f.bulks, b)
	return nil
}

// holds says whether the rows that a bulk takes back stand as it takes them back: announced as the
// bulk's, once, and counting on each side what it counts on the other.
func (f *books) holds(bulk int64, rows []book.RowChanged) bool {
	seen := map[int64]bool{}
	for _, back := range rows {
		if back.Reverses == 0 {
			continue
		}
		v := f.current[back.Reverses]
		if seen[back.Reverses] || v == nil || v.deleted || v.account != back.Account || v.reversal != bulk || v.inSum != back.Out.Effect || v.outSum != back.In.Effect {
			return false
		}
		seen[back.Reverses] = true
	}
	return true
}

// reverse begins the version of a row that another one takes back.
func (f *books) reverse(r *event.Recorded[any], row, by int64) {
	before := f.current[row]
	after := before.next(r)
	after.reversedBy, after.revision = by, before.revision // its own stream is told later
	f.succeed(before, after)
}

// carryOut counts an event that only carries out what its bulk has decided.
func (f *books) carryOut(r *event.Recorded[any], row int64, c book.RowChanged) {
	if c.Op != book.Add {
		if f.current[row] == nil {
			return // it is of an account that falls to another part
		}
		f.pass(f.current[row], r, r.Revision)
	}
	f.filled[int64(r.Meta.Of)]++
}

func (f *books) foldRow(r *event.Recorded[any], row, bulk int64, c book.RowChanged, revision int64) {
	before := f.current[row]
	if before != nil && before.deleted {
		before = nil
	}
	var (
		after *version
		dates []unit.Date
	)
	switch {
	case c.Op == book.Add && before == nil:
		after = &version{row: row, account: c.Account, bulk: bulk, reverses: c.Reverses}
		after.begin(r)
	case (c.Op == book.Edit || c.Op == book.Delete || c.Op == book.Void) && before != nil && !before.settled():
		after = before.next(r)
		after.deleted = c.Op == book.Delete
		if c.Op == book.Void {
			after.void, after.inSum, after.outSum = true, book.Effect{}, book.Effect{}
		}
		dates = append(dates, before.date)
	default: // a note, or what follows on something void
		before.announce(c)
		f.pass(before, r, revision)
		return
	}
	after.revision = revision
	if c.Date != nil {
		after.date = *c.Date
	}
	if c.In != nil {
		after.in, after.inSum = entries(c.In), c.In.Effect
	}
	if c.Out != nil {
		after.out, after.outSum = entries(c.Out), c.Out.Effect
	}
	if f.standing(after.account, r).Refuses(append(dates, after.date)...) != nil {
		f.pass(before, r, revision)
		return
	}
	f.succeed(before, after)
	f.sums.change(before, after)
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

// begin makes the version one that an event begins.
func (v *version) begin(r *event.Recorded[any]) {
	v.from, v.to, v.stored = int64(r.Position), stillCurrent, false
	v.actor, v.reason, v.at = r.Meta.Actor, r.Meta.Reason, r.At
}

// next is the same once more, from an event on.
func (v *version) next(r *event.Recorded[any]) *version {
	after := *v
	after.begin(r)
	return &after
}

// settled says whether nobody may change the row any more; see [book.Row.Settled].
func (v *version) settled() bool {
	return v.void || v.reverses != 0 || v.reversal != 0
}

// announce notes which bulk is about to take the row back, or is no more.
func (v *version) announce(c book.RowChanged) {
	switch {
	case v == nil:
	case c.Op == book.Announce && !v.void && v.reversal == 0:
		v.reversal = c.Reversal
	case c.Op == book.Drop && v.reversal == c.Reversal && v.reversedBy == 0:
		v.reversal = 0
	}
}

// pass notes that an event of the row's own stream changed nothing: the row stands as it was, and the
// next If-Match is about the stream.
func (f *books) pass(current *version, r *event.Recorded[any], revision int64) {
	if current == nil {
		return
	}
	current.revision = revision
	f.notes = append(f.notes, note{current.row, int64(r.Position), revision})
	if current.stored {
		f.passed = append(f.passed, current)
	}
}
