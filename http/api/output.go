package api

import (
	"context"
	"encoding"
	"reflect"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"bahi/commands"
	"bahi/readmodels"
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

// The contract has three forms of a list: an array with X-Total-Count, which [Listed] returns, and two objects with the page's numbers,
// which [Paginated] and [MarketplacePage] return. The input of a list embeds [Limited], [Pages] or [MarketplacePageParams] for the
// parameters.

// Pages has the parameters page and page_size.
type Pages struct {
	Page     int `query:"page" default:"1" minimum:"1" maximum:"1000000000" doc:"From 1"`
	PageSize int `query:"page_size" default:"50" minimum:"1" maximum:"100" doc:"Rows of a page"`
}

// Get returns the page.
func (p Pages) Get() readmodels.Page { return readmodels.Page{Number: p.Page, Size: p.PageSize} }

// Limited has the parameters page and limit.
type Limited struct {
	Page  int `query:"page" default:"1" minimum:"1" maximum:"1000000000" doc:"From 1"`
	Limit int `query:"limit" default:"50" minimum:"1" maximum:"200" doc:"Rows of a page"`
}

// Get returns the page.
func (p Limited) Get() readmodels.Page { return readmodels.Page{Number: p.Page, Size: p.Limit} }

// Array is a list, or a page of it, with the number of all its rows.
type Array[T any] struct {
	Total int64 `header:"X-Total-Count" doc:"Rows of all pages"`
	Body  []T
}

// Listed returns the rows of a page as an array.
func Listed[T any](rows []T, total int64, err error) (*Array[T], error) {
	if err != nil {
		return nil, err
	}
	return &Array[T]{Total: total, Body: full(rows)}, nil
}

// PageOf is a page as an object.
type PageOf[T any] struct {
	Items      []T   `json:"items" doc:"Records of this page"`
	Total      int64 `json:"total" doc:"Items of all pages"`
	Page       int   `json:"page" doc:"Number of the page, from 1"`
	PageSize   int   `json:"page_size" doc:"Maximum number of records per page"`
	TotalPages int64 `json:"total_pages" doc:"Number of pages"`
}

// Paginated returns the rows of a page as an object. Its arguments are the results of [readmodels.Paged].
func Paginated[T any](page readmodels.Page, rows []T, total int64, err error) (*Body[PageOf[T]], error) {
	if err != nil {
		return nil, err
	}
	size := int64(page.Size)
	return &Body[PageOf[T]]{Body: PageOf[T]{
		Items: full(rows), Total: total, Page: page.Number, PageSize: page.Size, TotalPages: (total + size - 1) / size,
	}}, nil
}

// MarketplacePageParams has the parameters page and limit in the marketplace's form.
type MarketplacePageParams struct {
	Page  int `query:"page" default:"1" minimum:"1" maximum:"1000000000" doc:"From 1"`
	Limit int `query:"limit" default:"20" minimum:"1" maximum:"100" doc:"Rows of a page"`
}

// Get returns the page.
func (p MarketplacePageParams) Get() readmodels.Page {
	return readmodels.Page{Number: p.Page, Size: p.Limit}
}

// DataOf is a page in the marketplace's form.
type DataOf[T any] struct {
	Data  []T   `json:"data" doc:"Records of this page"`
	Total int64 `json:"total" doc:"Rows of all pages"`
	Page  int   `json:"page" doc:"Number of the page, from 1"`
	Limit int   `json:"limit" doc:"Maximum number of records per page"`
}

// MarketplacePage returns the rows of a page in the marketplace's form. Its arguments are the results of [readmodels.Paged].
func MarketplacePage[T any](page readmodels.Page, rows []T, total int64, err error) (*Body[DataOf[T]], error) {
	if err != nil {
		return nil, err
	}
	return &Body[DataOf[T]]{Body: DataOf[T]{Data: full(rows), Total: total, Page: page.Number, Limit: page.Size}}, nil
}

// full returns an empty list for nil, which is an array in JSON.
func full[T any](rows []T) []T {
	if rows == nil {
		return []T{}
	}
	return rows
}
