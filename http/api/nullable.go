package api

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// nullable says in the document which values may be null. Huma says it of pointers to plain types, and leaves null out of their enums.
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

// nullPointers says it of the pointers of a type that are always answered.
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
