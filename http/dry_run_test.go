package http_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
)

func TestADryRunAnswersWhatWouldBeAndWritesNothing(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	clerk := o.Clerk(apptest.Home)
	account := apptest.Open(clerk, "HDFC")
	first := apptest.Post(clerk, account, apptest.Deposit("2025-03-01", "10"))
	second := apptest.Post(clerk, account, apptest.Deposit("2025-03-03", "1"))
	before := o.Head()
	dry := clerk.With("Bahi-Dry-Run", "true")

	opened := dry.POST("/bank", `{"name":" SBI "}`).Status(200).Body(`{"name":"SBI","balance":0}`)
	require.Empty(t, opened.Header("ETag"))
	dry.PUT(fmt.Sprintf("/bank/%d", account),
		`{"name":"SBI"}`).Status(200).Body(fmt.Sprintf(`{"id":%d,"name":"SBI","balance":11,"revision":0}`, account))

	posted := dry.POST(apptest.Ledger(account), apptest.Withdrawal("2025-03-02", "0.5")).Status(200).
		Body(`{"date":"2025-03-02","in_entries":[],"out_entries":[{"amount":0.5}],"balance":9.5}`)
	require.Equal(t, strconv.FormatInt(before, 10), posted.Header("Bahi-Position"), "up to where it has read")
	dry.POST(apptest.Ledger(account), apptest.Deposit("2025-03-01", "0.5")).Status(200). // behind the row of that day
												Body(`{"date":"2025-03-01","in_entries":[{"amount":0.5}],"out_entries":[],"balance":10.5}`)
	dry.POST(apptest.Ledger(account), apptest.Deposit("2024-01-01", "0.5")).Status(200).
		Body(`{"date":"2024-01-01","in_entries":[{"amount":0.5}],"out_entries":[],"balance":0.5}`)

	edited := dry.PUT(apptest.Ledger(account), fmt.Sprintf(`{"id":%d,"in_entries":%s}`, first.ID, apptest.Entry("12"))).Status(200).
		Body(fmt.Sprintf(`{"id":%d,"date":"2025-03-01","in_entries":[{"amount":12}],"out_entries":[],"balance":12,"revision":0}`, first.ID))
	require.Equal(t, `"0"`, edited.Header("ETag"), "of what it is now, for If-Match")
	dry.PUT(apptest.Ledger(account), fmt.Sprintf(`{"id":%d,"date":"2025-03-04"}`, first.ID)).Status(200). // moves behind the other
														Body(fmt.Sprintf(`{"id":%d,"date":"2025-03-04","in_entries":[{"amount":10}],"out_entries":[],"balance":11,"revision":0}`,
			first.ID))
	dry.PUT(apptest.Ledger(account), fmt.Sprintf(`{"id":%d,"date":"2025-02-01"}`, second.ID)).Status(200). // and before it
														Body(fmt.Sprintf(`{"id":%d,"date":"2025-02-01","in_entries":[{"amount":1}],"out_entries":[],"balance":1,"revision":0}`,
			second.ID))

	dry.POST(apptest.Ledger(account, "/rows"),
		apptest.Bulk(apptest.Deposit("2025-03-02", "2"), apptest.Deposit("2025-03-01", "4"),
			apptest.Withdrawal("2025-03-02", "1"))).Status(200).Body(`{"rows":[
		{"date":"2025-03-02","in_entries":[{"amount":2}],"out_entries":[],"balance":16},
		{"date":"2025-03-01","in_entries":[{"amount":4}],"out_entries":[],"balance":14},
		{"date":"2025-03-02","in_entries":[],"out_entries":[{"amount":1}],"balance":15}]}`)
	dry.DELETE(apptest.At(account, first.ID)).Status(200)
	dry.DELETE(fmt.Sprintf("/bank-account/%d", account)).Status(200)
	dry.PUT("/books/lock", `{"locked_through":"2025-02-28"}`).Status(200)

	require.Equal(t, before, o.Head())
	require.Equal(t, "03-01 10, 03-03 11", apptest.Balances(clerk, apptest.Ledger(account)))
	third := apptest.Post(clerk, account, apptest.Deposit("2025-03-05", "1"))
	require.Equal(t, second.ID+1, third.ID, "no number was used up")
}
