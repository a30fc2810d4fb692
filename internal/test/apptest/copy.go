package apptest

import (
	"log/slog"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"bahi/eventstore/postgres"
)

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
