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
