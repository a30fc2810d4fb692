package pages

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestReferencesAreFoundByTheirText(t *testing.T) {
	t.Parallel()
	r := newRefs("accounts", []choice{
		{Value: "karigar/3", Text: "Imran · karigar"}, {Value: "client/4", Text: "Imran · client"}, {Value: "7", Text: "Ram"}, {Value: "8",
			Text: "ram"}, {Value: "9", Text: "Ramesh"}, {Value: "bank/2", Text: "HDFC · bank"}, {Value: "10", Text: "Mehta Traders"},
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
		"Mehta Jewellers": "Is it Mehta Traders?", "Rameshh": "Is it Ramesh?",
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

func TestFiguresHaveIndianGroupingAndUnits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		n                             any
		rupees, grams, percent, plain string
	}{
		{json.Number("312400"), "₹3,12,400.00", "3,12,400.000 g", "312400 %", "312400"},
		{json.Number("1204.5"), "₹1,204.50", "1,204.500 g", "1204.5 %", "1204.5"},
		{json.Number("92"), "₹92.00", "92.000 g", "92 %", "92"},
		{"99.500", "₹99.50", "99.500 g", "99.5 %", "99.5"},
		{json.Number("0"), "₹0.00", "0.000 g", "0 %", "0"},
		{json.Number("-8.7"), "₹8.70", "8.700 g", "-8.7 %", "-8.7"},
		{json.Number("99999999999.99"), "₹99,99,99,99,999.99", "99,99,99,99,999.990 g", "99999999999.99 %", "99999999999.99"},
		{json.Number("1e999999999"), "", "", "", ""},
		{json.Number("1e-999999999"), "", "", "", ""},
		{"gold", "", "", "", ""},
		{nil, "", "", "", ""},
	} {
		require.Equal(t, []string{c.rupees, c.grams, c.percent, c.plain}, []string{rupees(c.n), grams(c.n), percent(c.n), plain(c.n)}, "%v", c.n)
	}
}

func TestFiguresOfDaysAndMomentsAreInTheLanguageAndTheZone(t *testing.T) {
	t.Parallel()
	india := time.FixedZone("IST", 5*3600+1800)
	for _, c := range []struct {
		in          language
		day, moment string
	}{
		{"en", "01 Mar 2025", "01 Jan 2026, 00:35"},
		{"hi", "01 मार्च 2025", "01 जन॰ 2026, 00:35"},
		{"gu", "01 માર્ચ 2025", "01 જાન્યુ 2026, 00:35"},
	} {
		require.Equal(t, c.day, c.in.day("2025-03-01"))
		require.Equal(t, c.moment, c.in.moment("2025-12-31T19:05:00Z", india))
		require.Empty(t, c.in.day(""))
		require.Equal(t, "soon", c.in.moment("soon", india))
	}
}

func TestFiguresOfBalancesHaveWordsForTheirSigns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, kind, account string
		in                  language
		want                []balance
	}{
		{"a bank with money", "bank", `{"balance":410000}`, "en", []balance{{"₹4,10,000.00", "", ""}}},
		{"an overdrawn bank", "bank", `{"balance":-500}`, "en", []balance{{"−₹500.00", "overdrawn", "owe"}}},
		{"an empty bank", "bank", `{"balance":0}`, "en", []balance{{"₹0.00", "", ""}}},
		{"a bank without a balance", "bank", `{"id":7}`, "en", nil},
		{
			"a karigar", "karigar",
			`{"cash_balance":1500,"cash_position":"we_owe","crystal_balance":-8.7,"crystal_position":"they_owe"}`, "en",
			[]balance{{"₹1,500.00", "you owe", "owe"}, {"8.700 g fine", "owes you", "owed"}},
		},
		{
			"a karigar in Hindi", "karigar",
			`{"cash_balance":1500,"cash_position":"we_owe","crystal_balance":-8.7,"crystal_position":"they_owe"}`, "hi",
			[]balance{{"₹1,500.00", "देना है", "owe"}, {"8.700 g फ़ाइन", "लेना है", "owed"}},
		},
		{
			"a polisher", "polisher",
			`{"cash_balance":0,"cash_position":"settled","crystal_balance":100,"crystal_position":"we_owe"}`, "en",
			[]balance{{"₹0.00", "settled", "settled"}, {"100.000 g weight", "you owe", "owe"}},
		},
		{"a row without balances", "client", `{"id":7,"cash_balance":5}`, "en", nil},
	} {
		require.Equal(t, c.want, c.in.balancesOf(c.kind, object(t, c.account)), c.name)
	}
}

// object returns a JSON object as pages decode it.
func object(t *testing.T, text string) (read map[string]any) {
	t.Helper()
	require.NoError(t, decode([]byte(text), &read))
	return read
}

func readTestManual(t *testing.T) (document, *manual) {
	t.Helper()
	d, err := readSpec()
	require.NoError(t, err)
	return d, readManual(d)
}

func TestDocsKnowEachOperation(t *testing.T) {
	t.Parallel()
	d, m := readTestManual(t)
	require.Greater(t, len(d), 280)
	for _, o := range d {
		require.NotEmpty(t, o.Answers, o.ID)
		for _, r := range o.Refusals {
			require.NotEmpty(t, m.Meanings[r.Status].Means, "%s: the guide for clients does not tell what %s means", o.ID, r.Status)
			require.NotEmpty(t, r.Codes()[0], "%s: %s has no code", o.ID, r.Status)
		}
		first, _, _ := strings.Cut(o.curl(""), "\n")
		require.NotContains(t, first, "{", o.ID)
	}
}

func TestGuidesLinkToEachOther(t *testing.T) {
	t.Parallel()
	_, m := readTestManual(t)
	anchors := map[string]bool{}
	for _, g := range m.guides {
		anchors[g.Link()] = true
		for _, s := range g.Sections {
			anchors[g.Link()+"#"+s.ID] = true
		}
	}
	for _, g := range m.guides {
		for _, link := range regexp.MustCompile(`href="([^"]+)"`).FindAllStringSubmatch(string(g.HTML), -1) {
			to := link[1]
			if strings.HasPrefix(to, "#") {
				to = g.Link() + to
			}
			require.True(t, anchors[to] || strings.HasPrefix(to, "https://"), "%s links to %s", g.Name, to)
		}
		require.NotContains(t, string(g.HTML), "<script")
	}
}

func TestTheMenuHasEachList(t *testing.T) {
	t.Parallel()
	for _, r := range resources {
		require.True(t, slices.ContainsFunc(places, func(p place) bool { return p.Link == r.path() }), r.path())
	}
}
