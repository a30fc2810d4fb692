package projections

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/stretchr/testify/require"
)

// A connection may be lost before pgx considers it closed.
func TestLostConnectionBlamesNoEvent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	conn, err := pgx.ConnectConfig(t.Context(), r.pool.Config().ConnConfig.Copy())
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close(t.Context()) })
	_, err = r.pool.Exec(t.Context(), `select pg_terminate_backend($1, 10000)`, conn.PgConn().PID())
	require.NoError(t, err)

	conn.PgConn().Frontend().SendQuery(&pgproto3.Query{String: `select ` + strings.Repeat(" ", 1<<20)})
	err = conn.PgConn().Frontend().Flush()
	require.ErrorContains(t, err, "write failed")
	require.False(t, conn.IsClosed())
	require.True(t, isTransient(conn, err))
	require.ErrorAs(t, orUnreachable(conn, err), new(*unreachable))

	other, err := pgx.ConnectConfig(t.Context(), r.pool.Config().ConnConfig.Copy()) // a build has connections besides its own
	require.NoError(t, err)
	t.Cleanup(func() { other.Close(t.Context()) })
	require.NoError(t, conn.Close(t.Context()))
	_, err = conn.Exec(t.Context(), `select`)
	require.ErrorIs(t, err, pgconn.ErrConnClosed)
	require.True(t, isTransient(other, err))
}
