package app_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
)

// Debian's Postgres compiles queries, which takes longer than our queries run.
func TestQueriesAreNotCompiled(t *testing.T) {
	t.Parallel()
	url := apptest.Database(t)
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), `do $$ begin execute format('alter database %I set jit = on', current_database()); end $$`)
	require.NoError(t, err)
	require.NoError(t, conn.Close(t.Context()))

	sys, err := apptest.Settings(t, url).OpenBooks(t.Context(), false)
	require.NoError(t, err)
	t.Cleanup(sys.Close)
	var jit string
	require.NoError(t, sys.Pool.QueryRow(t.Context(), `show jit`).Scan(&jit))
	require.Equal(t, "off", jit)
}
