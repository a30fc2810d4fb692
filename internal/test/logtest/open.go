package logtest

import (
	"log/slog"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/postgres"
	"bahi/internal/test/pgtest"
	"bahi/migrations"
	"bahi/readmodels"
)

// Open returns a pool of a new migrated database, and its empty log, until the test ends.
func Open(t testing.TB) (*pgxpool.Pool, *postgres.Store) {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), pgtest.Template(t, "migrated", migrations.Up))
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool, Reopen(t, pool)
}

// Reopen opens the log as another process would.
func Reopen(t testing.TB, pool *pgxpool.Pool) *postgres.Store {
	t.Helper()
	store, err := postgres.Open(t.Context(), pool, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(store.Close)
	return store
}

// Head returns the position of the newest event.
func Head(t testing.TB, log eventstore.Store) event.Position {
	t.Helper()
	head, err := log.Head(t.Context())
	require.NoError(t, err)
	return head
}

// Snapshots returns a pool for readers of the database of another pool, until the test ends.
func Snapshots(t testing.TB, pool *pgxpool.Pool) *readmodels.Pool {
	t.Helper()
	snapshots, err := readmodels.OpenPool(t.Context(), pool.Config())
	require.NoError(t, err)
	t.Cleanup(snapshots.Close)
	return snapshots
}
