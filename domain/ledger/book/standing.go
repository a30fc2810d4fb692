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

// ErrNoAccount reports that the account of a row is not open.
var ErrNoAccount = fault.New(fault.NotFound, "Account not found")

// CheckDates returns the error of changing rows of these dates, or nil. The account must be open and no date may be locked (CONTRACT.md
// 0.4). For a moved row, it checks the old and the new date. The error of a locked date names the field.
func (s PostingContext) CheckDates(dates ...unit.Date) error {
	if !s.AccountOpen {
		return ErrNoAccount
	}
	for _, d := range dates {
		if s.LockedThrough != nil && d <= *s.LockedThrough {
			locked := fault.Newf(fault.Conflict, "Books are locked through %s", *s.LockedThrough)
			locked.Fields = []fault.Field{{Field: "date", Message: locked.Detail}}
			return locked
		}
	}
	return nil
}

// RefusesStep returns the error of changing a row from before to after, or nil.
func (s PostingContext) RefusesStep(before, after Row) error {
	if !changes(before, after) {
		return nil
	}
	return s.CheckDates(dates(before, after)...)
}

// changes reports whether the step from before to after changes a balance. Pairing does not, nor does marking a row as reversed: the
// reversing row has the effect.
func changes(before, after Row) bool {
	before.ReversedBy, before.PairedWith = after.ReversedBy, after.PairedWith
	return before != after
}

// dates returns the dates on which a change of a row from before to after changes balances.
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
