package pages

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func nameOfTest(actor string) string { return map[string]string{"user:1": "Asha"}[actor] }

func TestHistoryTellsEachChangeInWords(t *testing.T) {
	t.Parallel()
	const before = `{"id":7,"revision":0,"date":"2025-03-05","in_entries":[
		{"item_name":"payal","pure_weight":520,"fine_percent":92,"fine_weight":478.4,"computed":["fine_weight"]}],"out_entries":[]}`
	const after = `{"id":7,"revision":1,"date":"2025-03-06","cash_balance":5,"in_entries":[
		{"item_name":"payal","pure_weight":520.0,"fine_percent":91.5,"fine_weight":475.8,"other":1500,"computed":["fine_weight"]}],
		"out_entries":[{"amount":1200.5}]}`
	payal := "payal · Pure weight 520.000 g · Fine 92 % · Fine weight 478.400 g ƒ"
	for _, c := range []struct {
		name, version, sentence string
		in                      language
		lines                   []difference
	}{
		{"added", `{"change":"added","before":null,"after":` + before + `}`, "Asha added the row", "en", []difference{
			{"Date", "", "05 Mar 2025"}, {"Received, line 1", "", payal},
		}},
		{"edited", `{"change":"edited","before":` + before + `,"after":` + after + `}`, "Asha edited the row", "en", []difference{
			{"Date", "05 Mar 2025", "06 Mar 2025"},
			{"Received, line 1 · Fine %", "92 %", "91.5 %"},
			{"Received, line 1 · Fine weight", "478.400 g ƒ", "475.800 g ƒ"},
			{"Received, line 1 · Labour", "", "₹1,500.00"},
			{"Given, line 1", "", "Amount ₹1,200.50"},
		}},
		{"edited in Gujarati", `{"change":"edited","before":` + after + `,"after":` + before + `}`, "Asha એ એન્ટ્રી બદલી", "gu", []difference{
			{"તારીખ", "06 માર્ચ 2025", "05 માર્ચ 2025"},
			{"જમા, લાઇન 1 · ફાઇન %", "91.5 %", "92 %"},
			{"જમા, લાઇન 1 · ફાઇન વજન", "475.800 g ƒ", "478.400 g ƒ"},
			{"જમા, લાઇન 1 · મજૂરી", "₹1,500.00", ""},
			{"ઉધાર, લાઇન 1", "રકમ ₹1,200.50", ""},
		}},
		{"deleted", `{"change":"deleted","before":` + before + `,"after":null}`, "Asha deleted the row", "en", []difference{
			{"Date", "05 Mar 2025", ""}, {"Received, line 1", payal, ""},
		}},
		{"void", `{"change":"voided","before":` + before + `,"after":` + before + `}`, "Asha made the row void", "en", nil},
		{"reversed", `{"change":"reversed","before":` + before + `,"after":` + before + `}`, "Asha reversed the row", "en", nil},
		{
			"a reversal", `{"change":"added","after":{"date":"2025-03-06","reverses":7,"in_entries":[{"kind":"rate_cut","fine_weight":100,
			"rate":70000,"rate_unit":"per_10g","amount":700000,"computed":["amount"],"counter":true}]}}`,
			"Asha added the row, which reverses another", "en", []difference{{"Date", "", "06 Mar 2025"}, {
				"Received, line 1", "", "Rate cut · Fine weight 100.000 g · Rate ₹70,000.00 · per 10 g · Amount ₹7,00,000.00 ƒ",
			}},
		},
	} {
		version := object(t, c.version)
		maps.Copy(version, object(t, `{"at":"2025-03-06T09:30:00Z","actor":"user:1","position":128445,"reason":"misread"}`))
		require.Equal(t, []change{{
			At: "2025-03-06T09:30:00Z", Actor: "Asha", Reason: "misread", Position: "128445", Sentence: c.sentence, Lines: c.lines,
		}}, c.in.history("row", []map[string]any{version}, nil, nameOfTest), c.name)
	}
	require.Empty(t, language("en").history("row", nil, nil, nameOfTest))
}

func TestHistoryKnowsEachFieldOfAnEntry(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile("../testdata/openapi.json")
	require.NoError(t, err)
	var document struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]struct{ Enum []string }
			}
		}
	}
	require.NoError(t, decode(file, &document))
	fields := document.Components.Schemas["LedgerAnyEntry"].Properties
	known := []string{"computed", "counter"}
	for _, key := range entryFields {
		known = append(known, key)
		for _, word := range fields[key].Enum {
			require.NotEmpty(t, english["options"][textOf(word)], "the words of %s", key)
		}
	}
	require.Subset(t, known, slices.Collect(maps.Keys(fields)))
}

func TestHistoryFormulasHaveTheValues(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind, side, entry string
		want              []string
	}{
		{
			"karigar", "in",
			`{"pure_weight":520,"fine_percent":92,"fine_weight":478.4,"wastage_percent":2,"wastage_weight":10.4,` +
				`"computed":["fine_weight","wastage_weight"]}`,
			[]string{"520.000 g × 92 % = 478.400 g", "520.000 g × 2 % = 10.400 g"},
		},
		{
			"karigar", "out", `{"weight":500,"touch":99.5,"fine_weight":497.5,"computed":["fine_weight"]}`,
			[]string{"500.000 g × 99.5 % = 497.500 g"},
		},
		{
			"client", "out",
			`{"weight":10,"touch":92,"wastage_percent":3,"wastage_weight":0.3,"fine_weight":9.5,"rate":7000,"amount":66500,` +
				`"computed":["wastage_weight","fine_weight","amount"]}`,
			[]string{
				"10.000 g × (92 % + 3 %) = 9.500 g",
				"10.000 g × 3 % = 0.300 g",
				"9.500 g × ₹7,000.00 = ₹66,500.00",
			},
		},
		{
			"client", "in", `{"weight":10,"touch":92,"wastage_weight":0.5,"fine_weight":9.7,"computed":["fine_weight"]}`,
			[]string{"10.000 g × 92 % + 0.500 g = 9.700 g"},
		},
		{
			"client", "in", `{"weight":10,"touch":92,"fine_weight":9.2,"computed":["fine_weight"]}`,
			[]string{"10.000 g × 92 % = 9.200 g"},
		},
		{
			"bullion", "out", `{"fine_weight":100,"rate":70000,"rate_unit":"per_10g","amount":700000,"computed":["amount"]}`,
			[]string{"100.000 g × ₹70,000.00 ÷ 10 g = ₹7,00,000.00"},
		},
		{
			"bullion", "out", `{"fine_weight":100,"rate":7000000,"rate_unit":"per_kg","amount":700000,"computed":["rate"]}`,
			[]string{"₹7,00,000.00 ÷ 100.000 g × 1,000 g = ₹70,00,000.00"},
		},
		{
			"bullion", "in", `{"fine_weight":100,"rate":7000,"rate_unit":"per_gram","amount":700000,"computed":["rate"]}`,
			[]string{"₹7,00,000.00 ÷ 100.000 g = ₹7,000.00"},
		},
		{"client", "out", `{"weight":10,"touch":92,"fine_weight":9.2}`, nil},
		{"client", "out", `{"fine_weight":9.2,"computed":["fine_weight","carat"]}`, nil},
		{"polisher", "in", `{"weight":98.5,"amount":60}`, nil},
	} {
		var found []string
		for _, line := range language("en").entryLines(c.kind, c.side, map[string]any{c.side + "_entries": []any{object(t, c.entry)}}) {
			require.Len(t, line.Formulas, strings.Count(line.Text, worked), "each marked figure has its formula")
			for _, f := range line.Formulas {
				if f.Text != "" {
					found = append(found, f.Text)
				}
			}
		}
		require.Equal(t, c.want, found, c.entry)
	}
}
