// Package patch tells a field that is absent from one that is null, in the body of a PATCH and in the event that follows from it.
package patch

import "encoding/json"

// Field is a field of a change: absent, null, or a value. A pointer cannot tell absent from null.
// Its tag has omitzero. In a body, null is refused with nullable:"false".
type Field[T any] struct {
	Value T     // of a field that is Given
	State State // the zero State is that of an absent field
}

// State says what a change has in the place of a field.
type State uint8

// The states.
const (
	Absent State = iota // nothing: the field stays as it is
	Null                // null: the field is emptied
	Given               // a value
)

// Set returns a field with a value.
func Set[T any](value T) Field[T] { return Field[T]{Value: value, State: Given} }

// Clear returns a field that is null.
func Clear[T any]() Field[T] { return Field[T]{State: Null} }

// Present reports whether the change names the field, by a value or by null.
func (f Field[T]) Present() bool { return f.State != Absent }

// Of returns the field after the change of a value that may be none: the old one where the field is absent, nil where it is null.
func (f Field[T]) Of(old *T) *T {
	switch f.State {
	case Given:
		return &f.Value
	case Null:
		return nil
	default:
		return old
	}
}

// Or returns the field after the change of a value that is always there: the old one where the field is absent, the zero value where it is
// null.
func (f Field[T]) Or(old T) T {
	if f.State == Absent {
		return old
	}
	return f.Value
}

// Differing returns the field if it changes the old value, else an absent one.
func Differing[T comparable](f Field[T], old T) Field[T] {
	if f.Or(old) == old {
		return Field[T]{}
	}
	return f
}

// With returns the field with the value that change makes of its own. It returns what is absent or null as it is. It is for rules that
// put a value in order.
func (f Field[T]) With(change func(T) (T, error)) (Field[T], error) {
	if f.State != Given {
		return f, nil
	}
	value, err := change(f.Value)
	f.Value = value
	return f, err
}

// MarshalJSON writes the value, or null. An absent field is left out by omitzero.
func (f Field[T]) MarshalJSON() ([]byte, error) {
	if f.State != Given {
		return []byte("null"), nil
	}
	return json.Marshal(f.Value)
}

// UnmarshalJSON reads a value, or null.
func (f *Field[T]) UnmarshalJSON(data []byte) error {
	*f = Field[T]{State: Null}
	if string(data) == "null" {
		return nil
	}
	f.State = Given
	return json.Unmarshal(data, &f.Value)
}

// Value returns what a column gets of a value that may be a Field: nil for null. It returns false for an absent one.
func Value(v any) (value any, named bool) {
	if f, ok := v.(interface{ column() (any, bool) }); ok {
		return f.column()
	}
	return v, true
}

func (f Field[T]) column() (any, bool) {
	if f.State == Given {
		return f.Value, true
	}
	return nil, f.Present()
}
