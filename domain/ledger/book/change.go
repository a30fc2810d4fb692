package book

import (
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/unit"
)

// RowChange is a row's event of whatever ledger, for those who fold all of them.
type RowChange interface {
	RowChange() RowChanged
}

// RowOp is what an event does to its row.
type RowOp int

// The things that happen to a row.
const (
	Refuse RowOp = iota // nothing
	Add
	Edit
	Delete
	Void
	Announce // its reversal
	Drop     // its reversal, which will not be
	Reverse  // as a bulk has decided
)

// Side is one side of a row: its entries as they are answered, and what they count.
type Side struct {
	Entries any // a slice of the ledger's entry type
	Effect  Effect
}

// RowChanged is what an event does to its row. Of an edit, only what is not nil changes.
type RowChanged struct {
	Op       RowOp
	Account  int64 // of an added row
	Date     *unit.Date
	In, Out  *Side
	Reverses int64 // of an added row: the row that it takes back
	Reversal int64 // the bulk whose reversal is announced or dropped
}

// RowChange implements [RowChange].
func (e RowAdded[In, Out]) RowChange() RowChanged {
	return RowChanged{Op: Add, Account: e.Account, Date: &e.Date, In: side(e.In), Out: side(e.Out), Reverses: e.Reverses}
}

// RowChange implements [RowChange].
func (e RowEdited[In, Out]) RowChange() RowChanged {
	c := RowChanged{Op: Edit, Date: e.Date}
	if e.In != nil {
		c.In = side(*e.In)
	}
	if e.Out != nil {
		c.Out = side(*e.Out)
	}
	return c
}

// RowChange implements [RowChange].
func (RowDeleted[In, Out]) RowChange() RowChanged { return RowChanged{Op: Delete} }

// RowChange implements [RowChange].
func (RowVoided[In, Out]) RowChange() RowChanged { return RowChanged{Op: Void} }

// RowChange implements [RowChange].
func (e ReversalAnnounced[In, Out]) RowChange() RowChanged {
	return RowChanged{Op: Announce, Reversal: e.Bulk}
}

// RowChange implements [RowChange].
func (e ReversalDropped[In, Out]) RowChange() RowChanged {
	return RowChanged{Op: Drop, Reversal: e.Bulk}
}

// RowChange implements [RowChange].
func (RowReversed[In, Out]) RowChange() RowChanged { return RowChanged{Op: Reverse} }

// RowChange implements [RowChange].
func (RowRefused[In, Out]) RowChange() RowChanged { return RowChanged{Op: Refuse} }

func side[E Entry](entries []E) *Side {
	s := Side{Entries: entries}
	if entries == nil {
		s.Entries = []E{} // an empty side reads as [], not as null
	}
	for _, e := range entries {
		s.Effect = s.Effect.Plus(e.Effect())
	}
	return &s
}

// Standing is what the rules between streams look at, as it was at the position of an event.
type Standing struct {
	AccountOpen   bool           // opened before, not deleted, and of the event's workspace
	LockedThrough *unit.Date     // nil: nothing is locked
	LockMoved     event.Position // when it last did; 0: never
}

// ErrLockMoved is why the deletion of an account is void whose rows may have been locked meanwhile.
var ErrLockMoved = fault.New(fault.Conflict, "The lock of the books was moved meanwhile, try again")

// RefusesDeletion answers why the account's deletion may not stand, nil if it may: none of its rows is
// in a locked period (DESIGN.md, hard case 8).
func (s Standing) RefusesDeletion(c AccountChanged) error {
	if c.EarliestRow != nil {
		if err := s.Refuses(*c.EarliestRow); err != nil {
			return err
		}
	}
	if c.RowsAsOf != 0 && s.LockMoved > c.RowsAsOf {
		return ErrLockMoved
	}
	return nil
}

// ErrNoAccount is why a row is void whose account does not stand.
var ErrNoAccount = fault.New(fault.NotFound, "Account not found")

// Refuses answers why an event that touches rows of these dates may not stand, nil if it may: no row
// for an account that is not open, none in a locked period (CONTRACT.md 0.4; both dates of a move count).
func (s Standing) Refuses(dates ...unit.Date) error {
	if !s.AccountOpen {
		return ErrNoAccount
	}
	for _, d := range dates {
		if s.LockedThrough != nil && d <= *s.LockedThrough {
			return fault.Newf(fault.Conflict, "Books are locked through %s", *s.LockedThrough)
		}
	}
	return nil
}
