// Package lenient decodes other systems' JSON. An unreadable member is lost, and the rest is decoded.
package lenient

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"
)

// Read decodes JSON as far as possible. It returns the first unexpected part, or "" if there is none. The text contains no values.
func Read(data []byte, into any) (wrong string) {
	err := json.Unmarshal(data, into) // continues after a member of another type
	if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		kind, _, _ := strings.Cut(mismatch.Value, " ")
		return strings.TrimPrefix(mismatch.Field+": ", ": ") + "unexpected " + kind
	}
	if err != nil {
		return "invalid JSON"
	}
	return ""
}

// Part is a member of a list or an object that is decoded on its own.
type Part[T any] struct {
	Value T
	Wrong string // why it is unreadable; empty: it is readable
	Raw   json.RawMessage
}

// UnmarshalJSON never fails.
func (p *Part[T]) UnmarshalJSON(data []byte) error {
	p.Raw = data
	if p.Wrong = Read(data, &p.Value); p.Wrong == "" && string(data) == "null" {
		p.Wrong = "unexpected null"
	}
	return nil
}

// List is a list whose members are decoded one by one. Anything but a list is one unreadable member.
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

// Text is a text that may be a number in JSON.
type Text string

// UnmarshalJSON accepts a string or a number. Anything else gives an empty text.
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

// Moment is a time as seconds or milliseconds, as a string or a number. Time is nil for any other value.
type Moment struct{ Time *time.Time }

// Numbers outside this range are milliseconds, or not times.
const (
	latestSeconds = 100_000_000_000     // the year 5138
	latestMillis  = 100_000_000_000_000 // the same
)

// UnmarshalJSON never fails: an unreadable time is nil.
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
