package pdf

import (
	"time"

	"github.com/shopspring/decimal"

	"bahi/domain/unit"
)

// number returns an amount with Indian grouping, 12,34,567.50, and all its decimal places.
func (u Unit) number(d decimal.Decimal) string {
	if rounded := d.Round(u.Places); rounded.Equal(d) {
		return unit.Indian(rounded.StringFixed(u.Places))
	}
	return unit.Indian(d.String())
}

// words returns an amount for running text.
func (u Unit) words(d decimal.Decimal) string {
	return u.Prefix + u.number(d) + u.Suffix
}

// blank is number, but "" for zero: the books leave an empty side empty.
func (u Unit) blank(d decimal.Decimal) string {
	if d.IsZero() {
		return ""
	}
	return u.number(d)
}

func day(t time.Time) string { return t.Format("02 Jan 2006") }

// period returns words for the days of a statement.
func period(from, to time.Time) string {
	switch {
	case from.IsZero() && to.IsZero():
		return "From the first row to the last"
	case from.IsZero():
		return "From the first row to " + day(to)
	case to.IsZero():
		return "From " + day(from) + " to the last row"
	}
	return day(from) + " to " + day(to)
}
