package pages

import (
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// recordTexts adds the labels of all fields of the resources, and the words of their options.
func recordTexts(t *testing.T, used map[string]bool) {
	t.Helper()
	spec, err := os.ReadFile("../testdata/openapi.json")
	require.NoError(t, err)
	d, err := readDocument(spec)
	require.NoError(t, err)
	var of, asked func(s *schema)
	asked = func(s *schema) {
		if s == nil {
			return
		}
		asked(s.Items)
		for _, p := range s.Properties {
			asked(p.schema)
			if hint := hintOf(p.Description); hint != "" && !p.ReadOnly && !p.Fixed {
				used[hint] = true
			}
		}
	}
	of = func(s *schema) {
		if s == nil {
			return
		}
		for _, option := range s.Options {
			used[wordOf(option)] = true
		}
		of(s.Items)
		for _, p := range s.Properties {
			used[labelOf(p.Name)] = true
			of(p.schema)
		}
	}
	var each func(all []*resource)
	each = func(all []*resource) {
		for _, r := range all {
			operations := []string{r.list, r.get}
			narrow := map[string][]string{}
			if r.cells != "" {
				operations = nil // their pages show only the columns
			}
			for _, name := range append(r.columns, r.live...) {
				used[labelOf(name)] = true
			}
			for _, a := range append(r.listActions(), r.recordActions()...) {
				operations = append(operations, a.operation)
				narrow[a.operation] = a.fields
			}
			for _, id := range operations {
				o, known := d[id]
				require.True(t, known || id == "", "there is no operation %q", id)
				if id == "" {
					continue
				}
				body := o.Body
				if narrow[id] != nil {
					body = body.only("", narrow[id])
				}
				of(body)
				if r.refs == nil { // their fields have no hints
					asked(body)
				}
				if r.cells == "" && r.own == nil {
					of(o.Answer)
				}
				for _, p := range o.Params {
					if slices.Contains(r.without, p.Name) || r.cells != "" && p.In == "path" {
						continue
					}
					of(&schema{Properties: []property{p.property}})
				}
			}
			each(r.parts)
		}
	}
	one := []*resource{enquiryResource(), orderResource(), draftResource()}
	each(slices.Concat(operateResources(), settingsResources(), goodsResources(), one, resources))
}
