// Package patch distinguishes an absent field from null in the body of a PATCH and in its event.
package patch

import "encoding/json"

// Field is a field of a change: absent, null, or a value. A pointer cannot distinguish absent from null. The field's tag must have
// omitzero. In a body, nullable:"false" refuses null.
type Field[T any] struct {
	Value T     // the value if State is Given
	State State // the zero value is Absent
}

// State is the kind of content of a field in a change.
type State uint8

// The states.
const (
	absent State = iota // the field is unchanged
	Null                // the field is emptied
	Given               // a value
)

// Set returns a field with a value.
func Set[T any](value T) Field[T] { return Field[T]{Value: value, State: Given} }

// Clear returns a field that is null.
func Clear[T any]() Field[T] { return Field[T]{State: Null} }

// Present reports whether the change has the field, with a value or null.
func (f Field[T]) Present() bool { return f.State != absent }

// Of returns an optional value after the change: the old value if the field is absent, nil if it is null.
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

// Or returns a required value after the change: the old value if the field is absent, the zero value if it is null.
func (f Field[T]) Or(old T) T {
	if f.State == absent {
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

// With returns the field with its value converted by change, such as a rule that normalises the value. It returns an absent or null field
// unchanged.
func (f Field[T]) With(change func(T) (T, error)) (Field[T], error) {
	if f.State != Given {
		return f, nil
	}
	value, err := change(f.Value)
	f.Value = value
	return f, err
}

// MarshalJSON writes the value, or null. omitzero omits an absent field.
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

// Value returns the column value of a Field or another value: nil for null. It returns false for an absent Field.
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
