package esdb_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/esdb"
	"bahi/eventstore/esdb/esdbtest"
)

// lasting appends to one stream, each time until the append succeeds, and follows the log meanwhile.
type lasting struct {
	store    *esdb.Store
	stored   []uuid.UUID
	at       event.Position
	followed chan uuid.UUID
}

func lastingOn(t *testing.T, c *esdbtest.Cluster) *lasting {
	t.Helper()
	l := &lasting{store: vendor(t, c.URL()), followed: make(chan uuid.UUID, 100)}
	go func() {
		for last := event.Position(0); t.Context().Err() == nil; {
			for batch, err := range l.store.Subscribe(t.Context(), last) {
				if err != nil {
					break
				}
				for _, e := range batch.Events {
					l.followed <- e.ID
				}
				last = batch.UpTo
			}
		}
	}()
	return l
}

func (l *lasting) put(t *testing.T) {
	t.Helper()
	e := fresh()
	for {
		done, err := l.store.Append(t.Context(), eventstore.To("kept-1", eventstore.Expected(len(l.stored)-1), e))
		if err == nil {
			require.Greater(t, done.Position, l.at)
			l.at, l.stored = done.Position, append(l.stored, e.ID)
			return
		}
		if !errors.Is(err, eventstore.ErrInDoubt) {
			require.ErrorIs(t, err, eventstore.ErrUnavailable)
		}
	}
}

// check waits until every event was followed, and requires them once and in order.
func (l *lasting) check(t *testing.T) {
	t.Helper()
	for _, id := range l.stored {
		require.Equal(t, id, <-l.followed)
	}
	require.Len(t, held(t, l.store, "kept-1"), len(l.stored))
	require.Empty(t, l.followed)
}

func TestClusterWithoutItsLeaderGoesOnWithTheNextOne(t *testing.T) {
	t.Parallel()
	c := esdbtest.Start(t, 3)
	l := lastingOn(t, c)
	for round := range 3 {
		for range 5 {
			l.put(t)
		}
		c.Node(round).Stop()
		c.Node((round + 1) % 3).Elect()
		if round > 0 {
			c.Node(round - 1).Restart(t)
		}
		l.put(t)
	}
	l.check(t)
}

// A paused node keeps its connections and answers nothing; when it wakes, it does what it was asked.
func TestPausedNodesAreLeftAndComeBack(t *testing.T) {
	t.Parallel()
	c := esdbtest.Start(t, 3)
	l := lastingOn(t, c)
	for round := range 3 { // each leads once, hangs as the leader, and once as a follower
		l.put(t)
		wake := c.Node(round).Hang(t)
		c.Node((round + 1) % 3).Elect()
		began := time.Now()
		l.put(t)
		t.Log("without the leader", time.Since(began))
		wake()
		for range 5 {
			l.put(t)
		}
		wake = c.Node(round).Hang(t)
		began = time.Now()
		l.put(t)
		t.Log("without a follower", time.Since(began))
		wake()
	}
	l.check(t)
}

// What was read of a log before its server paused is not the whole log.
func TestReadsThatAPauseCutsAreErrors(t *testing.T) {
	t.Parallel()
	c := esdbtest.Start(t, 1)
	store := vendor(t, c.URL())
	const count = 4000
	for i := range count / 500 {
		events := make([]event.New, 500)
		for n := range events {
			events[n] = fresh()
		}
		_, err := store.Append(t.Context(), eventstore.To(fmt.Sprint("many-", i), eventstore.NoStream, events...))
		require.NoError(t, err)
	}
	var reads, begun sync.WaitGroup
	paused := make(chan struct{})
	for range 8 { // each is cut in the same moment
		begun.Add(1)
		reads.Go(func() {
			var failed error
			read := 0
			for _, err := range store.ReadAll(t.Context(), 0, eventstore.Forwards) {
				if failed = err; err != nil {
					break
				}
				if read++; read == 1 {
					begun.Done()
					<-paused
				}
			}
			assert.Equal(t, read < count, errors.Is(failed, eventstore.ErrUnavailable), "%d events, %v", read, failed) // one may have been sent as a whole before
		})
	}
	begun.Wait()
	c.Node(0).Hang(t)
	close(paused)
	_, err := store.Head(t.Context()) // who waits for an answer finds out
	require.ErrorIs(t, err, eventstore.ErrUnavailable)
	reads.Wait()
}

// A follower says where the leader is; when that one no longer answers, the others are asked again.
func TestALeaderThatPausesAfterItWasNamedIsLeft(t *testing.T) {
	t.Parallel()
	c := esdbtest.Start(t, 2)
	l := lastingOn(t, c)
	l.put(t)
	c.Node(1).Hang(t)
	c.Node(1).Elect()
	_, err := l.store.Append(t.Context(), eventstore.To("kept-1", eventstore.Expected(0), fresh()))
	require.Error(t, err)
	c.Node(0).Elect()
	l.put(t)
	l.check(t)
}
