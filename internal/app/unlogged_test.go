package app_test

import (
	"context"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
	"bahi/internal/test/pgtest"
)

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
