// Package fault holds the errors that a caller may read. Everything else is the program's own
// trouble and is answered as such, without its text.
package fault

import (
	"errors"
	"fmt"
	"strings"
)

// Kind says what sort of refusal it is; http/api maps it to a status.
type Kind int

// The kinds of refusal.
const (
	Invalid      Kind = iota + 1 // well-formed and wrong
	Malformed                    // cannot be read at all
	Unauthorized                 // nobody we know
	Forbidden                    // known, and may not
	NotFound                     // not there, or not for the asker to know
	Conflict                     // not in this state
	Stale                        // the caller's copy is old (If-Match)
	Unavailable                  // not now
	TooLarge                     // more than we take
)

// Field is what is wrong with one field of a request.
type Field struct {
	Field   string `json:"field"`
	Message string `json:"message"`
	ID      any    `json:"id,omitempty" doc:"Of the other record that a conflict is about"`
}

// Error is a refusal, in words that the caller reads as they are.
type Error struct {
	Kind   Kind
	Detail string
	Code   string // stable word for programs, such as email_taken; empty for the kind's own
	Fields []Field
}

// New makes a refusal. Compare it with [errors.Is]: two refusals are the same when kind and detail are.
func New(kind Kind, detail string) *Error { return &Error{Kind: kind, Detail: detail} }

// Newf makes a refusal with values in its text.
func Newf(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Detail: fmt.Sprintf(format, args...)}
}

// Fields refuses a request for what is wrong with the named fields.
func Fields(fields ...Field) *Error {
	return &Error{Kind: Invalid, Detail: "Validation error", Fields: fields}
}

// Join returns all faults of several errors as one refusal, nil where there is none. An error that is no list of faults is returned alone.
func Join(found ...error) error {
	var fields []Field
	for _, err := range found {
		refused, ok := errors.AsType[*Error](err)
		switch {
		case err == nil:
		case !ok || len(refused.Fields) == 0 || refused.Kind != Invalid:
			return err
		default:
			fields = append(fields, refused.Fields...)
		}
	}
	if len(fields) == 0 {
		return nil
	}
	return Fields(fields...)
}

func (e *Error) Error() string {
	var text strings.Builder
	text.WriteString(e.Detail)
	for _, f := range e.Fields {
		text.WriteString("; " + f.Field + ": " + f.Message)
	}
	return text.String()
}

// Is compares kind and text.
func (e *Error) Is(target error) bool {
	other, ok := errors.AsType[*Error](target)
	return ok && e.Kind == other.Kind && e.Detail == other.Detail
}
