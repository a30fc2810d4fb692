package postgres

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/eventstore"
	"bahi/internal/test/pgtest"
	"bahi/migrations"
)

// Postgres is killed and restarted several times while sixteen clients append. They keep using the same store.
func TestPostgresKilledUnderLoadLosesNoAppend(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Cluster(t)
	require.NoError(t, migrations.Up(t.Context(), cluster.URL()))
	s := newStore(t, cluster.URL())

	var (
		all      sync.WaitGroup
		mu       sync.Mutex
		outcomes = map[uuid.UUID]error{}
		places   = map[uuid.UUID]eventstore.Appended{}
		answered = make(chan struct{}, 1<<20)
	)
	ctx, stop := context.WithCancel(t.Context())
	for range 16 {
		all.Go(func() {
			for ctx.Err() == nil {
				e := made(uuid.New())
				done, err := s.Append(context.WithoutCancel(ctx), eventstore.To("row-"+e.ID.String(), eventstore.NoStream, e))
				mu.Lock()
				outcomes[e.ID], places[e.ID] = err, done
				mu.Unlock()
				if err == nil {
					answered <- struct{}{}
					continue
				}
				select { // a pause before the next try
				case <-time.After(10 * time.Millisecond):
				case <-ctx.Done():
				}
			}
		})
	}
	wait := func(what string, c <-chan struct{}, n int) {
		for range n {
			select {
			case <-c:
			case <-time.After(time.Minute):
				require.FailNow(t, "timed out: "+what)
			}
		}
	}
	for range rounds(2) {
		drain(answered)
		wait("appends", answered, 200)
		pid := cluster.PID()
		require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
		// A quick restart may save the appends in progress, so perhaps none fails.
		require.Eventually(t, func() bool { return cluster.PID() != pid }, time.Minute, 10*time.Millisecond)
	}
	drain(answered)
	wait("appends", answered, 200)
	stop()
	all.Wait()

	there := byID(t, wholeLog(t, s))
	doubts := 0
	for id, err := range outcomes {
		e, found := there[id]
		switch {
		case err == nil:
			require.True(t, found, "an acknowledged append is missing")
			require.Equal(t, places[id].Position, e.Position)
		case errors.Is(err, eventstore.ErrInDoubt):
			doubts++
		default:
			require.ErrorIs(t, err, eventstore.ErrUnavailable)
			require.False(t, found, "a refused append is in the log: %v", err)
		}
	}
	t.Logf("%d appends, %d in the log, %d in doubt", len(outcomes), len(there), doubts)
}

func drain(c <-chan struct{}) {
	for {
		select {
		case <-c:
		default:
			return
		}
	}
}
