package ratelimit_test

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/require"

	"bahi/http/api/ratelimit"
	"bahi/internal/test/logtest"
	"bahi/internal/test/worktest"
)

// shared returns a Shared of the Redis at an address, with its clock and its log.
func shared(
	t *testing.T, open func(string) (*ratelimit.Redis, error), address string,
) (*ratelimit.Shared, *worktest.Clock, *logtest.Buffer) {
	t.Helper()
	r, err := open("redis://" + address)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	c, logs := newClock(), &logtest.Buffer{}
	return ratelimit.NewShared(r, slog.New(slog.NewTextHandler(logs, nil)), c.Now), c, logs
}

func TestProcessesThatShareARedisShareACount(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	one, _, _ := shared(t, ratelimit.NewPatientRedis, server.Addr())
	other, _, _ := shared(t, ratelimit.NewPatientRedis, server.Addr())
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, 2, one.Take(t.Context(), somebody, perMin).Remaining)
	require.Equal(t, 1, other.Take(gone, somebody, perMin).Remaining, "a request counts even if its client is gone")
	require.True(t, one.Take(t.Context(), somebody, perMin).Allowed)
	require.False(t, other.Take(t.Context(), somebody, perMin).Allowed)
	other.Return(t.Context(), somebody)
	require.True(t, one.Take(t.Context(), somebody, perMin).Allowed)
	require.Len(t, server.Keys(), 1)
	server.FastForward(time.Minute + time.Second)
	require.Empty(t, server.Keys(), "a key is removed with its window")
}

func TestLimitsHoldWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	s, c, logs := shared(t, ratelimit.NewPatientRedis, server.Addr())
	require.Equal(t, 2, s.Take(t.Context(), somebody, perMin).Remaining)
	server.Close()
	for range 3 {
		require.True(t, s.Take(t.Context(), somebody, perMin).Allowed)
	}
	require.False(t, s.Take(t.Context(), somebody, perMin).Allowed)
	require.Equal(t, 1, strings.Count(logs.String(), "Redis failed; counting rate limits in this process only"))
	c.Pass(30 * time.Second)
	require.False(t, s.Take(t.Context(), somebody, perMin).Allowed)
	require.Equal(t, 1, strings.Count(logs.String(), "level=WARN"), "not one a request")
	c.Pass(30 * time.Second)
	require.True(t, s.Take(t.Context(), somebody, perMin).Allowed, "the window slides here too")
	require.Equal(t, 2, strings.Count(logs.String(), "level=WARN"), "once a minute")

	require.NoError(t, server.Restart())
	c.Pass(2 * time.Second)
	require.Equal(t, 1, s.Take(t.Context(), somebody, perMin).Remaining, "Redis keeps its earlier counts")
}

// The server accepts connections and never responds: the worst case for waiting clients.
func TestOneRequestAtATimeWaitsForASilentRedis(t *testing.T) {
	t.Parallel()
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { silent.Close() })
	s, c, logs := shared(t, ratelimit.NewRedis, silent.Addr().String())
	began := time.Now()
	require.True(t, s.Take(t.Context(), somebody, perMin).Allowed)
	require.GreaterOrEqual(t, time.Since(began), ratelimit.Patience/2, "the first request waits")
	began = time.Now()
	for range 200 {
		s.Take(t.Context(), somebody, perMin)
	}
	require.Less(t, time.Since(began), 100*ratelimit.Patience, "the others do not wait")
	require.Contains(t, logs.String(), "count in Redis")
	c.Pass(time.Second)
	began = time.Now()
	s.Take(t.Context(), somebody, perMin)
	require.GreaterOrEqual(t, time.Since(began), ratelimit.Patience/2, "a second later Redis is called again")
}

func TestInvalidRedisURLIsRefused(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"", "localhost:6379", "http://localhost", "redis://localhost/x"} {
		_, err := ratelimit.NewRedis(url)
		require.ErrorContains(t, err, "URL of Redis", url)
	}
}
