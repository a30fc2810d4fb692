package ledgerhttp_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
)

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
