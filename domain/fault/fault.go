// Package fault has the errors for callers. All other errors are internal: callers do not see their texts.
package fault

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Kind is the kind of a refusal. http/api maps it to a status.
type Kind int

// The kinds of refusals.
const (
	Invalid      Kind = iota + 1 // well-formed but wrong
	Malformed                    // unreadable
	Unauthorized                 // unknown caller
	Forbidden                    // known caller without the right
	NotFound                     // does not exist, or the caller may not know that it does
	Conflict                     // impossible in this state
	Stale                        // the caller's copy is outdated (If-Match)
	Unavailable                  // temporarily impossible
	TooLarge                     // exceeds a limit
	TooMany                      // more than is allowed in an interval
	Unsupported                  // a file of a type that is not accepted
	Upstream                     // another system refused, or its response is invalid
)

// Field is a fault of one field of a request.
type Field struct {
	Field   string `json:"field" doc:"Name of the field"`
	Message string `json:"message" doc:"Fault of the field"`
	ID      any    `json:"id,omitempty" doc:"ID of the other record in a conflict"`

	Of []string `json:"-"` // the fields that decide whether the fault is true; nil: the field, and those in it and around it
}

// Placed returns the fault with other names of its fields, such as those in a list of rows.
func (f Field) Placed(name func(field string) string) Field {
	f.Field, f.Of = name(f.Field), slices.Clone(f.Of)
	for i, field := range f.Of {
		f.Of[i] = name(field)
	}
	return f
}

// Error is a refusal with a text for the caller.
type Error struct {
	Kind       Kind
	Detail     string
	Code       string // stable code for programs, such as email_taken; empty for the kind's default
	Fields     []Field
	RetryAfter int // seconds until another try may succeed; 0: unknown
}

// New returns a refusal. Compare refusals with [errors.Is]: they are equal if their kind and detail are equal.
func New(kind Kind, detail string) *Error { return &Error{Kind: kind, Detail: detail} }

// Newf returns a refusal with a formatted text.
func Newf(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Detail: fmt.Sprintf(format, args...)}
}

// Fields returns a refusal for faults of fields.
func Fields(fields ...Field) *Error {
	return &Error{Kind: Invalid, Detail: "Validation error", Fields: fields}
}

// Wrong returns a refusal for the fault of one field.
func Wrong(field, message string) *Error { return Fields(Field{Field: field, Message: message}) }

// Found returns a refusal for the faults that a check has found, or nil.
func Found(fields []Field) error {
	if len(fields) == 0 {
		return nil
	}
	return Fields(fields...)
}

// Taken returns the refusal of a value that another record already has. It contains the other record's id, as a number if the id is a
// number.
func Taken(field, detail, id string) *Error {
	conflict := Field{Field: field, Message: detail, ID: id}
	if number, err := strconv.ParseInt(id, 10, 64); err == nil {
		conflict.ID = number
	}
	return &Error{Kind: Conflict, Detail: detail, Code: field + "_taken", Fields: []Field{conflict}}
}

// Join returns the faults of several errors as one refusal, or nil. If an error is not a list of faults, Join returns that error alone.
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
	return Found(fields)
}

// Besides returns a list of faults with the faults of another error if that is a list too. It returns other
// errors alone. If the first list has a fault of a field,
// Besides drops the other's faults of that field, and of fields in it or around it. Such faults may follow from the first one.
func Besides(first, other error) error {
	known, ok := errors.AsType[*Error](first)
	more, too := errors.AsType[*Error](other)
	if !ok || !too || known.Kind != Invalid || !more.Listed() {
		return first
	}
	all := slices.Clone(known.Fields)
	for _, f := range more.Fields {
		if !slices.ContainsFunc(known.Fields, func(k Field) bool { return Within(k.Field, f.Field) || Within(f.Field, k.Field) }) {
			all = append(all, f)
		}
	}
	return Fields(all...)
}

// Listed reports whether the refusal lists fields that are wrong or conflict with stored data.
func (e *Error) Listed() bool {
	return (e.Kind == Invalid || e.Kind == Conflict) && len(e.Fields) > 0
}

// Within reports whether the path names the field or a field in it.
func Within(path, field string) bool {
	rest, within := strings.CutPrefix(path, field)
	return within && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// Soon returns the seconds after which a retry of a temporarily refused request may succeed. It returns 0 for
// other errors, and if the time
// is unknown.
func Soon(err error) int {
	if e, ok := errors.AsType[*Error](err); ok && e.Kind == Unavailable {
		return e.RetryAfter
	}
	return 0
}

func (e *Error) Error() string {
	var text strings.Builder
	text.WriteString(e.Detail)
	for _, f := range e.Fields {
		text.WriteString("; " + f.Field + ": " + f.Message)
	}
	return text.String()
}

// Is compares kind and detail.
func (e *Error) Is(target error) bool {
	other, ok := errors.AsType[*Error](target)
	return ok && e.Kind == other.Kind && e.Detail == other.Detail
}
