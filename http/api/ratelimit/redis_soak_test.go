//go:build soak

package ratelimit_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/http/api/ratelimit"
)

// redisServer starts the distribution's redis-server on a socket, and stops it.
func redisServer(t *testing.T) *ratelimit.Redis {
	t.Helper()
	folder := t.TempDir()
	socket := filepath.Join(folder, "redis.sock")
	server := exec.CommandContext(context.WithoutCancel(t.Context()), "redis-server", "--port", "0", "--unixsocket", socket, "--dir",
		folder, "--save", "")
	server.Stdout = t.Output()
	require.NoError(t, server.Start(), "this test requires redis-server (apt-get install redis-server)")
	t.Cleanup(func() {
		require.NoError(t, server.Process.Kill())
		_ = server.Wait()
	})
	r, err := ratelimit.NewPatientRedis("unix://" + socket)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	require.Eventually(t, func() bool {
		_, err := r.Take(t.Context(), ratelimit.Key{Group: "up"}, perMin)
		return err == nil
	}, time.Minute, 10*time.Millisecond)
	return r
}

// make test uses an imitation of the server. This test uses Redis itself, with its own clock.
func TestARealRedisCountsLikeItsImitation(t *testing.T) {
	t.Parallel()
	r := redisServer(t)
	limit := ratelimit.Limit{Requests: 50, Per: time.Second}
	var allowed atomic.Int32
	var running sync.WaitGroup
	began := time.Now()
	for range 8 {
		running.Go(func() {
			for time.Since(began) < 2500*time.Millisecond {
				if d, err := r.Take(t.Context(), somebody, limit); err == nil && d.Allowed {
					allowed.Add(1)
				}
			}
		})
	}
	running.Wait()
	require.EqualValues(t, 150, allowed.Load(), "the requests of three windows")

	d, err := r.Take(t.Context(), somebody, limit)
	require.NoError(t, err)
	require.False(t, d.Allowed)
	require.Zero(t, d.Remaining)
	require.Greater(t, d.Next, time.Duration(0))
	time.Sleep(d.Next)
	d, err = r.Take(t.Context(), somebody, limit)
	require.NoError(t, err)
	require.True(t, d.Allowed, "exactly when the oldest left")
}
