package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// serveDocument serves the OpenAPI document.
func (a *API) serveDocument() {
	a.huma.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[Problem](), true, "")
	a.Page("/openapi.json", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "application/openapi+json")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		h.Set("Referrer-Policy", "no-referrer")
		_, _ = w.Write(a.spec())
	}))
}

// Page serves a public path that is not an operation, by GET.
func (a *API) Page(path string, handler http.Handler) {
	a.pages[path] = true
	a.router.Path(path).Methods(http.MethodGet).Handler(handler)
}

func (a *API) encodeSpec() []byte {
	text, err := json.Marshal(a.huma.OpenAPI())
	if err == nil {
		text, err = nullable(text, a.huma.OpenAPI().Components.Schemas)
	}
	if err != nil {
		panic(err)
	}
	return text
}

// OpenAPI returns the document of all operations, which must all be registered by then.
func (a *API) OpenAPI() []byte { return a.spec() }

// nullable documents which values may be null. Huma marks pointers to plain types, but omits null from their enums.
func nullable(document []byte, registry huma.Registry) ([]byte, error) {
	var all map[string]any
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber()
	if err := decoder.Decode(&all); err != nil {
		return nil, err
	}
	components, _ := all["components"].(map[string]any)
	schemas, _ := components["schemas"].(map[string]any)
	for name, schema := range schemas {
		object, _ := schema.(map[string]any)
		properties, _ := object["properties"].(map[string]any)
		if t := registry.TypeFromRef(schemaPrefix + name); t != nil {
			nullPointers(t, properties)
		}
	}
	nullEnums(all)
	return json.Marshal(all)
}

// nullPointers marks the pointers of a type that responses always contain.
func nullPointers(t reflect.Type, properties map[string]any) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return
	}
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		property, there := properties[name].(map[string]any)
		switch {
		case f.Anonymous && name == "":
			nullPointers(f.Type, properties)
		case !there || f.Type.Kind() != reflect.Pointer || strings.Contains(options, "omit"):
		case property["$ref"] != nil:
			properties[name] = map[string]any{"anyOf": []any{property, map[string]any{"type": "null"}}}
		default:
			if kind, plain := property["type"].(string); plain {
				property["type"] = []any{kind, "null"}
			}
		}
	}
}

// nullEnums adds null to the enums of values that may be null.
func nullEnums(value any) {
	switch v := value.(type) {
	case []any:
		for _, one := range v {
			nullEnums(one)
		}
	case map[string]any:
		kinds, _ := v["type"].([]any)
		if values, is := v["enum"].([]any); is && slices.Contains(kinds, any("null")) && !slices.Contains(values, nil) {
			v["enum"] = append(values, nil)
		}
		for name, one := range v {
			if name != "example" && name != "examples" {
				nullEnums(one)
			}
		}
	}
}
