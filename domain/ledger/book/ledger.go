package book

import "bahi/domain/event"

// Ledger is one of the five: its name in paths, its kinds of streams, and what it answers when
// something is not there.
type Ledger[L any, In, Out Entry] struct {
	Name      string
	Accounts  *event.Kind[Account[L]]
	Rows      *event.Kind[Row[In, Out]]
	Bulks     *event.Kind[Bulk[In, Out]]
	NoAccount error
	NoRow     error

	// Mirror answers the sides of the row that takes another one back: what came IN goes OUT, and the
	// other way round. It counts what the other counts, on the other side.
	Mirror func(in []In, out []Out) ([]In, []Out)
}

// Exchange is the Mirror of a ledger that has one sort of entry.
func Exchange[E Entry](in, out []E) (newIn, newOut []E) { return out, in }
