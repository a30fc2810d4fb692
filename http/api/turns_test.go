package api

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// queue records the order of turns. The test ends each turn.
type queue struct {
	*turns

	mu    sync.Mutex
	order []string
	ends  map[string]chan struct{}
}

func (q *queue) note(name string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.order = append(q.order, name)
}

func (q *queue) ask(caller, workspace string) {
	name := caller + " of " + workspace
	go func() {
		done, err := q.take(context.Background(), caller, workspace, time.Minute)
		if err != nil {
			q.note(name + " is refused")
			return
		}
		q.note(name)
		<-q.ends[caller]
		done()
	}()
	synctest.Wait()
}

func (q *queue) end(caller string) {
	q.ends[caller] <- struct{}{}
	synctest.Wait()
}

// came returns the arrivals since the last call.
func (q *queue) came() (names []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	names, q.order = q.order, nil
	return names
}

func newQueue(all int) *queue {
	q := &queue{turns: newTurns(all), ends: map[string]chan struct{}{}}
	for _, caller := range []string{"asha", "ravi", "meena", "imran"} {
		q.ends[caller] = make(chan struct{})
	}
	return q
}

func TestACallerHasTwoTurnsAndAWorkspaceAQuarter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(16)
		for _, caller := range []string{"asha", "ravi", "meena"} {
			for range 3 {
				q.ask(caller, "shop")
			}
		}
		require.Equal(t, []string{"asha of shop", "asha of shop", "ravi of shop", "ravi of shop"}, q.came())
		q.end("ravi")
		require.Equal(t, []string{"meena of shop"}, q.came())
		<-time.After(time.Minute)
		synctest.Wait()
		require.Len(t, q.came(), 4, "the others are refused")
		for _, caller := range []string{"asha", "asha", "ravi", "meena"} {
			q.end(caller)
		}
	})
}

func TestTheQueueOfACallerIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(8)
		for range turnsOfCaller + maxWaiting + 1 {
			q.ask("asha", "shop")
		}
		require.Equal(t, []string{"asha of shop", "asha of shop", "asha of shop is refused"}, q.came())
		q.ask("imran", "mill")
		require.Equal(t, []string{"imran of mill"}, q.came())
		q.end("imran")
		for range turnsOfCaller + maxWaiting {
			q.end("asha")
		}
		require.Empty(t, q.of)
	})
}
