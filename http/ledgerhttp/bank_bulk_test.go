package ledgerhttp_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
)

func TestRowsArePostedTogether(t *testing.T) {
	t.Parallel()
	clerk := apptest.Clerk(t)
	account := apptest.Open(clerk, "HDFC")
	apptest.Post(clerk, account, apptest.Deposit("2025-03-01", "1"))
	a := clerk.POST(apptest.Ledger(account, "/rows"),
		apptest.Bulk(apptest.Deposit("2025-03-02", "2"), apptest.Withdrawal("2025-02-01", "0.5"), apptest.Deposit("2025-03-02", "4"))).Status(201)
	rows := apptest.Posted(a)
	require.Len(t, rows, 3)
	a.Body(fmt.Sprintf(`{"rows":[
		{"id":%d,"date":"2025-03-02","in_entries":[{"amount":2}],"out_entries":[],"revision":0},
		{"id":%d,"date":"2025-02-01","in_entries":[],"out_entries":[{"amount":0.5}],"revision":0},
		{"id":%d,"date":"2025-03-02","in_entries":[{"amount":4}],"out_entries":[],"revision":0}]}`, rows[0].ID, rows[0].ID+1, rows[0].ID+2))
	require.NotEmpty(t, a.Header("Bahi-Position"))
	require.Equal(t, "02-01 -0.5, 03-01 0.5, 03-02 2.5, 03-02 6.5", apptest.Balances(clerk, apptest.Ledger(account)))

	// Each is a row like any other from then on, at once.
	clerk.With("If-Match", `"0"`).PUT(apptest.Ledger(account),
		fmt.Sprintf(`{"id":%d,"in_entries":%s}`, rows[2].ID, apptest.Entry("5"))).Status(200)
	clerk.DELETE(apptest.At(account, rows[0].ID)).Status(204)
	require.Equal(t, "02-01 -0.5, 03-01 0.5, 03-02 5.5", apptest.Balances(clerk, apptest.Ledger(account)))
	var h []struct{ Change string }
	apptest.Lenient(t, clerk.GET(apptest.At(account, rows[2].ID, "/history")), &h)
	require.Len(t, h, 2, "it was added once, though by two events")
}

func TestRowsPostedTogetherComeWithTheirBalancesWhenAsked(t *testing.T) {
	t.Parallel()
	clerk := apptest.Clerk(t)
	account := apptest.Open(clerk, "HDFC")
	apptest.Post(clerk, account, apptest.Deposit("2025-03-01", "1"))
	whole := clerk.With("Prefer", "return=representation")
	a := whole.POST(apptest.Ledger(account, "/rows"),
		apptest.Bulk(apptest.Deposit("2025-03-02", "2"), apptest.Withdrawal("2025-02-01", "0.5"), apptest.Deposit("2025-03-02", "4"))).Status(201)
	require.Equal(t, "return=representation", a.Header("Preference-Applied"))
	var got []string
	for _, r := range apptest.Posted(a) {
		got = append(got, r.Balance.String())
	}
	require.Equal(t, []string{"2.5", "-0.5", "6.5"}, got)
}

func TestABulkNamesEachRowInALockedPeriod(t *testing.T) {
	t.Parallel()
	clerk := apptest.Clerk(t)
	account := apptest.Open(clerk, "HDFC")
	clerk.PUT("/books/lock", `{"locked_through":"2025-03-31"}`).Status(200)
	rows := apptest.Bulk(apptest.Deposit("2025-04-01", "1"), apptest.Deposit("2025-03-31", "1"), apptest.Deposit("2025-01-02", "1"))
	for _, dry := range []string{"false", "true"} {
		const why = "Books are locked through 2025-03-31"
		clerk.With("Bahi-Dry-Run", dry).POST(apptest.Ledger(account, "/rows"), rows).Problem(409, why, "rows[1].date", why, "rows[2].date", why)
	}
	clerk.GET(apptest.Ledger(account)).Status(200).Body(`[]`)
}

func TestAThousandRowsArePostedAndNotOneMore(t *testing.T) {
	t.Parallel()
	clerk := apptest.Clerk(t)
	account := apptest.Open(clerk, "HDFC")
	rows := make([]string, 1000)
	for i := range rows {
		rows[i] = apptest.Deposit("2025-03-01", "0.01")
	}
	require.Len(t, apptest.Posted(clerk.POST(apptest.Ledger(account, "/rows"), apptest.Bulk(rows...)).Status(201)), 1000)
	clerk.POST(apptest.Ledger(account, "/rows"), apptest.Bulk(slices.Concat(rows, rows[:1])...)).Problem(422, "Validation error",
		"rows", "at most 1000 rows")
	require.Equal(t, "10", apptest.ClerkBanks(clerk.GET("/banks").Status(200))[0].Balance.String())
	require.Equal(t, "1000", clerk.GET(apptest.Ledger(account, "?page_size=1")).Status(200).Header("X-Total-Count"))
	var last []apptest.BankRow
	clerk.GET(apptest.Ledger(account, "?page_size=1&page=1000")).Status(200).JSON(&last)
	require.Equal(t, "10", last[0].Balance.String())
}

func TestWhatWasReadCanBePostedTogether(t *testing.T) {
	t.Parallel()
	clerk := apptest.Clerk(t)
	from, to := apptest.Open(clerk, "HDFC"), apptest.Open(clerk, "SBI")
	apptest.Post(clerk, from, apptest.Deposit("2025-03-01", "1"))
	apptest.Post(clerk, from, apptest.Withdrawal("2025-03-02", "3"))
	clerk.POST(apptest.Ledger(to, "/rows"), `{"rows":`+clerk.GET(apptest.Ledger(from)).Status(200).Text+`}`).Status(201)
	require.Equal(t, apptest.Balances(clerk, apptest.Ledger(from)), apptest.Balances(clerk, apptest.Ledger(to)))
}

func TestOneBadRowRefusesAll(t *testing.T) {
	t.Parallel()
	clerk := apptest.Clerk(t)
	account := apptest.Open(clerk, "HDFC")
	path := apptest.Ledger(account, "/rows")
	clerk.POST(path, apptest.Bulk(apptest.Deposit("2025-03-01", "1"), apptest.Deposit("2025-03-02", "1e3"), `{"dat":"x"}`)).Problem(422,
		"Validation error",
		"rows[1].in_entries[0].amount", "exponents are not allowed", "rows[2].dat", "unknown field", "rows[2].date", "is required")
	clerk.POST(path, apptest.Bulk(apptest.Deposit("2025-03-01", "0"),
		`{"date":"2025-02-30","in_entries":[{"amount":-1},{"amount":"x"}]}`)).Problem(422, "Validation error",
		"rows[1].date", "expected a date such as 2025-03-31, from 1900 to 2199",
		"rows[1].in_entries[1].amount", "expected a number",
		"rows[0].in_entries[0].amount", "must be more than 0",
		"rows[1].in_entries[0].amount", "must be more than 0")
	clerk.POST(path, `{"rows":[]}`).Problem(422, "Validation error", "rows", "at least one row is needed")
	clerk.GET(apptest.Ledger(account)).Status(200).Body(`[]`)
}
