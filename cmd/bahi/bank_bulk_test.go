package main_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/http/api/apitest"
)

// bulk is the body of rows posted together.
func bulk(rows ...string) string { return `{"rows":[` + strings.Join(rows, ",") + `]}` }

func posted(a *apitest.Answer) []bankRow {
	var p struct {
		Rows []bankRow `json:"rows"`
	}
	a.JSON(&p)
	return p.Rows
}

func TestRowsArePostedTogether(t *testing.T) {
	t.Parallel()
	clerk := start(t).clerk(home)
	account := open(clerk, "HDFC")
	post(clerk, account, deposit("2025-03-01", "1"))
	a := clerk.POST(ledger(account, "/rows"), bulk(deposit("2025-03-02", "2"), withdrawal("2025-02-01", "0.5"), deposit("2025-03-02", "4"))).Status(201)
	rows := posted(a)
	require.Len(t, rows, 3)
	a.Body(fmt.Sprintf(`{"rows":[
		{"id":%d,"date":"2025-03-02","in_entries":[{"amount":2}],"out_entries":[],"revision":0},
		{"id":%d,"date":"2025-02-01","in_entries":[],"out_entries":[{"amount":0.5}],"revision":0},
		{"id":%d,"date":"2025-03-02","in_entries":[{"amount":4}],"out_entries":[],"revision":0}]}`, rows[0].ID, rows[0].ID+1, rows[0].ID+2))
	require.NotEmpty(t, a.Header("Bahi-Position"))
	require.Equal(t, "02-01 -0.5, 03-01 0.5, 03-02 2.5, 03-02 6.5", balances(clerk, ledger(account)))

	// Each is a row like any other from then on, at once.
	clerk.With("If-Match", `"0"`).PUT(ledger(account), fmt.Sprintf(`{"id":%d,"in_entries":%s}`, rows[2].ID, entry("5"))).Status(200)
	clerk.DELETE(at(account, rows[0].ID)).Status(204)
	require.Equal(t, "02-01 -0.5, 03-01 0.5, 03-02 5.5", balances(clerk, ledger(account)))
	var h []struct{ Change string }
	lenient(t, clerk.GET(at(account, rows[2].ID, "/history")), &h)
	require.Len(t, h, 2, "it was added once, though by two events")
}

func TestRowsPostedTogetherComeWithTheirBalancesWhenAsked(t *testing.T) {
	t.Parallel()
	clerk := start(t).clerk(home)
	account := open(clerk, "HDFC")
	post(clerk, account, deposit("2025-03-01", "1"))
	whole := clerk.With("Prefer", "return=representation")
	a := whole.POST(ledger(account, "/rows"), bulk(deposit("2025-03-02", "2"), withdrawal("2025-02-01", "0.5"), deposit("2025-03-02", "4"))).Status(201)
	require.Equal(t, "return=representation", a.Header("Preference-Applied"))
	var got []string
	for _, r := range posted(a) {
		got = append(got, r.Balance.String())
	}
	require.Equal(t, []string{"2.5", "-0.5", "6.5"}, got)
}

func TestOneBadRowRefusesAll(t *testing.T) {
	t.Parallel()
	o := start(t)
	clerk := o.clerk(home)
	account := open(clerk, "HDFC")
	before := o.head()
	path := ledger(account, "/rows")
	clerk.POST(path, bulk(deposit("2025-03-01", "1"), deposit("2025-03-02", "0"), `{"date":"2199-01-01"}`)).Problem(422, "Validation error",
		"rows[1].in_entries[0].amount", "must be more than 0",
		"rows[2].date", "must not be after tomorrow",
		"rows[2].in_entries", "at least one entry is needed, on either side")
	clerk.POST(path, bulk(deposit("2025-03-01", "1"), deposit("2025-03-02", "1e3"), `{"dat":"x"}`)).Problem(422, "Validation error",
		"rows[1].in_entries[0].amount", "exponents are not allowed", "rows[2].dat", "unknown field", "rows[2].date", "is required")
	clerk.POST(path, bulk(deposit("2025-03-01", "0"), `{"date":"2025-02-30","in_entries":[{"amount":-1},{"amount":"x"}]}`)).Problem(422, "Validation error",
		"rows[1].date", "expected a date such as 2025-03-31, from 1900 to 2199",
		"rows[1].in_entries[1].amount", "expected a number",
		"rows[0].in_entries[0].amount", "must be more than 0",
		"rows[1].in_entries[0].amount", "must be more than 0")
	clerk.POST(path, `{"rows":[]}`).Problem(422, "Validation error", "rows", "at least one row is needed")
	clerk.POST(path, `{}`).Problem(422, "Validation error", "rows", "is required")
	clerk.POST(path, `{"rows":{}}`).Problem(422, "Validation error", "rows", "expected a list")
	clerk.POST(path, `[`+deposit("2025-03-01", "1")+`]`).Problem(422, "Validation error", "body", "expected an object")
	clerk.GET(ledger(account)).Status(200).Body(`[]`)
	require.Equal(t, before, o.head(), "nothing was written, no number was taken")
}

func TestAThousandRowsArePostedAndNotOneMore(t *testing.T) {
	t.Parallel()
	clerk := start(t).clerk(home)
	account := open(clerk, "HDFC")
	rows := make([]string, 1000)
	for i := range rows {
		rows[i] = deposit("2025-03-01", "0.01")
	}
	require.Len(t, posted(clerk.POST(ledger(account, "/rows"), bulk(rows...)).Status(201)), 1000)
	clerk.POST(ledger(account, "/rows"), bulk(slices.Concat(rows, rows[:1])...)).Problem(422, "Validation error", "rows", "at most 1000 rows")
	require.Equal(t, "10", clerkBanks(clerk.GET("/banks").Status(200))[0].Balance.String())
	require.Equal(t, "1000", clerk.GET(ledger(account, "?page_size=1")).Status(200).Header("X-Total-Count"))
	var last []bankRow
	clerk.GET(ledger(account, "?page_size=1&page=1000")).Status(200).JSON(&last)
	require.Equal(t, "10", last[0].Balance.String())
}

func TestWhatWasReadCanBePostedTogether(t *testing.T) {
	t.Parallel()
	clerk := start(t).clerk(home)
	from, to := open(clerk, "HDFC"), open(clerk, "SBI")
	post(clerk, from, deposit("2025-03-01", "1"))
	post(clerk, from, withdrawal("2025-03-02", "3"))
	clerk.POST(ledger(to, "/rows"), `{"rows":`+clerk.GET(ledger(from)).Status(200).Text+`}`).Status(201)
	require.Equal(t, balances(clerk, ledger(from)), balances(clerk, ledger(to)))
}
