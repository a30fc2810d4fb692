package http_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"bahi/domain/ledger"
	"bahi/internal/test/worktest"

	"github.com/stretchr/testify/require"
)

// fieldSchema is a schema of the document with the fields that it describes.
type fieldSchema struct {
	Ref         string `json:"$ref"`
	Type        any
	Description string
	Examples    []any
	Properties  map[string]fieldSchema
	Items       *fieldSchema
	AnyOf       []fieldSchema
	OneOf       []fieldSchema
}

// unitNamed matches a description that names the unit of a quantity.
var unitNamed = regexp.MustCompile(`(?i)rupee|gram|carat|percent|second|0 to 1|unit`)

// undescribed lists the fields below a schema that have no description, and the quantities that have no unit in it.
func (s fieldSchema) undescribed(place string) (all []string) {
	for name, field := range s.Properties {
		at := place + "." + name
		quantity := strings.Contains(fmt.Sprint(field.Type), "number")
		if field.Description == "" || quantity && !unitNamed.MatchString(field.Description) {
			all = append(all, at)
		}
		all = append(all, field.undescribed(at)...)
	}
	if s.Items != nil {
		all = append(all, s.Items.undescribed(place+"[]")...)
	}
	for _, one := range s.AnyOf {
		all = append(all, one.undescribed(place)...)
	}
	return all
}

// withoutExample lists the fields of a schema that have neither an example nor a schema of their own.
func (s fieldSchema) withoutExample(place string) (all []string) {
	for name, field := range s.Properties {
		refers := field.Ref != "" || len(field.AnyOf) > 0 || field.Items != nil && field.Items.Ref != ""
		if len(field.Examples) == 0 && !refers && len(field.Properties) == 0 {
			all = append(all, place+"."+name)
		}
	}
	return all
}

func TestEveryFieldOfTheDocumentIsDescribedByTextAndExample(t *testing.T) {
	t.Parallel()
	text := worktest.File(t, "testdata/openapi.json")
	type content map[string]struct{ Schema fieldSchema }
	var document struct {
		Components struct{ Schemas map[string]fieldSchema }
		Paths      map[string]map[string]struct {
			OperationID string
			Parameters  []struct {
				Name, Description string
				Schema            fieldSchema
			}
			RequestBody struct{ Content content }
			Responses   map[string]struct{ Content content }
		}
	}
	require.NoError(t, json.Unmarshal(text, &document))
	for _, enum := range regexp.MustCompile(`"enum": \[[^]]*"karigar"[^]]*\]`).FindAllString(string(text), -1) {
		for _, l := range ledger.All {
			require.True(t, !l.Metal || strings.Contains(enum, `"`+l.Name+`"`), "add ledger %s to the enum tags that list karigar", l.Name)
		}
	}
	var missing []string
	for name, s := range document.Components.Schemas {
		require.Empty(t, s.withoutExample(name), "give an example in http/testdata/field_examples.json")
		missing = append(missing, s.undescribed(name)...)
	}
	for _, operations := range document.Paths {
		for _, op := range operations {
			for _, p := range op.Parameters {
				if p.Description == "" && p.Schema.Description == "" {
					missing = append(missing, op.OperationID+" parameter "+p.Name)
				}
			}
			for _, media := range op.RequestBody.Content {
				missing = append(missing, media.Schema.undescribed(op.OperationID)...)
			}
			for _, response := range op.Responses {
				for _, media := range response.Content {
					missing = append(missing, media.Schema.undescribed(op.OperationID)...)
				}
			}
		}
	}
	slices.Sort(missing)
	require.Empty(t, missing, "add a doc tag to each. The doc of a quantity names its unit in a word that unitNamed matches.")
}
