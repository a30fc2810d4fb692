package pages

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

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
