package book

import (
	"slices"

	"bahi/domain/fault"
	"bahi/domain/unit"
)

// PostingContext has the data of other streams that the rules for rows require.
type PostingContext struct {
	AccountOpen   bool       // opened and not deleted, in the workspace
	LockedThrough *unit.Date // nil: nothing is locked
}

// ErrNoAccount refuses a row if its account is not open.
var ErrNoAccount = fault.New(fault.NotFound, "Account not found")

// CheckDates returns why rows of these dates must not change, or nil. The account must be open and no date may be locked
// (CONTRACT.md 0.4). Both dates of a moved row count.
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

// RefusesStep returns why a row must not change from before to after, or nil.
func (s PostingContext) RefusesStep(before, after Row) error {
	if !Changes(before, after) {
		return nil
	}
	return s.CheckDates(dates(before, after)...)
}

// Changes reports whether the step from before to after changes a balance. Marking a row as reversed does not, because
// the reversing row has the effect. Pairing does not either.
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
