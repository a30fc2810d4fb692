package app_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
	"bahi/internal/test/pgtest"
)

// Debian's Postgres compiles queries, which takes longer than our queries run.
func TestQueriesAreNotCompiled(t *testing.T) {
	t.Parallel()
	url := apptest.Database(t)
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	pgtest.Exec(t, conn, `do $$ begin execute format('alter database %I set jit = on', current_database()); end $$`)
	require.NoError(t, conn.Close(t.Context()))

	sys, err := apptest.Settings(t, url).OpenBooks(t.Context(), false)
	require.NoError(t, err)
	t.Cleanup(sys.Close)
	jit := pgtest.Value[string](t, sys.Pool, `show jit`)
	require.Equal(t, "off", jit)
}
