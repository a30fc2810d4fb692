package app_test

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"bahi/internal/app"
	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/internal/test/audittest"
	"bahi/internal/test/journaltest"
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

// A crash of Postgres empties the unlogged tables. No read returns a figure of an empty table, and the log is folded again.
func TestUnloggedTablesAreFoldedAgainAfterACrashOfPostgres(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Cluster(t)
	data := t.TempDir()
	command := func(args ...string) *apptest.Cmd {
		return apptest.Command(t, data, args...).With("DATABASE_URL="+cluster.URL(), "BAHI_UNLOGGED_TABLES=true")
	}
	p := apptest.Serve(t, command("serve"))
	p.Ready()
	c := p.Client()
	c.POST("/bank", `{"name":"HDFC"}`).Status(201)
	c.POST("/bank-ledger/1", `{"date":"2025-03-01","in_entries":[{"description":"x","amount":12.5}]}`).Status(201)
	const account = `{"id":1,"name":"HDFC","balance":12.5,"revision":0}`
	require.JSONEq(t, account, c.GET("/bank/1").Status(200).Text)
	var before, after uint32
	var process int
	const books, unlogged = `select 'books_g1.account'::regclass::oid::bigint`, `
		select count(*) from pg_class c join pg_namespace n on n.oid = relnamespace
		where (nspname = 'projection' or nspname ~ '_g[0-9]+$') and relkind = 'r' and relpersistence = 'u'`
	ask := func(sql string, into ...any) error {
		conn, err := pgx.Connect(t.Context(), cluster.URL())
		if err != nil {
			return err
		}
		defer conn.Close(context.WithoutCancel(t.Context()))
		return conn.QueryRow(t.Context(), sql).Scan(into...)
	}
	require.NoError(t, ask(books, &before))
	require.NoError(t, ask(`select pid from pg_stat_activity where application_name = 'bahi' limit 1`, &process))
	require.NoError(t, syscall.Kill(process, syscall.SIGKILL))
	require.Eventually(t, func() bool {
		again := ask(books, &after) == nil && after != before
		r := c.GET("/bank/1")
		if r.Response.StatusCode == http.StatusOK {
			require.JSONEq(t, account, r.Text)
		}
		return again && r.Response.StatusCode == http.StatusOK
	}, time.Minute, time.Millisecond)
	apptest.Healthy(t, command("doctor"))
	p.Stop()

	var tables int
	require.NoError(t, ask(unlogged, &tables))
	require.Positive(t, tables)
	p = apptest.Serve(t, command("serve").With("BAHI_UNLOGGED_TABLES=false"))
	p.Ready()
	require.JSONEq(t, account, p.Client().GET("/bank/1").Status(200).Text)
	require.NoError(t, ask(unlogged, &tables))
	require.Zero(t, tables)
}

// journalServer returns the address of a gateway to another log, which has a test's journals.
func journalServer(t *testing.T) string {
	t.Helper()
	log, _ := apptest.EmptyLog(t)
	return journaltest.Served(t, log)
}

// A log gets a journal, and keeps its positions, proofs and checkpoints. Then no node serves it without the journal.
func TestALogIsCopiedToAJournalAndServedWithIt(t *testing.T) {
	t.Parallel()
	database, data, server := apptest.Database(t), t.TempDir(), journalServer(t)
	bahi := func(journal string, args ...string) *apptest.Cmd {
		return apptest.Command(t, data, args...).With("DATABASE_URL="+database, "EVENTSTORE_URL="+journal)
	}
	done := func(cmd *apptest.Cmd) string {
		t.Helper()
		out, wrong, status := apptest.Execute(t, cmd)
		require.Equal(t, 0, status, "%s%s", out, wrong)
		return out
	}
	refused := func(why string, cmd *apptest.Cmd) {
		t.Helper()
		out, wrong, status := apptest.Execute(t, cmd)
		require.NotZero(t, status)
		require.Empty(t, out)
		require.Contains(t, wrong, why)
	}
	before := apptest.Serve(t, bahi("", "serve"))
	before.Ready()
	clerk := before.Client()
	account := apptest.Open(clerk, "HDFC")
	apptest.Post(clerk, account, apptest.Deposit("2025-03-01", "12.5"))
	clerk.POST(apptest.Ledger(account, "/rows"), `{"rows":[{"date":"2025-03-02","in_entries":[{"amount":1}]},{"date":"2025-03-03",`+
		`"in_entries":[{"amount":2}]}]}`).Status(201)
	want := map[string]string{}
	for _, path := range []string{"/banks", apptest.Ledger(account)} {
		want[path] = clerk.GET(path).Status(200).Text
	}
	at := clerk.GET("/banks").Status(200).Header("Bahi-Position")
	require.Eventually(t, func() bool {
		_, _, status := apptest.Execute(t, bahi("", "audit", "proof", at))
		return status == 0
	}, app.SigningTimeout, app.PollInterval, "it is signed for")
	kept := audittest.File(t, "kept", []byte(done(bahi("", "audit", "checkpoint"))))
	refused("other", bahi("", "events", "copy", "--to", server))
	before.Stop()

	refused("the journal is empty, and the log is not", bahi(server, "serve"))
	require.Regexp(t, `^\d+ events are in the journal bahi-\S+\. From now on`, done(bahi("", "events", "copy", "--to", server)))
	refused("set EVENTSTORE_URL", bahi("", "serve"))
	after := apptest.Serve(t, bahi(server, "serve"))
	after.Ready()
	for path, text := range want {
		require.Equal(t, text, after.Client().GET(path).Status(200).Text)
	}
	apptest.Post(after.Client(), account, apptest.Deposit("2025-03-04", "4"))
	after.Stop()
	require.Contains(t, done(bahi(server, "audit", "verify", "--store", "--checkpoint", kept)), "VERIFIED.")
	backup := filepath.Join(t.TempDir(), "backup")
	done(bahi(server, "backup", backup))
	done(bahi(server, "restore", "--drill", backup))
}
