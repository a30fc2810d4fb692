package http_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
)

// addSharedExamples gives an example to each property that no operation's example has: the one of field_examples.json, by
// the schema and the name or by the name, or else that of a property with the same name and type.
func addSharedExamples(schemas map[string]any) error {
	var named map[string]any
	text, err := os.ReadFile("testdata/field_examples.json")
	if err == nil {
		err = json.Unmarshal(text, &named)
	}
	if err != nil {
		return err
	}
	shared, missing := map[string]any{}, map[string][]map[string]any{}
	for _, schema := range slices.Sorted(maps.Keys(schemas)) {
		object, _ := schemas[schema].(map[string]any)
		properties, _ := object["properties"].(map[string]any)
		for name, one := range properties {
			property, _ := one.(map[string]any)
			kind := property["type"]
			if nullable, is := kind.([]any); is {
				kind = nullable[0]
			}
			items, _ := property["items"].(map[string]any)
			key := fmt.Sprint(name, kind, property["format"], property["enum"], property["minItems"], items["type"], items["format"])
			values, _ := property["enum"].([]any)
			switch {
			case property["examples"] != nil:
				if shared[key] == nil && !ofObjects(property) {
					shared[key] = property["examples"]
				}
			case property["$ref"] != nil || property["anyOf"] != nil || ofObjects(property): // its own properties have examples
			case len(values) > 0:
				property["examples"] = values[:1]
			case kind == "boolean":
				property["examples"] = []any{true}
			case property["format"] == "date-time":
				property["examples"] = []any{"2025-04-02T09:15:00Z"}
			case property["format"] == "date":
				property["examples"] = []any{"2025-04-02"}
			case is(named[schema+"."+name], kind):
				property["examples"] = []any{named[schema+"."+name]}
			case is(named[name], kind):
				property["examples"] = []any{named[name]}
			default:
				missing[key] = append(missing[key], property)
			}
		}
	}
	for key, properties := range missing {
		for _, property := range properties {
			if shared[key] != nil {
				property["examples"] = shared[key]
			}
		}
	}
	return nil
}

// ofObjects reports whether a property is a list of objects.
func ofObjects(property map[string]any) bool {
	items, _ := property["items"].(map[string]any)
	return items["$ref"] != nil || items["properties"] != nil || items["anyOf"] != nil
}

// is reports whether a JSON value has a schema's type, if the schema has one.
func is(value, kind any) bool {
	switch v := value.(type) {
	case nil:
		return false
	case string:
		return kind == nil || kind == "string"
	case []any:
		return kind == nil || kind == "array"
	case float64:
		return kind == nil || kind == "number" || kind == "integer" && v == math.Trunc(v)
	}
	return kind == nil || kind == "object"
}

// addFieldExamples gives each property of a schema the first value that an example of an operation has for it.
func addFieldExamples(value any, schemas map[string]any) {
	switch v := value.(type) {
	case []any:
		for _, one := range v {
			addFieldExamples(one, schemas)
		}
	case map[string]any:
		schema, described := v["schema"].(map[string]any)
		if example, given := v["example"]; given && described {
			addExamples(schema, example, schemas)
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			addFieldExamples(v[name], schemas)
		}
	}
}

// maxExample bounds the text of a property's example. An object has examples in its own properties.
const maxExample = 200

// addExamples gives the properties of a schema the values of an example, unless they have one.
func addExamples(schema map[string]any, example any, schemas map[string]any) {
	if ref, is := schema["$ref"].(string); is {
		schema, _ = schemas[strings.TrimPrefix(ref, schemaPrefix)].(map[string]any)
	}
	if choices, is := schema["anyOf"].([]any); is && len(choices) > 0 {
		schema, _ = choices[0].(map[string]any)
		addExamples(schema, example, schemas)
		return
	}
	switch v := example.(type) {
	case []any:
		items, _ := schema["items"].(map[string]any)
		for _, one := range v {
			addExamples(items, one, schemas)
		}
	case map[string]any:
		properties, _ := schema["properties"].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(v)) {
			one := v[name]
			property, known := properties[name].(map[string]any)
			if !known || one == nil {
				continue
			}
			addExamples(property, one, schemas)
			text, err := json.Marshal(one)
			_, object := one.(map[string]any)
			if property["examples"] == nil && property["$ref"] == nil && !object && err == nil && len(text) <= maxExample {
				property["examples"] = []any{one}
			}
		}
	}
}
