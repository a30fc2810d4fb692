package auditview

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/unit"
)

func on(t *testing.T, text string) unit.Date {
	t.Helper()
	d, err := unit.ParseDate(text)
	require.NoError(t, err)
	return d
}

// rupees returns a change of account 1, which was opened on 15 January. moves are pairs of a day and the amount that the change adds from
// that day on.
func rupees(t *testing.T, position event.Position, recorded string, moves ...any) Change {
	t.Helper()
	c := Change{Position: position, At: on(t, recorded).Time().Add(20 * time.Hour), Account: &Named{ID: 1, Name: "HDFC"},
		opened: on(t, "2025-01-15").Time()}
	for i := 0; i < len(moves); i += 2 {
		day, _ := moves[i].(string)
		amount, _ := moves[i+1].(int)
		c.moves = append(c.moves, move{day: on(t, day), cash: unit.Sum{Decimal: decimal.NewFromInt(int64(amount))}})
	}
	return c
}

func TestLateRecordedBackDatedChangeRestatesAClosing(t *testing.T) {
	t.Parallel()
	for sentence, c := range map[string]struct {
		change Change
		want   []string
	}{
		"in its own month":               {rupees(t, 5, "2025-03-20", "2025-03-01", 10), nil},
		"on the last day of the month":   {rupees(t, 5, "2025-03-31", "2025-03-01", 10), nil},
		"on the day after":               {rupees(t, 5, "2025-04-01", "2025-03-31", 10), []string{"2025-03-31"}},
		"months later":                   {rupees(t, 5, "2025-06-02", "2025-03-31", 10), []string{"2025-03-31", "2025-04-30", "2025-05-31"}},
		"of a day before the account":    {rupees(t, 5, "2025-03-02", "1999-03-31", 10), []string{"2025-01-31", "2025-02-28"}},
		"another amount on the same day": {rupees(t, 5, "2025-04-01", "2025-03-05", -10, "2025-03-05", 7), []string{"2025-03-31"}},
		"the same amount":                {rupees(t, 5, "2025-04-01", "2025-03-05", -10, "2025-03-05", 10), nil},
		"moved within the month":         {rupees(t, 5, "2025-04-01", "2025-03-05", -10, "2025-03-06", 10), nil},
		"moved to another month":         {rupees(t, 5, "2025-06-01", "2025-02-05", -10, "2025-04-06", 10), []string{"2025-02-28", "2025-03-31"}},
		"without an amount":              {rupees(t, 5, "2025-06-01"), nil},
	} {
		r := Restated{Zone: time.UTC}
		r.Add(c.change)
		var got []string
		for k, m := range r.moved {
			got = append(got, k.day.String())
			require.Equal(t, []event.Position{5, 5}, []event.Position{m.first, m.last})
		}
		slices.Sort(got)
		require.Equal(t, c.want, got, sentence)
	}
	zoned := Restated{Zone: time.FixedZone("IST", 5*3600+1800)}
	zoned.Add(rupees(t, 5, "2025-03-31", "2025-03-01", 10)) // recorded at 20:00 UTC, already April in India
	require.Len(t, zoned.moved, 1)
}

func TestChangesOfOneClosingMakeOneRestatement(t *testing.T) {
	t.Parallel()
	r := Restated{Zone: time.UTC}
	for _, position := range []event.Position{5, 7, 9} {
		r.Add(rupees(t, position, "2025-04-02", "2025-03-05", 1))
	}
	require.Len(t, r.moved, 1)
	m := r.moved[closing{1, on(t, "2025-03-31")}]
	require.Equal(t, closingMove{name: "HDFC", changes: 3, first: 5, last: 9}, *m)
}

func TestFiscalYearsEndWithMarch(t *testing.T) {
	t.Parallel()
	for day, want := range map[string]string{"2027-03-31": "FY 2026-27", "2000-03-31": "FY 1999-00", "2027-03-30": "", "2026-12-31": ""} {
		require.Equal(t, want, fiscalYear(on(t, day)), day)
	}
}

func TestFieldsComeInTheOrderOfTheRow(t *testing.T) {
	t.Parallel()
	before := map[string]json.RawMessage{"in_entries[10].amount": json.RawMessage("1"), "in_entries[2].amount": json.RawMessage("2"),
		"same": json.RawMessage("1")}
	after := map[string]json.RawMessage{"date": json.RawMessage(`"x"`), "in_entries[2].amount": json.RawMessage("3"),
		"same": json.RawMessage("1")}
	require.Equal(t, []Field{
		{"date", json.RawMessage("null"), json.RawMessage(`"x"`)},
		{"in_entries[2].amount", json.RawMessage("2"), json.RawMessage("3")},
		{"in_entries[10].amount", json.RawMessage("1"), json.RawMessage("null")},
	}, differences(before, after))
}
