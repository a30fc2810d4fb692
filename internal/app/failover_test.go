package app_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/app"
	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/internal/test/pgtest"
)

// recovering is a bahi whose log loses its newest events while it serves.
type recovering struct {
	t        *testing.T
	database string

	data  string
	p     *apptest.Process
	given map[int64]bool // ids of acknowledged rows
}

func (r *recovering) command(args ...string) *apptest.Cmd {
	return apptest.Command(r.t, r.data, args...).With("DATABASE_URL="+r.database, "BAHI_READ_WAIT=200ms")
}

// loseTail deletes the events after a position and cuts all connections, like a failover to a lagging replica. The tables stay.
func (r *recovering) loseTail(after string) {
	r.t.Helper()
	admin := pgtest.Connect(r.t, r.database)
	pgtest.Exec(r.t, admin, `delete from log.event where position > $1::text::bigint`, after)
	pgtest.Exec(r.t, admin, `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database()
		and pid <> pg_backend_pid()`)
}

// offer posts a row like a client that retries while the server is unavailable: until the row is accepted, or refused for the lost tail.
func (r *recovering) offer(account int64, key, body string) (taken bool) {
	r.t.Helper()
	var row apptest.BankRow
	require.Eventually(r.t, func() bool {
		a := r.p.Client().With("Idempotency-Key", key).POST(apptest.Ledger(account), body)
		taken = a.Response.StatusCode == http.StatusCreated
		if !taken {
			require.Equal(r.t, http.StatusServiceUnavailable, a.Response.StatusCode, a.Text)
			return strings.Contains(a.Text, "until an operator has accepted it")
		}
		a.JSON(&row)
		if a.Header("Idempotency-Replayed") == "" {
			require.False(r.t, r.given[row.ID], "row %d was given before", row.ID)
			r.given[row.ID] = true
		}
		return true
	}, time.Minute, 20*time.Millisecond)
	return taken
}

// post posts a row that must be accepted.
func (r *recovering) post(account int64, key, body string) {
	r.t.Helper()
	require.True(r.t, r.offer(account, key, body))
}

// balance returns the balance of an account, and whether the response is marked as fresh.
func (r *recovering) balance(account int64) (balance string, fresh bool) {
	r.t.Helper()
	a := r.p.Client().GET(fmt.Sprintf("/bank/%d", account))
	switch {
	case a.Response.StatusCode == http.StatusNotFound && a.Header("Warning") != "": // the tables do not have it yet
		return "", false
	case a.Response.StatusCode != http.StatusOK:
		require.Equal(r.t, http.StatusServiceUnavailable, a.Response.StatusCode, a.Text)
		return "", false
	}
	b := apitest.Read[apptest.BankAccount](a)
	return b.Balance.String(), a.Header("Warning") == ""
}

// has waits for a fresh response.
func (r *recovering) has(account int64, want string) {
	r.t.Helper()
	var balance string
	require.Eventually(r.t, func() (fresh bool) {
		balance, fresh = r.balance(account)
		return fresh
	}, time.Minute, 20*time.Millisecond)
	require.Equal(r.t, want, balance)
}

// goesOn waits until all projections run.
func (r *recovering) goesOn() {
	r.t.Helper()
	require.Eventually(r.t, func() bool {
		return !strings.Contains(apptest.Readiness(r.t, r.p.Client()).Text, `"parked"`)
	}, time.Minute, 20*time.Millisecond)
}

func (r *recovering) done(args ...string) string {
	r.t.Helper()
	out, wrong, status := apptest.Execute(r.t, r.command(args...))
	require.Equal(r.t, 0, status, "%s%s", out, wrong)
	return out
}

func TestLostTailIsRecoveredWithoutARestart(t *testing.T) {
	t.Parallel()
	r := &recovering{t: t, database: apptest.Database(t), data: t.TempDir(), given: map[int64]bool{}}
	r.p = apptest.Serve(t, r.command("serve"))
	r.p.Ready()
	account := apptest.Open(r.p.Client(), "HDFC")
	r.post(account, "first", apptest.Deposit("2025-03-01", "100"))
	r.has(account, "100")
	kept := r.p.Client().GET("/banks").Status(200).Header("Bahi-Position")
	for n := range 12 { // more than a block of numbers
		r.post(account, fmt.Sprintf("lost-%d", n), apptest.Deposit("2025-03-02", "10"))
	}
	r.has(account, "220")
	r.signed()

	r.loseTail(kept)
	// A client without a response repeats its last request. Later writes are accepted until the signer detects the loss, and refused
	// afterwards.
	taken := r.offer(account, "lost-11", apptest.Deposit("2025-03-02", "10"))
	for n := range 4 {
		more := r.offer(account, fmt.Sprintf("after-%d", n), apptest.Withdrawal("2025-03-03", "5"))
		require.False(t, more && !taken, "a row was accepted after one was refused")
		taken = more
		balance, fresh := r.balance(account)
		require.False(t, fresh, "%s is marked as fresh", balance)
	}
	r.p.Until(func(said, _ string) bool {
		return strings.Contains(said, "the log has no such event there") && strings.Contains(said, "bahi audit accept-restore")
	})
	require.Contains(t, apptest.Readiness(t, r.p.Client()).Text, `"parked"`)

	r.done("audit", "accept-restore", "--reason", "the replica was behind")
	require.Equal(t, len(app.AllProjections()), strings.Count(r.done("projections", "rebuild"), " is live, built up to position "))
	r.post(account, "lost-11", apptest.Deposit("2025-03-02", "10"))
	for n := range 4 {
		r.post(account, fmt.Sprintf("after-%d", n), apptest.Withdrawal("2025-03-03", "5"))
	}
	r.has(account, "90")
	r.post(account, "later", apptest.Deposit("2025-03-04", "1"))
	r.has(account, "91")
	r.goesOn()
	r.p.Stop()
	r.done("doctor", "books")
	require.Contains(t, r.done("audit", "verify", "--store"), "VERIFIED.")
	admin := pgtest.Connect(t, r.database)
	gaps := pgtest.Value[int](t, admin, `select max(position) - count(*) from log.event`)
	require.Zero(t, gaps)
}

// signed waits until all events are signed.
func (r *recovering) signed() {
	r.t.Helper()
	head := r.p.Client().GET("/banks").Status(200).Header("Bahi-Position")
	require.Eventually(r.t, func() bool {
		var c apptest.AuditCheckpoint
		a := r.p.Client().GET("/audit/checkpoint")
		if a.Response.StatusCode == http.StatusOK {
			a.JSON(&c)
		}
		return fmt.Sprint(c.Position) == head
	}, time.Minute, 50*time.Millisecond)
}
