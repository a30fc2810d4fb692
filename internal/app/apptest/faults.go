package apptest

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Rounds is how often a fault test does what it does: BAHI_ROUNDS, or few.
func Rounds(t *testing.T, few int) int {
	text := os.Getenv("BAHI_ROUNDS")
	if text == "" {
		return few
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

// After calls do once the load was answered so many times more.
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

// Healthy wants the doctor to find nothing.
func Healthy(t *testing.T, cmd *Cmd) {
	t.Helper()
	out, wrong, status := Execute(t, cmd)
	require.Equal(t, 0, status, "%s%s", out, wrong)
}
