package pages

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReferencesAreFoundByTheirText(t *testing.T) {
	t.Parallel()
	r := newRefs("accounts", []choice{
		{Value: "karigar/3", Text: "Imran · karigar"}, {Value: "client/4", Text: "Imran · client"}, {Value: "7", Text: "Ram"}, {Value: "8",
			Text: "ram"}, {Value: "9", Text: "Ramesh"}, {Value: "bank/2", Text: "HDFC · bank"},
	})
	for text, want := range map[string]string{
		" imran  ·  KARIGAR": "karigar/3", "Ram · 7": "7", "ram · 8": "8", "RAMESH": "9", "hdfc": "bank/2",
	} {
		id, wrong := r.find("en", text)
		require.Equal(t, want, id, text)
		require.Empty(t, wrong, text)
	}
	for text, want := range map[string]string{
		"Imran": "Several have this name. Is it Imran · client / Imran · karigar?", "am": "Is it Ram · 7 / ram · 8 / Ramesh?",
		"ram": "Several have this name.", "Kiran": "open the account first", " ": "Type a name.", "7": "Is it Ram · 7?",
	} {
		id, wrong := r.find("en", text)
		require.Empty(t, id, text)
		require.Contains(t, wrong, want, text)
	}
	require.Equal(t, "Ram · 7", r.Text("7"))
	require.Empty(t, r.Text("1"))
}

func TestReferencesOfAFormAreTexts(t *testing.T) {
	t.Parallel()
	all := references{"karigar_id": newRefs("karigars", []choice{{Value: "3", Text: "Imran"}})}
	of := operationOf(t, "add-takada").Body
	form := all.schema(of)
	item := func(s *schema) *schema {
		for _, p := range s.Properties {
			if p.Name == "items" {
				return p.Items
			}
		}
		return nil
	}
	kinds := func(s *schema) map[string]string {
		found := map[string]string{}
		for _, p := range item(s).Properties {
			found[p.Name] = p.Kind + p.List
		}
		return found
	}
	require.Equal(t, "textkarigars", kinds(form)["karigar_id"])
	require.Equal(t, "whole", kinds(of)["karigar_id"], "the schema of the operation is unchanged")
	value := map[string]any{"items": []any{map[string]any{"karigar_id": json.Number("3"), "weight": json.Number("3")},
		map[string]any{"karigar_id": nil}, map[string]any{"karigar_id": json.Number("5")}}}
	require.Equal(t, map[string]any{"items": []any{
		map[string]any{"karigar_id": "Imran", "weight": json.Number("3")}, map[string]any{"karigar_id": nil}, map[string]any{},
	}}, all.texts(value))
}
