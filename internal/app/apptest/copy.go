package apptest

import (
	"log/slog"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"bahi/eventstore/postgres"
	"bahi/internal/pgtest"
	"bahi/migrations"
)

// EmptyLog returns an empty log in Postgres, and its database.
func EmptyLog(t testing.TB) (*postgres.Store, string) {
	t.Helper()
	address := pgtest.Template(t, "migrated", migrations.Up)
	pool, err := pgxpool.New(t.Context(), address)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	_, err = pool.Exec(t.Context(), `update log.identity set store_id = gen_random_uuid()`) // all test databases are copies of one
	require.NoError(t, err)
	store, err := postgres.Open(t.Context(), pool, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(store.Close)
	return store, address
}
