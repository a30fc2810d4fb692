package ledgerhttp_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
)

func TestTheLockIsSetReadMovedAndTakenAway(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	clerk := o.Clerk(o.Home)
	a := clerk.GET("/books/lock").Status(200).Body(`{"locked_through":null}`)
	require.Empty(t, a.Header("ETag"))
	a = clerk.PUT("/books/lock", `{"locked_through":"2025-03-31"}`).Status(200).Body(`{"locked_through":"2025-03-31"}`)
	require.Equal(t, `"0"`, a.Header("ETag"))
	require.Equal(t, `"0"`, clerk.GET("/books/lock").Status(200).Body(`{"locked_through":"2025-03-31"}`).Header("ETag"))
	o.Clerk(o.Abroad).GET("/books/lock").Status(200).Body(`{"locked_through":null}`)

	clerk.PUT("/books/lock", `{"locked_through":"2025-04-30"}`).Status(200)
	const why = "Moving the lock back requires a reason (header Bahi-Reason)"
	clerk.PUT("/books/lock", `{"locked_through":"2025-03-31"}`).Problem(422, why)
	clerk.With("Bahi-Reason", "a late bill").PUT("/books/lock", `{"locked_through":"2025-03-31"}`).Status(200)
	clerk.With("Bahi-Reason", "again").PUT("/books/lock", `{"locked_through":null}`).Status(200).Body(`{"locked_through":null}`)
	clerk.GET("/books/lock").Status(200).Body(`{"locked_through":null}`)

	zone, err := o.Sys.Settings.Zone()
	require.NoError(t, err)
	today := time.Now().In(zone)
	if tomorrow := today.Add(time.Hour); tomorrow.Day() != today.Day() {
		today = tomorrow // midnight is near; both days are after yesterday
	}
	clerk.PUT("/books/lock", `{"locked_through":"`+today.Format(time.DateOnly)+`"}`).Problem(422, "Validation error", "locked_through",
		"must be before today")
	clerk.PUT("/books/lock", `{}`).Problem(422, "Validation error", "locked_through", "is required")
}

func TestWhatIsLockedStaysAsItIs(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	clerk := o.Clerk(o.Home)
	account, empty := apptest.Open(clerk, "HDFC"), apptest.Open(clerk, "SBI")
	old := apptest.Post(clerk, account, apptest.Deposit("2025-03-31", "10"))
	young := apptest.Post(clerk, account, apptest.Deposit("2025-04-01", "1"))
	clerk.PUT("/books/lock", `{"locked_through":"2025-03-31"}`).Status(200)
	for _, dry := range []string{"", "true"} {
		c := clerk.With("Bahi-Dry-Run", dry)
		c.POST(apptest.Ledger(account), apptest.Deposit("2025-03-31", "1")).Problem(409, apptest.Locked)
		c.POST(apptest.Ledger(account), apptest.Deposit("2024-03-31", "1")).Problem(409, apptest.Locked)
		c.POST(apptest.Ledger(account, "/rows"),
			apptest.Bulk(apptest.Deposit("2025-04-01", "1"), apptest.Deposit("2025-03-30", "1"))).Problem(409, apptest.Locked)
		c.PUT(apptest.Ledger(account), fmt.Sprintf(`{"id":%d,"in_entries":%s}`, old.ID, apptest.Entry("11"))).Problem(409, apptest.Locked)
		c.PUT(apptest.Ledger(account), fmt.Sprintf(`{"id":%d,"date":"2025-04-02"}`, old.ID)).Problem(409, apptest.Locked)
		c.PUT(apptest.Ledger(account), fmt.Sprintf(`{"id":%d,"date":"2025-03-31"}`, young.ID)).Problem(409, apptest.Locked)
		c.DELETE(apptest.At(account, old.ID)).Problem(409, apptest.Locked)
		c.DELETE(fmt.Sprintf("/bank-account/%d", account)).Problem(409, apptest.Locked)
	}
	require.Equal(t, "03-31 10, 04-01 11", apptest.Balances(clerk, apptest.Ledger(account)))

	// Unlocked rows can be changed. An edit that changes nothing is allowed for locked rows, too.
	clerk.PUT(apptest.Ledger(account), fmt.Sprintf(`{"id":%d,"in_entries":%s}`, young.ID, apptest.Entry("2"))).Status(200)
	clerk.PUT(apptest.Ledger(account), fmt.Sprintf(`{"id":%d,"in_entries":%s}`, old.ID, apptest.Entry("10"))).Status(200)
	clerk.PUT(fmt.Sprintf("/bank/%d", account), `{"name":"HDFC Current"}`).Status(200)
	clerk.DELETE(fmt.Sprintf("/bank-account/%d", empty)).Status(204)
	foreign := o.Clerk(o.Abroad)
	apptest.Post(foreign, apptest.Open(foreign, "ICICI"), apptest.Deposit("2025-03-01", "1"))

	clerk.With("Bahi-Reason", "wrong year").PUT("/books/lock", `{"locked_through":"2024-03-31"}`).Status(200)
	clerk.DELETE(apptest.At(account, old.ID)).Status(204)
	clerk.PUT("/books/lock", `{"locked_through":"2025-03-31"}`).Status(200)
	clerk.DELETE(fmt.Sprintf("/bank-account/%d", account)).Status(204) // its only locked row was deleted
}
