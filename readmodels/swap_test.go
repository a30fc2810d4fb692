package readmodels_test

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/projections"
	"bahi/readmodels"
)

// tend follows with what is kept, as a process that serves does.
func (s *shelf) tend(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- s.runner.MaintainGenerations(ctx, names) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-stopped)
	})
}

// A reader that has read up to a position never reads less afterwards, from any generation, and does not wait long for a switch of
// generations. The benchmark measures how long a switch takes on a quiet machine.
func TestReadersNeverGoBackWhileGenerationsSwitch(t *testing.T) {
	t.Parallel()
	s := built(t, 5)
	s.run(t)
	s.tend(t)
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	var (
		all             sync.WaitGroup
		reads, longest  atomic.Int64
		readers, writes = 4, atomic.Int64{}
	)
	for i := range readers {
		reader := s.reader
		if i%2 == 0 {
			reader = s.read(nil)
		}
		all.Go(func() {
			rows, position := 0, int64(0)
			for ctx.Err() == nil {
				f := &readmodels.At{Wait: 20 * time.Second}
				began := time.Now()
				n, err := count(t.Context(), reader, f)
				took := time.Since(began)
				at, _ := f.Position()
				if err != nil || f.Stale() || n < rows || int64(at) < position {
					t.Errorf("%d rows at %d after %d at %d, stale: %t, error: %v", n, at, rows, position, f.Stale(), err)
					return
				}
				rows, position = n, int64(at)
				for was := longest.Load(); int64(took) > was && !longest.CompareAndSwap(was, int64(took)); was = longest.Load() {
				}
				reads.Add(1)
			}
		})
	}
	all.Go(func() {
		for ctx.Err() == nil {
			if _, err := s.tryAdd(t.Context(), "x"); err != nil {
				t.Error(err)
				return
			}
			writes.Add(1)
			time.Sleep(3 * time.Millisecond) // the log must not become long
		}
	})
	build := projections.Build{
		Store: s.store, Config: s.pool.Config().ConnConfig.Copy(), Projection: names, Log: slog.New(slog.DiscardHandler),
		How: projections.BuildOptions{Keep: time.Hour},
	}
	const switches = 20
	for nth := range switches {
		if nth%2 == 0 {
			require.NoError(t, build.Run(ctx))
			s.runner.Ask() // for what is kept from now on
		} else {
			require.NoError(t, build.Rollback(ctx, time.Hour))
		}
	}
	stop()
	all.Wait()
	t.Logf("%d reads and %d writes during %d switches; the longest read took %s", reads.Load(), writes.Load(), switches,
		time.Duration(longest.Load()))
	require.Greater(t, reads.Load(), int64(100))
	require.Less(t, time.Duration(longest.Load()), 15*time.Second, "nobody waits until it gives up")
	found, err := build.Examine(t.Context())
	require.NoError(t, err)
	require.Empty(t, found.Differences)
}
