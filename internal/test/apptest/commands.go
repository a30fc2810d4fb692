package apptest

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"bahi/eventstore/postgres"
	"bahi/internal/test/apitest"
	"bahi/readmodels/opsview"
)

// Attached runs a command on the database of a served system.
func Attached(t *testing.T, o *Server, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	cmd := Command(t, t.TempDir(), args...).With("DATABASE_URL="+o.Database, "EVENTSTORE_URL="+o.Sys.Settings.EventStore,
		"BAHI_ADDR="+strings.TrimPrefix(o.URL, "http://"))
	return Execute(t, cmd)
}

// Done runs a command on the system's database, and returns its output.
func (o *Server) Done(t *testing.T, args ...string) (stdout string) {
	t.Helper()
	out, wrong, status := Attached(t, o, args...)
	require.Equal(t, 0, status, out+wrong)
	return out
}

// Denied runs a command on the system's database that must fail with this reason.
func (o *Server) Denied(t *testing.T, why string, args ...string) {
	t.Helper()
	_, wrong, status := Attached(t, o, args...)
	require.Equal(t, 1, status)
	require.Contains(t, wrong, why)
}

// on runs a command on a database, with or without a server.
func on(t *testing.T, url string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	cmd := Command(t, t.TempDir(), args...).With("DATABASE_URL=" + url)
	return Execute(t, cmd)
}

// Done runs a command that must succeed.
func Done(t *testing.T, url string, args ...string) (stdout, stderr string) {
	t.Helper()
	out, wrong, status := on(t, url, args...)
	require.Equal(t, 0, status, out+wrong)
	return out, wrong
}

// Denied runs a command that must fail with this reason.
func Denied(t *testing.T, url, why string, args ...string) {
	t.Helper()
	_, wrong, status := on(t, url, args...)
	require.Equal(t, 1, status)
	require.Contains(t, wrong, why)
}

// Fill posts rows of a rupee each, ten in a transaction. They take a throttled build some time.
func Fill(clerk *apitest.Client, account int64, rows int) {
	for some := range slices.Chunk(slices.Repeat([]string{Deposit("2025-03-01", "1")}, rows), 10) {
		clerk.POST(Ledger(account, "/rows"), Bulk(some...)).Status(201)
	}
}

// Reads waits until a generation of the books is live.
func (o *Server) Reads(generation int) {
	o.T.Helper()
	require.Eventually(o.T, func() bool { return o.Projection("books").Generation == generation }, time.Minute, 10*time.Millisecond)
}

// Projection returns the state of a projection.
func (o *Server) Projection(name string) (p opsview.Projection) {
	o.T.Helper()
	o.Operator().GET("/ops/projections/" + name).Status(200).JSON(&p)
	return p
}

// Order sends an operator's order about the books, and returns their state after it.
func (o *Server) Order(verb, body string) (p opsview.Projection) {
	o.T.Helper()
	o.Operator().POST("/ops/projections/books/"+verb, body).Status(200).JSON(&p)
	return p
}

// Park parks the projection of the books at its next row.
func (o *Server) Park() {
	o.T.Helper()
	o.Sql(`alter table books_g1.row_version add constraint parked_for_a_test check (false) not valid`)
}

func (o *Server) Parked() bool { return o.Sys.Runner.Statuses()["books"].Parked }

// Jobs returns the jobs of a kind, newest first.
func (o *Server) Jobs(query string) (all []opsview.Job) {
	o.T.Helper()
	o.Operator().GET("/ops/jobs?" + query).Status(200).JSON(&all)
	return all
}

// EmptyLog returns an empty log in Postgres, and its database.
func EmptyLog(t testing.TB) (*postgres.Store, string) {
	t.Helper()
	address := Migrated(t)
	pool, err := pgxpool.New(t.Context(), address)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	store, err := postgres.Open(t.Context(), pool, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(store.Close)
	return store, address
}
