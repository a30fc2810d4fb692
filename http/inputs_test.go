package http_test

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"bahi/domain/patch"
	"bahi/domain/unit"
	"bahi/http/api"
	"bahi/internal/test/apptest"
)

// Huma leaves some inputs silently empty or misreads them.
func TestHumaReadsEachInput(t *testing.T) {
	t.Parallel()
	for id, in := range apptest.Share(t).Api(apptest.OperatorKey).Inputs() {
		require.Empty(t, unreadable(in), id)
	}
	type hidden struct {
		ID int64 `path:"id"`
	}
	for _, in := range []reflect.Type{
		reflect.TypeFor[struct{ hidden }](),
		reflect.TypeFor[struct {
			ID int8 `path:"id"`
		}](),
		reflect.TypeFor[struct {
			D unit.Date `query:"d"`
		}](),
		reflect.TypeFor[struct {
			M api.Optional[unit.Money] `query:"m"`
		}](),
	} {
		require.NotEmpty(t, unreadable(in))
	}
}

// unreadable returns why huma would misread a part of an input.
func unreadable(in reflect.Type) string {
	for f := range in.Fields() {
		why := ""
		switch {
		case f.Anonymous && f.Type.Kind() == reflect.Struct && !f.IsExported():
			why = "it is embedded and not exported: its fields stay empty"
		case f.Anonymous && f.Type.Kind() == reflect.Struct:
			why = unreadable(f.Type)
		case f.Tag.Get("query") != "", f.Tag.Get("path") != "":
			why = misread(f.Type)
		}
		if why != "" {
			return f.Name + ": " + why
		}
	}
	return ""
}

// misread returns why huma would misread a parameter. A Money of 12 would become 12 paise.
func misread(t reflect.Type) string {
	wrapper := reflect.PointerTo(t).Implements(reflect.TypeFor[huma.ParamWrapper]())
	if wrapper && t.Kind() == reflect.Struct {
		if value, has := t.FieldByName("Value"); has {
			t = value.Type
		}
	}
	own := reflect.PointerTo(t)
	ownText := own.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
	switch {
	case own.Implements(reflect.TypeFor[json.Unmarshaler]()) && !ownText:
		return "it has no UnmarshalText"
	case wrapper && ownText:
		return ""
	case ownText && t.Kind() != reflect.Struct && t.Kind() != reflect.Array:
		return "it must be an api.Optional: otherwise its UnmarshalText is ignored"
	}
	switch t.Kind() {
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return "it must have 64 bits: otherwise it is truncated"
	default:
		return ""
	}
}

// Bahi's decoder would not read some types of a body as they are documented.
func TestBodiesAreReadAsDocumented(t *testing.T) {
	t.Parallel()
	for id, in := range apptest.Share(t).Api(apptest.OperatorKey).Inputs() {
		if body, has := in.FieldByName("Body"); has {
			require.Empty(t, misreadInBody(body.Type, map[reflect.Type]bool{}), id)
		}
	}
	type bounded struct {
		A int `json:"a" exclusiveMinimum:"0"`
	}
	type defaulted struct {
		A int `json:"a" default:"3"`
	}
	for _, body := range []reflect.Type{
		reflect.TypeFor[decimal.Decimal](), reflect.TypeFor[map[int]string](), reflect.TypeFor[[]byte](),
		reflect.TypeFor[map[string]struct{ A string }](), reflect.TypeFor[struct{ *bounded }](), reflect.TypeFor[[]bounded](),
		reflect.TypeFor[map[string]*defaulted](),
	} {
		require.NotEmpty(t, misreadInBody(body, map[reflect.Type]bool{}), body)
	}
}

// misreadInBody returns why the decoder would misread a value of a body.
func misreadInBody(t reflect.Type, seen map[reflect.Type]bool) string {
	own, kind := reflect.PointerTo(t), t.Kind()
	switch {
	case t == reflect.TypeFor[decimal.Decimal]():
		return "it takes exponents of any size; a body has the quantities of package unit"
	case kind == reflect.Map && t.Key().Kind() != reflect.String:
		return "the keys of a JSON object are strings"
	case kind == reflect.Map && t.Elem().Kind() == reflect.Struct && t.Elem().Name() == "":
		return "a type in a map needs a name"
	case t.PkgPath() == reflect.TypeFor[patch.State]().PkgPath() && kind == reflect.Struct:
		return misreadInBody(t.Field(0).Type, seen)
	case own.Implements(reflect.TypeFor[json.Unmarshaler]()), own.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()), seen[t]:
		return ""
	case kind == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return "bytes are not supported; send them as a file"
	case kind == reflect.Pointer, kind == reflect.Slice, kind == reflect.Map:
		return misreadInBody(t.Elem(), seen)
	case kind != reflect.Struct:
		return ""
	}
	seen[t] = true
	for f := range t.Fields() {
		why := misreadInBody(f.Type, seen)
		switch {
		case f.Anonymous && f.Type.Kind() == reflect.Pointer:
			why = "an embedded pointer is not supported"
		case f.Tag.Get("default") != "":
			why = "it has no default; Decide knows what absent means"
		case f.Tag.Get("exclusiveMinimum")+f.Tag.Get("exclusiveMaximum") != "":
			why = "exclusive bounds are not checked; let Decide do it"
		}
		if why != "" && f.Tag.Get("json") != "-" {
			return f.Name + ": " + why
		}
	}
	return ""
}

// The parts of each Op fit together, and no earlier operation takes the path of a later one.
func TestOperationsAreConsistent(t *testing.T) {
	t.Parallel()
	a := apptest.Share(t).Api(apptest.OperatorKey)
	ops, inputs := a.Operations(), a.Inputs()
	require.Len(t, inputs, len(ops), "two operations have one ID")
	for i, op := range ops {
		require.False(t, op.Public && (op.Operator || op.Area != "") || op.Operator && op.Area != "", op.ID)
		require.True(t, op.Public || !op.OptionalAuth, op.ID)
		require.True(t, op.Area != "" || op.Level == "", op.ID)
		require.True(t, op.Events == nil || op.Method == "GET", "%s: browsers ask for events by GET", op.ID)
		for _, earlier := range ops[:i] {
			require.False(t, earlier.Method == op.Method && matches(earlier.Path, op.Path), "register %s before %s", op.ID, earlier.ID)
		}
		bodies := 0
		for _, f := range reflect.VisibleFields(inputs[op.ID]) {
			if f.Type == reflect.TypeFor[api.File]() || f.Name == "Body" || f.Name == "RawBody" {
				bodies++
			}
		}
		require.True(t, bodies == 0 || bodies == 1 && op.Method != "GET", op.ID)
	}
	require.True(t, matches("/a/{id}", "/a/search"))
	require.False(t, matches("/a/search", "/a/{id}"))
}

// matches reports whether a path with variables also matches another path.
func matches(path, other string) bool {
	return slices.EqualFunc(strings.Split(path, "/"), strings.Split(other, "/"), func(part, otherPart string) bool {
		return part == otherPart || strings.HasPrefix(part, "{")
	})
}
