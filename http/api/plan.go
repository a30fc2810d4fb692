package api

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"bahi/domain/patch"
)

// kind is the way to read a value.
type kind int

const (
	object kind = iota + 1
	dict
	list
	pointer
	text
	scalar   // a number or a truth value
	ownJSON  // by its UnmarshalJSON
	ownText  // a string, by its UnmarshalText
	anything // an interface
	patched  // a patch.Field
)

// node is the plan for the values at one place of a body.
type node struct {
	kind     kind
	token    jsontext.Kind // first token of its JSON; 't' for both truth values
	typ      reflect.Type
	elem     *node
	fields   []field
	byName   map[string]int
	strict   bool
	readOnly map[string]bool
	quantity bool // of package unit: null means absent
	nullable bool // a patch.Field that takes null
	limits   *limits
	wanted   string
}

type field struct {
	name     string
	index    []int
	required bool
	plan     *node
}

const (
	uuidLength = 36
	wantUUID   = "expected a UUID such as 6ba7b810-9dad-41d1-80b4-00c04fd430c8"
	wantTime   = "expected a moment such as 2025-03-31T09:15:00Z"
)

var (
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
	paramWrapper    = reflect.TypeFor[huma.ParamWrapper]()
	uuidGo          = reflect.TypeFor[uuid.UUID]()
	timeGo          = reflect.TypeFor[time.Time]()
	decimalGo       = reflect.TypeFor[decimal.Decimal]()
)

// planner makes plans. It takes the limits of a field (required, longest, one of) from the document's own schema, so that the
// two cannot differ.
type planner struct {
	registry huma.Registry
	strict   bool
	readOnly []string
	known    map[planKey]*node
}

type planKey struct {
	typ  reflect.Type
	path string
}

func (p *planner) plan(t reflect.Type, schema *huma.Schema, path string) *node {
	if schema != nil && schema.Ref != "" {
		schema = p.registry.SchemaFromRef(schema.Ref)
	}
	if outer := p.outer(t, path); outer != nil {
		return outer
	}
	n := &node{typ: t}
	switch own := reflect.PointerTo(t); {
	case t.Kind() == reflect.Pointer:
		n.kind, n.elem = pointer, p.plan(t.Elem(), schema, path)
		return n
	case isPatch(t):
		n.kind, n.elem, n.nullable = patched, p.plan(t.Field(0).Type, schema, path), schema != nil && schema.Nullable
		return n
	case t == uuidGo:
		n.kind, n.token, n.wanted = ownText, '"', wantUUID
	case t == timeGo:
		n.kind, n.token, n.wanted = ownText, '"', wantTime
	case t == decimalGo:
		panic("decimal.Decimal takes exponents of any size; a body has the quantities of package unit")
	case own.Implements(jsonUnmarshaler):
		n.kind, n.quantity = ownJSON, strings.HasSuffix(t.PkgPath(), "domain/unit")
	case own.Implements(textUnmarshaler):
		n.kind, n.token, n.wanted = ownText, '"', "expected a text"
	default:
		p.byKind(n, t, schema, path)
	}
	n.limits = newLimits(p.registry, n, schema)
	return n
}

// outer returns the plan of an enclosing value of the same type, or nil.
func (p *planner) outer(t reflect.Type, path string) *node {
	if p.known == nil {
		p.known = map[planKey]*node{}
	}
	if slices.ContainsFunc(p.readOnly, func(name string) bool { return strings.HasPrefix(name, path+".") }) {
		return nil
	}
	for path != "" {
		path = path[:max(strings.LastIndexByte(path, '.'), 0)]
		if known := p.known[planKey{t, path}]; known != nil {
			return known
		}
	}
	return nil
}

func (p *planner) byKind(n *node, t reflect.Type, schema *huma.Schema, path string) {
	switch t.Kind() {
	case reflect.Struct:
		p.object(n, t, schema, path)
	case reflect.Slice:
		n.kind, n.token, n.wanted = list, '[', "expected a list"
		var items *huma.Schema
		if schema != nil {
			items = schema.Items
		}
		if t.Elem().Kind() == reflect.Uint8 {
			panic(fmt.Sprintf("%s: bytes in a body are not supported; send them as a file", t))
		}
		n.elem = p.plan(t.Elem(), items, path)
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			panic(fmt.Sprintf("%s: keys of a JSON object are strings", t))
		}
		n.kind, n.token, n.wanted = dict, '{', "expected an object"
		n.elem = p.plan(t.Elem(), nil, path)
	case reflect.String:
		n.kind, n.token, n.wanted = text, '"', "expected a text"
	case reflect.Bool:
		n.kind, n.token, n.wanted = scalar, 't', "expected true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n.kind, n.token, n.wanted = scalar, '0', "expected a whole number"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n.kind, n.token, n.wanted = scalar, '0', "expected a whole number that is not negative"
	case reflect.Float32, reflect.Float64:
		n.kind, n.token, n.wanted = scalar, '0', "expected a number"
	case reflect.Interface:
		n.kind = anything
	default:
		panic(fmt.Sprintf("%s cannot be read from JSON", t))
	}
}

func (p *planner) object(n *node, t reflect.Type, schema *huma.Schema, path string) {
	n.kind, n.token, n.wanted, n.strict = object, '{', "expected an object", p.strict
	n.readOnly, n.byName = map[string]bool{}, map[string]int{}
	prefix := path
	if prefix != "" {
		prefix += "."
	}
	for _, name := range p.readOnly {
		if rest, ok := strings.CutPrefix(name, prefix); ok && !strings.Contains(rest, ".") {
			n.readOnly[rest] = true
		}
	}
	if t.Name() != "" {
		schema = p.registry.Schema(t, false, "")
	} else if schema == nil { // the registry knows types by their names, and would return another one's
		panic(fmt.Sprintf("%s: a type in a map needs a name", t))
	}
	required := map[string]bool{}
	for _, name := range schema.Required {
		required[name] = true
	}
	p.known[planKey{t, path}] = n
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
		n.byName[name] = len(n.fields)
		n.fields = append(n.fields, field{
			name: name, index: f.Index, required: required[name], plan: p.plan(f.Type, schema.Properties[name], prefix+name),
		})
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

// fieldOf returns a field, and allocates embedded pointers on the way.
func fieldOf(v reflect.Value, index []int) reflect.Value {
	for i, x := range index {
		if i > 0 && v.Kind() == reflect.Pointer {
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.Field(x)
	}
	return v
}

// unmarshalText returns the fault of the text, or "".
func (n *node) unmarshalText(v reflect.Value, b []byte) string {
	if n.typ == uuidGo && len(b) != uuidLength {
		return wantUUID
	}
	unmarshaler, _ := reflect.TypeAssert[encoding.TextUnmarshaler](v.Addr())
	if err := unmarshaler.UnmarshalText(b); err != nil {
		return n.complaint(err)
	}
	return ""
}

// complaint returns the message of our own types; those of libraries repeat the input.
func (n *node) complaint(err error) string {
	switch {
	case strings.HasPrefix(n.typ.PkgPath(), "bahi/"):
		if _, theirs := err.(*json.SyntaxError); !theirs { //nolint:errorlint // only the outermost message counts
			if _, theirs := err.(*json.UnmarshalTypeError); !theirs { //nolint:errorlint // as above
				return err.Error()
			}
		}
	case n.wanted != "":
		return n.wanted
	}
	return "cannot be read"
}
