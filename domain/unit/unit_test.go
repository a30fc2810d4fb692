package unit

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestNumbersAreParsedExactly(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Money{
		"0": 0, "12.5": 1250, "-0.01": -1, "1250.00": 125000, "9999999999999.99": 999999999999999,
	} {
		got, err := ParseMoney(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for text, problem := range map[string]string{
		"": "expected a number", "-": "expected a number", ".5": "expected a number", "5.": "expected a number",
		"05": "expected a number", "+5": "expected a number", `"5"`: "expected a number", "true": "expected a number",
		"NaN": "expected a number", "1.2.3": "expected a number", "１": "expected a number",
		"1e3": "exponents are not allowed", "1.5E2": "exponents are not allowed",
		"12.345": "at most 2 decimal places", "12345678901234": "at most 13 digits before the decimal point",
	} {
		_, err := ParseMoney(text)
		require.EqualError(t, err, problem, text)
	}
	_, err := ParseGrams("1234567890")
	require.EqualError(t, err, "at most 9 digits before the decimal point")
	_, err = ParsePercent("99.9999")
	require.EqualError(t, err, "at most 3 decimal places")
}

func TestNumbersKeepTheirValueThroughJSON(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		type all struct {
			M Money
			G Grams
			P Percent
		}
		in := all{
			Money(rapid.Int64Range(-999999999999999, 999999999999999).Draw(t, "money")),
			Grams(rapid.Int64Range(-999999999999, 999999999999).Draw(t, "grams")),
			Percent(rapid.Int64Range(0, 100000).Draw(t, "percent")),
		}
		text, err := json.Marshal(in)
		require.NoError(t, err)
		var out all
		require.NoError(t, json.Unmarshal(text, &out))
		require.Equal(t, in, out)
		require.True(t, in.M.Decimal().Equal(decimal.RequireFromString(in.M.String())))
		require.True(t, in.G.Decimal().Equal(decimal.RequireFromString(in.G.String())))
		require.True(t, in.P.Decimal().Equal(decimal.RequireFromString(in.P.String())))
	})
}

func TestDatesAreCalendarDays(t *testing.T) {
	t.Parallel()
	for day := time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC); day.Year() < 2200; day = day.AddDate(0, 0, 1) {
		text := day.Format(time.DateOnly)
		d, err := ParseDate(text)
		require.NoError(t, err)
		require.Equal(t, text, d.String())
		require.Equal(t, DateOf(day), d)
	}
	for _, text := range []string{
		"", "2025-02-29", "2025-13-01", "2025-00-10", "2025-04-31", "2025-1-1", "2025-03-31T00:00:00Z", "31-03-2025", "1899-12-31",
		"2200-01-01", "२०२५-०३-३१", "+025-01-01",
	} {
		_, err := ParseDate(text)
		require.ErrorIs(t, err, errDate, text)
	}
}

func TestDigitsAreGroupedAsInIndia(t *testing.T) {
	t.Parallel()
	for plain, want := range map[string]string{
		"": "", "0": "0", "999": "999", "1000": "1,000", "-1234567.505": "-12,34,567.505", "100000": "1,00,000",
		"12345678901": "12,34,56,78,901", "0.0001": "0.0001",
	} {
		require.Equal(t, want, Indian(plain))
	}
}
