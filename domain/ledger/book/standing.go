package book

import (
	"slices"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/unit"
)

// Standing is what the rules between streams look at.
type Standing struct {
	AccountOpen   bool           // opened before, not deleted, and of the event's workspace
	LockedThrough *unit.Date     // nil: nothing is locked
	LockMoved     event.Position // when it last did; 0: never
}

// ErrLockMoved refuses the deletion of an account whose rows may have been locked meanwhile.
var ErrLockMoved = fault.New(fault.Conflict, "The lock of the books was moved meanwhile, try again")

// RefusesDeletion returns why the account may not be deleted, nil if it may: none of its rows may be in a locked
// period.
func (s Standing) RefusesDeletion(c AccountDeleted) error {
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

// ErrNoAccount refuses a row whose account is not open.
var ErrNoAccount = fault.New(fault.NotFound, "Account not found")

// Refuses returns why rows of these dates may not change, nil if they may: no row
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

// RefusesStep returns why an event may not make the row after of the row before, nil if it may. An event
// that changes nothing of what the books say always may; standing is asked about the others only.
func RefusesStep(before, after Row, standing func() (Standing, error)) error {
	if !Changes(before, after) {
		return nil
	}
	if before.Exists() {
		if err := before.Editable(); err != nil {
			return err
		}
	}
	s, err := standing()
	if err != nil {
		return err
	}
	return s.Refuses(dates(before, after)...)
}

// Changes reports whether the step from before to after changes what the books say. What reversals note in a
// row's own stream does not.
func Changes(before, after Row) bool {
	before.Reserved, before.ReservedAt, before.ReversedBy = after.Reserved, after.ReservedAt, after.ReversedBy
	return before != after
}

// dates returns every date that the step from before to after touches.
func dates(before, after Row) []unit.Date {
	var dates []unit.Date
	if before.Exists() {
		dates = append(dates, before.Date)
	}
	if after.Exists() && !slices.Contains(dates, after.Date) {
		dates = append(dates, after.Date)
	}
	return dates
}
