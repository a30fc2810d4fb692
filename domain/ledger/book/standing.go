package book

import (
	"slices"

	"bahi/domain/fault"
	"bahi/domain/unit"
)

// PostingContext is what the rules between streams look at.
type PostingContext struct {
	AccountOpen   bool       // opened and not deleted, in the workspace
	LockedThrough *unit.Date // nil: nothing is locked
}

// ErrNoAccount refuses a row whose account is not open.
var ErrNoAccount = fault.New(fault.NotFound, "Account not found")

// CheckDates returns why rows of these dates may not change, nil if they may: no row
// for an account that is not open, none in a locked period (CONTRACT.md 0.4; both dates of a move count).
func (s PostingContext) CheckDates(dates ...unit.Date) error {
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

// RefusesStep returns why a row may not become another one, nil if it may.
func (s PostingContext) RefusesStep(before, after Row) error {
	if !Changes(before, after) {
		return nil
	}
	return s.CheckDates(dates(before, after)...)
}

// Changes reports whether the step from before to after changes what the books count. A reversal does not: the row that reverses counts.
// Nor does a pairing.
func Changes(before, after Row) bool {
	before.ReversedBy, before.PairedWith = after.ReversedBy, after.PairedWith
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
