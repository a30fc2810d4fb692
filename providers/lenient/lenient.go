// Package lenient reads JSON of others, of which one odd member costs nothing but itself.
package lenient

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"
)

// Read decodes JSON and returns why it is not what was expected, "" if it is. What can be decoded is decoded all the same. The reason has
// none of the values.
func Read(data []byte, into any) (wrong string) {
	err := json.Unmarshal(data, into) // goes on behind a member of another type
	if odd, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		kind, _, _ := strings.Cut(odd.Value, " ")
		return strings.TrimPrefix(odd.Field+": ", ": ") + "unexpected " + kind
	}
	if err != nil {
		return "it is no JSON"
	}
	return ""
}

// Part is a member of a list, or of an object, that is read for itself.
type Part[T any] struct {
	Value T
	Wrong string // why it cannot be read; empty: it was
}

// UnmarshalJSON never fails.
func (p *Part[T]) UnmarshalJSON(data []byte) error {
	if p.Wrong = Read(data, &p.Value); p.Wrong == "" && string(data) == "null" {
		p.Wrong = "unexpected null"
	}
	return nil
}

// List is a list whose members are read each for itself. What is no list is one odd member.
type List[T any] []Part[T]

// UnmarshalJSON never fails.
func (l *List[T]) UnmarshalJSON(data []byte) error {
	var members []json.RawMessage
	if wrong := Read(data, &members); wrong != "" {
		*l = List[T]{{Wrong: wrong}}
		return nil
	}
	*l = make(List[T], len(members))
	for i, data := range members {
		if data == nil {
			data = []byte("null")
		}
		_ = (*l)[i].UnmarshalJSON(data)
	}
	return nil
}

// Text is a text that may come as a number.
type Text string

// UnmarshalJSON takes a string or a number; anything else is no text.
func (t *Text) UnmarshalJSON(data []byte) error {
	var s string
	var n json.Number
	switch {
	case json.Unmarshal(data, &s) == nil:
		*t = Text(s)
	case len(data) > 0 && data[0] != '{' && data[0] != '[' && json.Unmarshal(data, &n) == nil:
		*t = Text(n)
	}
	return nil
}

// Moment is a time as seconds or milliseconds, as a string or a number. Time is nil if it is none of them.
type Moment struct{ Time *time.Time }

// Moments outside these seconds are milliseconds, or no times.
const (
	latestSeconds = 100_000_000_000     // the year 5138
	latestMillis  = 100_000_000_000_000 // the same
)

// UnmarshalJSON never fails: an unreadable time is none.
func (m *Moment) UnmarshalJSON(data []byte) error {
	m.Time = nil
	n, err := strconv.ParseInt(string(bytes.Trim(bytes.TrimSpace(data), `"`)), 10, 64)
	switch {
	case err != nil || n <= 0 || n >= latestMillis:
	case n < latestSeconds:
		m.Time = new(time.Unix(n, 0).UTC())
	default:
		m.Time = new(time.UnixMilli(n).UTC())
	}
	return nil //nolint:nilerr // see above
}
