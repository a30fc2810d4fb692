package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore"
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

func TestPatientSubscriberGetsAllEventsOnceAndInOrder(t *testing.T) {
	t.Parallel()
	s := newStoreWith(t, newLog(t), rarelyPolling)
	over, positions := make(chan struct{}), make(chan event.Position, 100)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	defer func() { cancel(); <-ended }()
	go func() {
		defer close(ended)
		still := over
		for batch, err := range s.SubscribeDelayed(ctx, 0,
			eventstore.DeliveryDelay{For: laterBy(time.Hour), Over: func() <-chan struct{} { return still }}) {
			if err != nil {
				return
			}
			for _, e := range batch.Events {
				positions <- e.Position
				if e.Position == 4 {
					still = nil
				}
			}
		}
	}()
	gets := func(all ...event.Position) {
		t.Helper()
		for _, want := range all {
			select {
			case got := <-positions:
				require.Equal(t, want, got)
			case <-time.After(30 * time.Second):
				require.FailNow(t, "an event did not come", "position %d", want)
			}
		}
	}
	later := makes(1)[0]
	later.Type = "Later"
	must(t, s, "a-1", makes(1)...)
	gets(1)
	must(t, s, "a-1", later)
	must(t, s, "a-1", makes(1)...)
	gets(2, 3)
	later.ID = makes(1)[0].ID
	must(t, s, "a-1", later)
	close(over)
	gets(4)
	must(t, s, "a-1", makes(1)...)
	gets(5)
}
