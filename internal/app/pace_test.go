package app

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore"
)

// endless is a log that takes every append.
type endless struct {
	EventLog

	mu   sync.Mutex
	head event.Position
}

func (e *endless) Append(context.Context, string, eventstore.Expected, ...event.New) (eventstore.Appended, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.head++
	return eventstore.Appended{Position: e.head}, nil
}

func (e *endless) at() event.Position {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.head
}

func TestAppendsWaitForASaturatedProjection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var (
			log    = &endless{}
			mu     sync.Mutex
			at     event.Position
			folds  = true
			moved  = make(chan struct{})
			paced  = newPacedLog(log, func() (event.Position, <-chan struct{}, bool) { mu.Lock(); defer mu.Unlock(); return at, moved, folds })
			append = func() { _, err := paced.Append(t.Context(), "bankrow-1", eventstore.Any); require.NoError(t, err) }
			fold   = func(to event.Position) {
				mu.Lock()
				defer mu.Unlock()
				at = to
				close(moved)
				moved = make(chan struct{})
			}
		)
		for range leastAhead {
			append()
		}
		for range 10 {
			go append()
		}
		synctest.Wait()
		require.EqualValues(t, leastAhead, log.at())
		fold(4)
		synctest.Wait()
		require.EqualValues(t, leastAhead+4, log.at(), "as many go ahead as were folded")
		time.Sleep(paceWait)
		synctest.Wait()
		require.EqualValues(t, leastAhead+10, log.at(), "a fold that hangs holds no append for long")

		fold(log.at())
		began, was := time.Now(), log.at()
		for range 50 { // a fold of 10,000 a second
			for range 100 {
				go append()
			}
			time.Sleep(10 * time.Millisecond)
			fold(log.at())
		}
		for log.at() < was+5000 {
			time.Sleep(10 * time.Millisecond)
			fold(log.at())
		}
		require.Less(t, time.Since(began), 3*time.Second)

		folds = false
		for range 1000 {
			append()
		}
	})
}

func TestAnAppendEndsWithItsRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		paced := newPacedLog(&endless{}, func() (event.Position, <-chan struct{}, bool) { return 0, make(chan struct{}), true })
		for range leastAhead {
			_, err := paced.Append(t.Context(), "bankrow-1", eventstore.Any)
			require.NoError(t, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := paced.Append(ctx, "bankrow-1", eventstore.Any)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}
