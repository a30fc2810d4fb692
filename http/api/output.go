package api

import (
	"context"
	"encoding"
	"reflect"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"bahi/commands"
)

// Body is an output that is only a body.
type Body[T any] struct {
	Body T
}

// Answer returns an output with the result of a view or a command as its body.
func Answer[T any](value T, err error) (*Body[T], error) {
	if err != nil {
		return nil, err
	}
	return &Body[T]{Body: value}, nil
}

// WithETag is [Answer] for an editable record. The ETag is its revision.
func WithETag[T any](value T, revision int64, err error) (*Tagged[T], error) {
	if err != nil {
		return nil, err
	}
	return &Tagged[T]{ETag: Revision(revision), Body: value}, nil
}

// Tagged is an output with the revision of the body.
type Tagged[T any] struct {
	ETag ETag `header:"ETag"`
	Body T
}

// WriteResult returns the output of a write. The body is show's view of the record after the command, and the ETag its revision. The
// headers have the position of the write in the log, and whether the outcome is that of an earlier request with the same Idempotency-Key. A
// dry run has neither header.
func WriteResult[S, T any](ctx context.Context, out commands.Outcome[S], err error, show func(commands.Outcome[S]) T) (*Tagged[T], error) {
	if err != nil {
		return nil, err
	}
	SetWriteHeaders(ctx, out.Position, out.Replayed)
	return &Tagged[T]{ETag: Revision(out.Revision), Body: show(out)}, nil
}

// Reply is [WriteResult] for a result without a revision.
func Reply[S, T any](ctx context.Context, out commands.Outcome[S], err error, show func(commands.Outcome[S]) T) (*Body[T], error) {
	if err != nil {
		return nil, err
	}
	SetWriteHeaders(ctx, out.Position, out.Replayed)
	return &Body[T]{Body: show(out)}, nil
}

// Done is [WriteResult] for a write without a body.
func Done[S any](ctx context.Context, out commands.Outcome[S], err error) (*Nothing, error) {
	if err != nil {
		return nil, err
	}
	SetWriteHeaders(ctx, out.Position, out.Replayed)
	return &Nothing{}, nil
}

// Nothing is an output with only a status.
type Nothing struct{}

// ETag is a strong entity tag (RFC 9110, 8.8.3), "" for none.
type ETag string

// Revision returns the tag of a stream's revision, "" for a missing stream.
func Revision(revision int64) ETag {
	if revision < 0 {
		return ""
	}
	return ETag(`"` + strconv.FormatInt(revision, 10) + `"`)
}

// Optional is a parameter that may be absent. Unlike huma, it also supports types with UnmarshalText and an underlying number, such as
// unit.Date.
type Optional[T any] struct {
	Value T
	Set   bool
}

// Get returns a pointer to the value, or nil.
func (o *Optional[T]) Get() *T {
	if !o.Set {
		return nil
	}
	return &o.Value
}

// Receiver returns the value in which huma stores the parameter.
func (o *Optional[T]) Receiver() reflect.Value {
	if into, ok := any(&o.Value).(encoding.TextUnmarshaler); ok {
		return reflect.ValueOf(&textParameter{into}).Elem()
	}
	return reflect.ValueOf(o).Elem().Field(0)
}

// OnParamSet is for huma.
func (o *Optional[T]) OnParamSet(isSet bool, _ any) { o.Set = isSet }

// Schema is for huma.
func (o *Optional[T]) Schema(r huma.Registry) *huma.Schema {
	return r.Schema(reflect.TypeFor[T](), true, "")
}

type textParameter struct{ into encoding.TextUnmarshaler }

// UnmarshalText passes the text on to the type.
//
//nolint:wrapcheck // the response has the error's text
func (t *textParameter) UnmarshalText(text []byte) error { return t.into.UnmarshalText(text) }
