package apptest

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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
