package http_test

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/app"
	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
)

func TestAReadSeesWhatWasAnsweredBeforeAndThePositionThatItNames(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	clerk := o.Clerk(apptest.Home)
	account := apptest.Open(clerk, "HDFC")
	var position string
	for i := range 30 {
		position = clerk.POST(apptest.Ledger(account), apptest.Deposit("2025-03-01", "1")).Status(201).Header("Bahi-Position")
		read := clerk.GET("/banks").Status(200)
		require.Equal(t, strconv.Itoa(i+1), apptest.ClerkBanks(read)[0].Balance.String())
		require.Equal(t, position, read.Header("Bahi-Position"))
		require.Empty(t, read.Header("Warning"))
	}
	for _, path := range []string{"/banks", apptest.Ledger(account), apptest.At(account, 1), apptest.At(account, 1, "/history"),
		apptest.Ledger(account, "/statement.pdf"), "/books/lock", fmt.Sprintf("/bank/%d", account)} {
		a := clerk.With("Bahi-Min-Position", position).GET(path).Status(200)
		require.Equal(t, position, a.Header("Bahi-Position"), path)
		clerk.With("Bahi-Min-Position", strconv.FormatInt(o.Head()+1, 10)).GET(path).Problem(422, "The log does not reach that position yet")
		clerk.With("Bahi-Min-Position", "18446744073709551615").GET(path).Problem(422, "The log does not reach that position yet")
	}
	for _, bad := range []string{"-1", "+1", "1.0", "x", "18446744073709551616", " "} {
		clerk.With("Bahi-Min-Position", bad).GET("/banks").Problem(422, "Validation error", "Bahi-Min-Position", "expected a position in the log")
	}
	clerk.With("Bahi-Min-Position", "0").GET("/banks").Status(200)
}

func TestAParkedProjectionAnswersWhatItHasAndSaysSoAtOnce(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	clerk := o.Clerk(apptest.Home)
	account := apptest.Open(clerk, "HDFC")
	row := apptest.Post(clerk, account, apptest.Deposit("2025-03-01", "1"))
	fresh := clerk.GET("/banks").Status(200).Header("Bahi-Position")
	o.Park()

	// Writes continue, and their responses come from the log.
	clerk.POST(apptest.Ledger(account), apptest.Deposit("2025-03-02", "2")).Status(201)
	require.Eventually(t, o.Parked, time.Minute, 5*time.Millisecond)
	with := apptest.Settings(t, o.Database)
	with.ReadWait = 100 * time.Millisecond // how long the next write waits for its row
	other := clerk.At(apptest.StartAs(t, with).URL).With("Prefer", "return=representation")
	late := apitest.Read[apptest.BankRow](other.POST(apptest.Ledger(account), apptest.Deposit("2025-03-03", "3")).Status(201))
	require.Nil(t, late.Balance, "nobody knows it yet")

	began := time.Now()
	const reads = 20
	for range reads {
		a := clerk.GET(apptest.Ledger(account)).Status(200)
		require.Equal(t, `110 - "Response is Stale"`, a.Header("Warning"))
		require.Equal(t, fresh, a.Header("Bahi-Position"))
	}
	require.Less(t, time.Since(began), 3*apptest.ReadWait, "each of them would have waited for that long")
	require.Equal(t, "03-01 1", apptest.Balances(clerk, apptest.Ledger(account)))
	require.Empty(t, clerk.GET(apptest.Ledger(account, "?known_at=", fresh)).Status(200).Header("Warning"), "the past is as it was")

	// A request for a position that the tables contain gets it. Without it, the response is a 503 (http/api).
	clerk.With("Bahi-Min-Position", fresh).GET("/banks").Status(200)

	// Everything else continues: other projections, edits of records that are not readable yet, and the health.
	require.NotEmpty(t, o.Key(apptest.Home, `{"ledger":"read"}`).Key)
	o.Operator().GET("/api/v1/api-keys").Status(200)
	clerk.PUT(apptest.Ledger(account), fmt.Sprintf(`{"id":%d,"in_entries":%s}`, late.ID, apptest.Entry("4"))).Status(200)
	last := clerk.DELETE(apptest.At(account, row.ID)).Status(204).Header("Bahi-Position")
	var ready struct {
		Ready       bool
		Projections []struct{ Name, State string }
	}
	apptest.Lenient(t, apptest.Readiness(t, o.Anonymous()), &ready)
	require.True(t, ready.Ready, "its answers are marked, and it is no reason to take the node away")
	require.Equal(t, "books parked", ready.Projections[0].Name+" "+ready.Projections[0].State)
	require.Contains(t, o.Anonymous().GET("/metrics").Status(200).Text, `bahi_projection_parked{projection="books"} 1`)

	o.Sql(`alter table books_g1.row_version drop constraint parked_for_a_test`)
	require.NoError(t, app.Builds{System: o.Sys}.Retry(t.Context(), "books"))
	require.Eventually(t, func() bool { return !o.Parked() }, time.Minute, 5*time.Millisecond)
	newest := clerk.With("Bahi-Min-Position", last)
	require.Eventually(t, func() bool { return newest.GET("/banks").Response.StatusCode == http.StatusOK }, time.Minute, 5*time.Millisecond)
	require.Equal(t, "03-02 2, 03-03 6", apptest.Balances(newest, apptest.Ledger(account)))
}
