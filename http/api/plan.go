package api

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"bahi/domain/patch"
)

// body is the plan of an operation's JSON body.
type body struct {
	index    []int // of the input's field Body
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

// plan finds the structs of a body. It panics on a type that is not read as it is documented.
func (b *body) plan(t reflect.Type, s *huma.Schema) {
	s = b.resolve(s)
	own, kind := reflect.PointerTo(t), t.Kind()
	switch {
	case s != nil && (s.ExclusiveMinimum != nil || s.ExclusiveMaximum != nil):
		panic(fmt.Sprintf("%s: exclusive bounds are not checked; let Decide do it", t))
	case isPatch(t):
		b.plan(t.Field(0).Type, s)
	case own.Implements(jsonUnmarshaler), own.Implements(textUnmarshaler):
	case kind == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		panic(fmt.Sprintf("%s: bytes in a body are not supported; send them as a file", t))
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
	switch {
	case b.objects[t] != nil:
		return
	case t.Name() != "":
		s = b.registry.Schema(t, false, "")
	case s == nil: // the registry identifies types by name, and would return another type's schema
		panic(fmt.Sprintf("%s: a type in a map needs a name", t))
	}
	o := &object{byName: map[string]int{}}
	b.objects[t] = o
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" || f.Anonymous && name == "" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		if f.Tag.Get("default") != "" {
			panic(fmt.Sprintf("%s.%s: a body's field has no default; Decide knows what absent means", t, f.Name))
		}
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
