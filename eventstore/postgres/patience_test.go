package postgres

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
)

// laterBy lets events of type Later wait.
func laterBy(most time.Duration) func([]event.Stored) time.Duration {
	return func(events []event.Stored) time.Duration {
		for _, e := range events {
			if e.Type != "Later" {
				return 0
			}
		}
		return most
	}
}

func isAwake(w *waiter) bool {
	select {
	case <-w.wake:
		return true
	default:
		return false
	}
}

func TestWaitersAreWokenByWhatMayNotWait(t *testing.T) {
	t.Parallel()
	tail := newTail()
	patient, hasty := tail.wait(laterBy(time.Hour)), tail.wait(laterBy(0))
	later := []event.Stored{{Position: 1, Type: "Later"}}
	tail.committed(later)
	require.True(t, isAwake(hasty))
	require.False(t, isAwake(patient))
	tail.committed([]event.Stored{{Position: 2, Type: "Later"}, {Position: 3, Type: "Made"}})
	require.True(t, isAwake(patient), "with an event that may not wait, the others are delivered too")

	for name, change := range map[string]func(){
		"another process appended":    func() { tail.heard(9) },
		"the head is not known":       func() { tail.heard(0) },
		"a connection was lost":       tail.reset,
		"an event may wait no longer": func() {},
	} {
		most := time.Hour
		if name == "an event may wait no longer" {
			most = time.Millisecond
		}
		w, gone := tail.wait(laterBy(most)), tail.wait(laterBy(0))
		tail.leave(gone)
		tail.committed(later)
		require.False(t, isAwake(gone), "it has left")
		change()
		select {
		case <-w.wake:
		case <-time.After(30 * time.Second):
			require.FailNow(t, "not woken", name)
		}
	}
	tail.mu.Lock() // its last waker may still hold it
	defer tail.mu.Unlock()
	require.Empty(t, tail.waiters)
}
