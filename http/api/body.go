package api

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"bahi/domain/fault"
	"bahi/domain/patch"
)

// body is the plan of an operation's JSON body.
type body struct {
	index    []int // index of the input's field Body
	required bool
	strict   bool
	readOnly []string

	registry huma.Registry
	schema   *huma.Schema
	objects  map[reflect.Type]*object
}

// object has the fields of a struct in a body.
type object struct {
	fields []field
	byName map[string]int
}

type field struct {
	name     string
	index    []int
	schema   *huma.Schema
	required bool
	own      bool // the type's UnmarshalJSON handles null too
}

var (
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
	timeGo          = reflect.TypeFor[time.Time]()

	indices = regexp.MustCompile(`\[\d+\]`)
)

func (b *body) resolve(s *huma.Schema) *huma.Schema {
	if s != nil && s.Ref != "" {
		return b.registry.SchemaFromRef(s.Ref)
	}
	return s
}

// plan finds the structs of a body. A test of package http shows that all types are read as they are documented.
func (b *body) plan(t reflect.Type, s *huma.Schema) {
	s = b.resolve(s)
	own, kind := reflect.PointerTo(t), t.Kind()
	switch {
	case isPatch(t):
		b.plan(t.Field(0).Type, s)
	case own.Implements(jsonUnmarshaler), own.Implements(textUnmarshaler):
	case kind == reflect.Pointer:
		b.plan(t.Elem(), s)
	case kind == reflect.Slice && s != nil:
		b.plan(t.Elem(), s.Items)
	case kind == reflect.Slice, kind == reflect.Map:
		b.plan(t.Elem(), nil)
	case kind == reflect.Struct:
		b.planObject(t, s)
	}
}

// planObject uses the limits of the document's schema, so that the document and the checks cannot differ.
func (b *body) planObject(t reflect.Type, s *huma.Schema) {
	if b.objects[t] != nil {
		return
	}
	if t.Name() != "" {
		s = b.registry.Schema(t, false, "")
	}
	o := &object{byName: map[string]int{}}
	b.objects[t] = o
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" || f.Anonymous && name == "" {
			continue
		}
		name = cmp.Or(name, f.Name)
		o.byName[name] = len(o.fields)
		o.fields = append(o.fields, field{
			name: name, index: f.Index, schema: s.Properties[name], required: slices.Contains(s.Required, name),
			own: f.Type != timeGo && reflect.PointerTo(f.Type).Implements(jsonUnmarshaler),
		})
		b.plan(f.Type, s.Properties[name])
	}
}

// isPatch reports whether the type is a patch.Field.
func isPatch(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t.PkgPath() == reflect.TypeFor[patch.State]().PkgPath() && t.NumField() == 2
}

// showPatches documents the patch.Fields of a body as their values, or null.
func (a *API) showPatches(t reflect.Type, seen map[reflect.Type]bool) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		a.showPatches(t.Elem(), seen)
	case reflect.Struct:
		if seen[t] {
			return
		}
		seen[t] = true
		if isPatch(t) {
			a.ShowAs(t, reflect.PointerTo(t.Field(0).Type))
		}
		for f := range t.Fields() {
			if f.IsExported() {
				a.showPatches(f.Type, seen)
			}
		}
	default:
	}
}

var (
	errNoBody    = fault.New(fault.Malformed, "A request body is required")
	errBroken    = fault.New(fault.Malformed, "The request body broke off")
	errBodyLarge = fault.New(fault.TooLarge, "The request body is too large")
)

// read reads the body, up to the operation's limit. Huma gets a raw one.
func (c *call) read() (err error) {
	if c.r.ContentLength > c.op.MaxBody {
		return errBodyLarge
	}
	if c.r.ContentLength != 0 && !c.op.raw && !isJSON(c.r.Header) {
		return ProblemOf(http.StatusUnsupportedMediaType)
	}
	c.body, err = io.ReadAll(io.LimitReader(c.r.Body, c.op.MaxBody+1))
	switch {
	case int64(len(c.body)) > c.op.MaxBody:
		return errBodyLarge
	case err != nil:
		return broken(err)
	}
	c.r.Body = http.NoBody
	if c.op.raw {
		c.r.Body = io.NopCloser(bytes.NewReader(c.body))
	}
	c.print.part(c.body)
	return nil
}

// broken returns the refusal of an interrupted body.
func broken(err error) error {
	if n, ok := errors.AsType[net.Error](err); ok && n.Timeout() {
		return ProblemOf(http.StatusRequestTimeout)
	}
	return errBroken
}

// isJSON reports whether the body is unencoded JSON, or has no type.
func isJSON(h http.Header) bool {
	if encoding := h["Content-Encoding"]; len(encoding) > 0 && !strings.EqualFold(encoding[0], "identity") {
		return false
	}
	given := h["Content-Type"]
	if len(given) == 0 {
		return true
	}
	kind, parameters, _ := mime.ParseMediaType(given[0]) // "" if it is invalid
	ofJSON := strings.HasPrefix(kind, "application/") && strings.HasSuffix(kind, "+json")
	charset := parameters["charset"]
	return (kind == jsonType || ofJSON) && (charset == "" || strings.EqualFold(charset, "utf-8"))
}

// finish completes the operation with the type of the input after huma has analysed the type.
func (o *operation) finish(a *API, in reflect.Type) {
	o.input, o.query = in, map[string]bool{}
	for _, f := range reflect.VisibleFields(in) {
		name, _, _ := strings.Cut(f.Tag.Get("query"), ",")
		o.query[name] = name != ""
	}
	field, hasBody := in.FieldByName("Body")
	if _, o.raw = in.FieldByName("RawBody"); hasBody && !o.raw {
		o.body = &body{
			index: field.Index, required: field.Type.Kind() != reflect.Pointer, strict: o.StrictBody, readOnly: o.ReadOnly,
			registry: a.huma.OpenAPI().Components.Schemas, schema: o.schema, objects: map[reflect.Type]*object{},
		}
		o.body.plan(field.Type, o.schema)
	}
}

// documenter documents the operation with its body. Then it makes huma accept an empty body, because this package reads the body first.
type documenter struct {
	huma.API

	op *operation
}

func (d documenter) DocumentOperation(op *huma.Operation) {
	documented := *op
	documented.Parameters = d.op.called(op.Parameters)
	d.OpenAPI().AddOperation(&documented)
	if op.RequestBody != nil {
		if content := op.RequestBody.Content[jsonType]; content != nil {
			d.op.schema = content.Schema
		}
		emptied := *op.RequestBody
		emptied.Required = false
		op.RequestBody = &emptied
	}
}
