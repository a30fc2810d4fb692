package api

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
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

// OpenAPI returns the document of all operations. Call it after all are registered.
func (a *API) OpenAPI() []byte { return a.spec() }

// nullable adds null to the document for values that may be null. Huma marks pointers to plain types, but omits null from their enums.
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
	addFieldExamples(all, schemas)
	if err := addSharedExamples(schemas); err != nil {
		return nil, err
	}
	paths, _ := all["paths"].(map[string]any)
	all["paths"] = pathsInOrder(paths)
	return json.Marshal(all)
}

// pathsInOrder orders paths by the area of their first operation, in the order of areas, then by their names.
type pathsInOrder map[string]any

// areas are the first tags of operations in the document's order.
var areas = []string{"Ledger", "Order drafts", "Khata", "Marketplace", "Messaging", "Webhooks", "Audit", "Operations"}

// MarshalJSON writes the paths in their order.
func (p pathsInOrder) MarshalJSON() ([]byte, error) {
	place := func(path string) int {
		for _, operation := range p[path].(map[string]any) { //nolint:forcetypeassert // a path has an object
			if o, is := operation.(map[string]any); is {
				tags, _ := o["tags"].([]any)
				return slices.IndexFunc(areas, func(area string) bool { return len(tags) > 0 && tags[0] == area })
			}
		}
		return -1
	}
	names := slices.SortedFunc(maps.Keys(p), func(a, b string) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), strings.Compare(a, b))
	})
	text := []byte{'{'}
	for i, name := range names {
		one, err := json.Marshal(map[string]any{name: p[name]})
		if err != nil {
			return nil, err
		}
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, one[1:len(one)-1]...)
	}
	return append(text, '}'), nil
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
