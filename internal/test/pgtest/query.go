package pgtest

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

type database interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Value returns the only value of a query.
func Value[V any](t testing.TB, of database, sql string, args ...any) V {
	t.Helper()
	rows, _ := of.Query(t.Context(), sql, args...)
	value, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[V])
	require.NoError(t, err)
	return value
}

// Exec runs a statement and returns the number of its rows.
func Exec(t testing.TB, in database, sql string, args ...any) int64 {
	t.Helper()
	done, err := in.Exec(t.Context(), sql, args...)
	require.NoError(t, err)
	return done.RowsAffected()
}

// Values returns the values of a query with one column.
func Values[V any](t testing.TB, of database, sql string, args ...any) []V {
	t.Helper()
	rows, _ := of.Query(t.Context(), sql, args...)
	values, err := pgx.CollectRows(rows, pgx.RowTo[V])
	require.NoError(t, err)
	return values
}
