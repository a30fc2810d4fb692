package book

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/unit"
)

// maxEntries of a side keeps the sums of one row inside 64 bits and its event small.
const maxEntries = 500

// Effect is what an entry or a row counts in each unit.
type Effect struct {
	Cash unit.Money
	Fine unit.Grams // of pure metal; the interface calls its balance "crystal"
}

// Plus adds.
func (e Effect) Plus(o Effect) Effect { return Effect{e.Cash + o.Cash, e.Fine + o.Fine} }

// Minus subtracts.
func (e Effect) Minus(o Effect) Effect { return Effect{e.Cash - o.Cash, e.Fine - o.Fine} }

// Entry is one line of a side.
type Entry interface {
	comparable
	// Effect is what the line counts, never negative.
	Effect() Effect
	// Check answers what is wrong with the line, by field.
	Check() []fault.Field
}

// Row is what decisions about a row need, which is all of it: an edit changes a part.
type Row[In, Out Entry] struct {
	Account int64
	Date    unit.Date
	In      []In
	Out     []Out
	Deleted bool
	Void    bool // it stays where it is and counts nothing

	Reverses   int64          // the row that this one takes back; 0: none
	ReversedBy int64          // the row that takes this one back; 0: none
	Reversal   int64          // the bulk that takes it back, or is about to; 0: none
	Announced  event.Position // since when it is
}

// Exists says whether the row was added and not deleted.
func (r Row[In, Out]) Exists() bool { return r.Account != 0 && !r.Deleted }

// RowAdded posts a row.
type RowAdded[In, Out Entry] struct {
	Account int64     `json:"account"`
	Date    unit.Date `json:"date"`
	In      []In      `json:"in_entries,omitempty"`
	Out     []Out     `json:"out_entries,omitempty"`
	// Reverses is the row that this one takes back, absent for a row of its own right.
	Reverses int64 `json:"reverses,omitempty"`
}

// RowEdited changes what is present: the date (the row moves), or a whole side.
type RowEdited[In, Out Entry] struct {
	Date *unit.Date `json:"date,omitempty"`
	In   *[]In      `json:"in_entries,omitempty"`
	Out  *[]Out     `json:"out_entries,omitempty"`
}

// RowDeleted ends the row.
type RowDeleted[In, Out Entry] struct{}

// RowRefused tells that the event at a position lost a race and never held.
type RowRefused[In, Out Entry] struct {
	Position event.Position `json:"position"`
	Why      string         `json:"why"`
}

// Evolve begins the row.
func (e RowAdded[In, Out]) Evolve(Row[In, Out]) Row[In, Out] {
	return Row[In, Out]{Account: e.Account, Date: e.Date, In: e.In, Out: e.Out, Reverses: e.Reverses}
}

// Evolve replaces what is present.
func (e RowEdited[In, Out]) Evolve(r Row[In, Out]) Row[In, Out] {
	if e.Date != nil {
		r.Date = *e.Date
	}
	if e.In != nil {
		r.In = *e.In
	}
	if e.Out != nil {
		r.Out = *e.Out
	}
	return r
}

// Evolve ends the row.
func (RowDeleted[In, Out]) Evolve(r Row[In, Out]) Row[In, Out] { r.Deleted = true; return r }

// Evolve changes nothing: what was refused was void already.
func (RowRefused[In, Out]) Evolve(r Row[In, Out]) Row[In, Out] { return r }

// Dates answers every date that the step from before to after touches, for the rules of [Standing].
func Dates[In, Out Entry](before, after Row[In, Out]) []unit.Date {
	var dates []unit.Date
	if before.Exists() {
		dates = append(dates, before.Date)
	}
	if after.Exists() && !slices.Contains(dates, after.Date) {
		dates = append(dates, after.Date)
	}
	return dates
}

// AddRow posts a row to an account. Today bounds the date.
type AddRow[In, Out Entry] struct {
	Account int64     `json:"-"`
	Today   unit.Date `json:"-"`
	Date    unit.Date `json:"date"`
	In      []In      `json:"in_entries,omitempty"`
	Out     []Out     `json:"out_entries,omitempty"`
}

// Decide refuses rows without entries, entries that count nothing, and dates after tomorrow.
func (c AddRow[In, Out]) Decide(r Row[In, Out]) ([]event.Event[Row[In, Out]], error) {
	if r.Account != 0 {
		return nil, fault.New(fault.Conflict, "Row exists already")
	}
	if wrong := c.check(""); len(wrong) > 0 {
		return nil, fault.Fields(wrong...)
	}
	return []event.Event[Row[In, Out]]{
		RowAdded[In, Out]{Account: c.Account, Date: c.Date, In: c.In, Out: c.Out},
	}, nil
}

func (c AddRow[In, Out]) check(prefix string) []fault.Field {
	return checkRow(prefix, Row[In, Out]{Date: c.Date, In: c.In, Out: c.Out}, c.Today)
}

// EditRow changes what is given of a row of the account. Missing is what to answer when the account
// has no such row.
type EditRow[In, Out Entry] struct {
	Account int64      `json:"-"`
	Today   unit.Date  `json:"-"`
	Missing error      `json:"-"`
	Date    *unit.Date `json:"date,omitempty"`
	In      *[]In      `json:"in_entries,omitempty"`
	Out     *[]Out     `json:"out_entries,omitempty"`
}

// Decide answers Missing for a row that does not stand or is another account's, and a conflict for one
// that is [Row.Settled]. The rest is as in [AddRow].
func (c EditRow[In, Out]) Decide(r Row[In, Out]) ([]event.Event[Row[In, Out]], error) {
	if !r.Exists() || r.Account != c.Account {
		return nil, c.Missing
	}
	var e RowEdited[In, Out]
	if c.Date != nil && *c.Date != r.Date {
		e.Date = c.Date
	}
	if c.In != nil && !slices.Equal(*c.In, r.In) {
		e.In = c.In
	}
	if c.Out != nil && !slices.Equal(*c.Out, r.Out) {
		e.Out = c.Out
	}
	if e.Date == nil && e.In == nil && e.Out == nil {
		return nil, nil
	}
	if err := r.Settled(); err != nil {
		return nil, err
	}
	if wrong := checkRow("", e.Evolve(r), c.Today); len(wrong) > 0 {
		return nil, fault.Fields(wrong...)
	}
	return []event.Event[Row[In, Out]]{e}, nil
}

// DeleteRow ends a row of the account.
type DeleteRow[In, Out Entry] struct {
	Account int64
	Missing error
}

// Decide answers Missing for a row that does not stand or is another account's, and a conflict for one
// that is [Row.Settled].
func (c DeleteRow[In, Out]) Decide(r Row[In, Out]) ([]event.Event[Row[In, Out]], error) {
	if !r.Exists() || r.Account != c.Account {
		return nil, c.Missing
	}
	if err := r.Settled(); err != nil {
		return nil, err
	}
	return []event.Event[Row[In, Out]]{RowDeleted[In, Out]{}}, nil
}

func checkRow[In, Out Entry](prefix string, r Row[In, Out], today unit.Date) (wrong []fault.Field) {
	if r.Date > today+1 {
		wrong = append(wrong, fault.Field{Field: prefix + "date", Message: "must not be after tomorrow"})
	}
	if len(r.In) == 0 && len(r.Out) == 0 {
		wrong = append(wrong, fault.Field{Field: prefix + "in_entries", Message: "at least one entry is needed, on either side"})
	}
	wrong = append(wrong, checkSide(prefix+"in_entries", r.In)...)
	return append(wrong, checkSide(prefix+"out_entries", r.Out)...)
}

func checkSide[E Entry](side string, entries []E) (wrong []fault.Field) {
	if len(entries) > maxEntries {
		return []fault.Field{{Field: side, Message: fmt.Sprintf("at most %d entries", maxEntries)}}
	}
	for i, e := range entries {
		for _, f := range e.Check() {
			wrong = append(wrong, fault.Field{Field: fmt.Sprintf("%s[%d].%s", side, i, f.Field), Message: f.Message})
		}
	}
	return wrong
}

// Text is what somebody wrote in a line of the book. Spaces around it are not kept (CONTRACT.md D19).
type Text string

// UnmarshalText trims.
func (t *Text) UnmarshalText(text []byte) error {
	*t = Text(strings.TrimSpace(string(text)))
	return nil
}

// CheckText answers what is wrong with a text field of at most limit characters, nil when nothing is.
func CheckText(field string, text Text, limit int) []fault.Field {
	switch {
	case utf8.RuneCountInString(string(text)) > limit:
		return []fault.Field{{Field: field, Message: fmt.Sprintf("at most %d characters", limit)}}
	case !clean(string(text)):
		return []fault.Field{{Field: field, Message: "control characters are not allowed"}}
	default:
		return nil
	}
}
