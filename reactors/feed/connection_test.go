package feed

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

// Without that Postgres keeps the lock of a machine that vanished for hours, and no other process forwards.
func TestPostgresIsToLookWhetherTheProcessThatForwardsIsStillThere(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), "postgres://127.0.0.1:1/nowhere")
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	parameters := New(Config{Pool: pool}).conn.RuntimeParams
	for _, name := range []string{"tcp_keepalives_idle", "tcp_keepalives_interval", "tcp_keepalives_count", "tcp_user_timeout"} {
		require.NotEmpty(t, parameters[name], name)
	}
}
