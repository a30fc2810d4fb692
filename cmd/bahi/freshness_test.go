package main_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/app"
)

func TestEveryReadSeesWhatWasAnsweredBefore(t *testing.T) {
	t.Parallel()
	clerk := start(t).clerk(home)
	account := open(clerk, "HDFC")
	for i := range 30 {
		wrote := clerk.POST(ledger(account), deposit("2025-03-01", "1")).Status(201)
		read := clerk.GET("/banks").Status(200)
		require.Equal(t, strconv.Itoa(i+1), clerkBanks(read)[0].Balance.String())
		require.Equal(t, wrote.Header("Bahi-Position"), read.Header("Bahi-Position"))
		require.Empty(t, read.Header("Warning"))
	}
}

func TestAReadWaitsForThePositionThatItNames(t *testing.T) {
	t.Parallel()
	o := start(t)
	clerk := o.clerk(home)
	account := open(clerk, "HDFC")
	position := clerk.POST(ledger(account), deposit("2025-03-01", "1")).Status(201).Header("Bahi-Position")
	for _, path := range []string{"/banks", ledger(account), at(account, 1), at(account, 1, "/history"), ledger(account, "/statement.pdf"), "/books/lock", fmt.Sprintf("/bank/%d", account)} {
		a := clerk.With("Bahi-Min-Position", position).GET(path).Status(200)
		require.Equal(t, position, a.Header("Bahi-Position"), path)
		clerk.With("Bahi-Min-Position", strconv.FormatInt(o.head()+1, 10)).GET(path).Problem(422, "The log does not reach that position yet")
		clerk.With("Bahi-Min-Position", "18446744073709551615").GET(path).Problem(422, "The log does not reach that position yet")
	}
	for _, bad := range []string{"-1", "+1", "1.0", "x", "18446744073709551616", " "} {
		clerk.With("Bahi-Min-Position", bad).GET("/banks").Problem(422, "Validation error", "Bahi-Min-Position", "expected a position in the log")
	}
	clerk.With("Bahi-Min-Position", "0").GET("/banks").Status(200)
}

// park makes the projection of the books stop at its next row.
func (o *office) park() {
	o.t.Helper()
	o.sql(`alter table books_g1.row_version add constraint parked_for_a_test check (false) not valid`)
}

func (o *office) parked() bool { return o.sys.Runner.Statuses()["books"].Error != "" }

func TestAParkedProjectionAnswersWhatItHasAndSaysSoAtOnce(t *testing.T) {
	t.Parallel()
	o := start(t)
	clerk := o.clerk(home)
	account := open(clerk, "HDFC")
	row := post(clerk, account, deposit("2025-03-01", "1"))
	fresh := clerk.GET("/banks").Status(200).Header("Bahi-Position")
	o.park()

	// Writes go on, and are answered as what they are: in the log.
	wrote := clerk.With("Prefer", "return=representation").POST(ledger(account), deposit("2025-03-02", "2")).Status(201)
	var late bankRow
	wrote.JSON(&late)
	require.Nil(t, late.Balance, "nobody knows it yet")
	require.Eventually(t, o.parked, time.Minute, 5*time.Millisecond)

	began := time.Now()
	const reads = 20
	for range reads {
		a := clerk.GET(ledger(account)).Status(200)
		require.Equal(t, `110 - "Response is Stale"`, a.Header("Warning"))
		require.Equal(t, fresh, a.Header("Bahi-Position"))
	}
	require.Less(t, time.Since(began), 3*testReadWait, "each of them would have waited for that long")
	require.Equal(t, "03-01 1", balances(clerk, ledger(account)))
	require.Empty(t, clerk.GET(ledger(account, "?known_at=", fresh)).Status(200).Header("Warning"), "the past is as it was")

	// Whoever names a position gets it, or a 503.
	clerk.With("Bahi-Min-Position", fresh).GET("/banks").Status(200)
	a := clerk.With("Bahi-Min-Position", wrote.Header("Bahi-Position")).GET("/banks").Problem(503, "The answer is not that fresh yet, try again")
	require.NotEmpty(t, a.Header("Retry-After"))

	// What else there is goes on: other projections, edits of what nobody can read yet, and the health.
	require.NotEmpty(t, o.key(home, `{"ledger":"read"}`).Key)
	o.operator().GET("/api/v1/api-keys").Status(200)
	clerk.PUT(ledger(account), fmt.Sprintf(`{"id":%d,"in_entries":%s}`, late.ID, entry("3"))).Status(200)
	clerk.DELETE(at(account, row.ID)).Status(204)
	var ready struct {
		Ready       bool
		Projections []struct{ Name, State string }
	}
	lenient(t, readiness(t, o.stranger()), &ready)
	require.True(t, ready.Ready, "its answers are marked, and it is no reason to take the node away")
	require.Equal(t, "books parked", ready.Projections[0].Name+" "+ready.Projections[0].State)
	require.Contains(t, o.stranger().GET("/metrics").Status(200).Text, `bahi_projection_parked{projection="books"} 1`)

	o.sql(`alter table books_g1.row_version drop constraint parked_for_a_test`)
	require.NoError(t, app.Builds{System: o.sys}.Retry(t.Context(), "books"))
	clerk.With("Bahi-Min-Position", wrote.Header("Bahi-Position")).GET("/banks").Status(200)
	require.Eventually(t, func() bool { return !o.parked() }, time.Minute, 5*time.Millisecond)
	require.Equal(t, "03-02 3", balances(clerk, ledger(account)))
}
