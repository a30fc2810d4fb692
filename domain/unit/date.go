package unit

import (
	"errors"
	"strconv"
	"time"
)

// Date is a calendar day, counted from 1970-01-01. Its JSON is "2025-03-31".
type Date int32

// The range of dates in the books. Years have four digits.
const (
	firstYear = 1900
	lastYear  = 2199
)

var errDate = errors.New("expected a date such as 2025-03-31, from 1900 to 2199")

// ParseDate parses YYYY-MM-DD.
func ParseDate(text string) (Date, error) {
	if len(text) != len(time.DateOnly) || text[4] != '-' || text[7] != '-' {
		return 0, errDate
	}
	year, err1 := strconv.ParseUint(text[:4], 10, 16)
	month, err2 := strconv.ParseUint(text[5:7], 10, 8)
	day, err3 := strconv.ParseUint(text[8:], 10, 8)
	if err1 != nil || err2 != nil || err3 != nil || year < firstYear || year > lastYear || month < 1 || month > 12 {
		return 0, errDate
	}
	t := time.Date(int(year), time.Month(month), int(day), 0, 0, 0, 0, time.UTC)
	if t.Day() != int(day) { // a 31st in a shorter month
		return 0, errDate
	}
	return DateOf(t), nil
}

// DateOf returns the day of t in t's own zone.
func DateOf(t time.Time) Date {
	y, m, d := t.Date()
	const day = 24 * 60 * 60
	s := time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix()
	if s < 0 {
		return Date((s - day + 1) / day)
	}
	return Date(s / day)
}

// Time returns midnight of the day in UTC.
func (d Date) Time() time.Time { return time.Unix(int64(d)*24*60*60, 0).UTC() }

func (d Date) String() string { return string(d.append(nil)) }

// MarshalText returns YYYY-MM-DD.
func (d Date) MarshalText() ([]byte, error) { return d.append(nil), nil }

// UnmarshalText parses YYYY-MM-DD.
func (d *Date) UnmarshalText(text []byte) error {
	parsed, err := ParseDate(string(text))
	if err == nil {
		*d = parsed
	}
	return err
}

func (d Date) append(b []byte) []byte { return d.Time().AppendFormat(b, time.DateOnly) }
