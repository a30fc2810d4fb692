package app_test

import (
	"bytes"
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/app"
	"bahi/internal/test/pgtest"
	"bahi/internal/test/worktest"
)

// An ANALYZE by autovacuum holds a snapshot, and VACUUM FULL keeps the dead rows that it may see.
func TestScrubWaitsForAConcurrentAnalyze(t *testing.T) {
	t.Parallel()
	c := pgtest.Cluster(t)
	pool := pgtest.Pool(t, c.URL())
	holder := pgtest.Connect(t, c.URL())
	const name = "Ashapriya Raosaheb"
	for _, sql := range []string{
		`alter system set autovacuum = on`, `alter system set autovacuum_naptime = '1s'`, `select pg_reload_conf()`,
		`create schema account`, `create table account.person (name text)`, `insert into account.person values ('` + name + `')`,
		`create function slow(x int) returns int language plpgsql immutable as 'begin perform pg_advisory_xact_lock(42); return x; end'`,
		`create table slow (x int) with (autovacuum_analyze_threshold = 1, autovacuum_analyze_scale_factor = 0,
			autovacuum_vacuum_insert_threshold = -1)`,
		`create index on slow (slow(x))`, // an ANALYZE evaluates it
		`select pg_advisory_lock(42)`,
		`insert into slow select generate_series(1, 100)`, `select pg_stat_force_next_flush()`,
	} {
		pgtest.Exec(t, holder, sql)
	}
	require.Eventually(t, func() bool {
		return pgtest.Value[bool](t, pool, `
			select exists (select from pg_stat_activity where backend_type = 'autovacuum worker' and wait_event = 'advisory'
				and backend_xmin is not null)`)
	}, 2*time.Minute, 20*time.Millisecond)
	pgtest.Exec(t, pool, `delete from account.person`)

	said := make(chan struct{}, 1)
	done := make(chan error, 1)
	sys := &app.System{Log: slog.New(told{said})}
	sys.Pool = pool
	go func() {
		_, err := app.Remains{System: sys}.Scrub(t.Context())
		done <- err
	}()
	select {
	case <-said: // it waits
	case err := <-done:
		require.NoError(t, err)
		t.Error("Scrub did not wait for the ANALYZE")
	}
	pgtest.Exec(t, holder, `select pg_advisory_unlock(42)`)
	if !t.Failed() {
		require.NoError(t, <-done)
	}
	var folder, file string
	require.NoError(t, pool.QueryRow(t.Context(),
		`select current_setting('data_directory'), pg_relation_filepath('account.person')`).Scan(&folder, &file))
	bytesOf := worktest.File(t, filepath.Join(folder, file))
	require.False(t, bytes.Contains(bytesOf, []byte(name)))
}

// told is a log that signals its first line.
type told struct{ said chan struct{} }

func (h told) Enabled(context.Context, slog.Level) bool { return true }

func (h told) Handle(context.Context, slog.Record) error {
	select {
	case h.said <- struct{}{}:
	default:
	}
	return nil
}

func (h told) WithAttrs([]slog.Attr) slog.Handler { return h }

func (h told) WithGroup(string) slog.Handler { return h }
