package http_test

import (
	"encoding"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/stretchr/testify/require"

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
