package apptest

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"bahi/commands/lease"
)

// Rounds returns the number of rounds of a fault test: BAHI_ROUNDS, or few.
func Rounds(t *testing.T, few int) int {
	text := os.Getenv("BAHI_ROUNDS")
	if text == "" {
		return few
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

// After calls do after count more acknowledged writes of the load.
func (l *Load) After(ctx context.Context, count int64, do func()) {
	until := l.Answered.Load() + count
	for l.Answered.Load() < until && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(time.Millisecond):
		}
	}
	do()
}

// Healthy checks that the doctor finds no difference.
func Healthy(t *testing.T, cmd *Cmd) {
	t.Helper()
	out, wrong, status := Execute(t, cmd)
	require.Equal(t, 0, status, "%s%s", out, wrong)
}

// EndLeases ends the leases that a process took before it was killed, as if their time had passed.
func EndLeases(t *testing.T, database string, killed time.Time) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), database)
	require.NoError(t, err)
	defer conn.Close(t.Context())
	for _, sql := range []string{
		`update inbox.call set due_at = now() where verdict = 'waiting' and due_at between now() and $1`,
		`update knowledge.lease set until = now() where until <= $1`,
		`update river.river_leader set expires_at = now() where expires_at <= $1`,
	} {
		_, err = conn.Exec(t.Context(), sql, killed.Add(lease.Duration))
		require.NoError(t, err)
	}
}
