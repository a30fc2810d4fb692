package signal_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/eventstore/signal"
)

func TestNotifyWakesThoseThatWait(t *testing.T) {
	t.Parallel()
	var s signal.Signal
	s.Notify() // no caller waits
	first, second := s.Wait(), s.Wait()
	open := func(c <-chan struct{}) bool {
		select {
		case <-c:
			return false
		default:
			return true
		}
	}
	require.True(t, open(first), "an earlier notice does not count")
	s.Notify()
	require.False(t, open(first))
	require.False(t, open(second))
	third := s.Wait()
	require.True(t, open(third), "it waits for the next notice")
	s.Notify()
	require.False(t, open(third))
}

// TestNoNoticeIsMissed counts up. Its readers get the channel before they read, so each of them sees the last count.
func TestNoNoticeIsMissed(t *testing.T) {
	t.Parallel()
	const last = 1000
	var (
		s     signal.Signal
		count atomic.Int64
		group sync.WaitGroup
	)
	for range 8 {
		group.Go(func() {
			for {
				changed := s.Wait()
				if count.Load() == last {
					return
				}
				<-changed
			}
		})
	}
	for range last {
		count.Add(1)
		s.Notify()
	}
	group.Wait()
}
