package esdb_test

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/esdb"
)

func TestConcurrentFirstOpensAgreeOnOneID(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ids := make([]uuid.UUID, 8)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() { ids[i] = s.open(t, s.address).ID() })
	}
	all.Wait()
	for _, id := range ids {
		require.NotZero(t, id)
		require.Equal(t, ids[0], id)
	}
	other := newServer(t)
	require.NotEqual(t, ids[0], other.open(t, other.address).ID())
	require.Len(t, held(t, s.log, esdb.IdentityStream), 1)
}

// The server writes events of its own: statistics, metadata, links. They are not part of the log.
func TestTheServersOwnEventsAreSkipped(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	store := s.open(t, s.address)
	head, err := store.Head(t.Context())
	require.NoError(t, err)
	require.Zero(t, head, "the log's id is not an event of the log")

	system := func(count int) {
		for i := range count {
			e := thing("system")
			e.Type = "$stats"
			_, err := s.log.Append(t.Context(), eventstore.To(fmt.Sprintf("$stats-%d", i), eventstore.Any, e))
			require.NoError(t, err)
		}
	}
	var mine []uuid.UUID
	var last eventstore.Appended
	for range 3 {
		system(40)
		e := thing("mine")
		last, err = store.Append(t.Context(), eventstore.To("mine-1", eventstore.Any, e))
		require.NoError(t, err)
		mine = append(mine, e.ID)
	}
	system(40)
	for range 2 { // the second read goes back only to where the first began
		head, err = store.Head(t.Context())
		require.NoError(t, err)
		require.Equal(t, last.Position, head)
	}
	for _, direction := range []eventstore.Direction{eventstore.Forwards, eventstore.Backwards} {
		from, got := event.Position(0), 0
		if direction == eventstore.Backwards {
			from = eventstore.End
		}
		for e, err := range store.ReadAll(t.Context(), from, direction) {
			require.NoError(t, err)
			require.Contains(t, mine, e.ID)
			got++
		}
		require.Equal(t, len(mine), got)
	}
	at, err := store.PositionAt(t.Context(), time.Now().Add(time.Hour))
	require.NoError(t, err)
	require.Equal(t, last.Position, at)
	at, err = store.PositionAt(t.Context(), last.At.Add(-time.Microsecond))
	require.NoError(t, err)
	require.Less(t, at, last.Position)

	// A follower learns that there is nothing more up to the end, although the last event there is the server's.
	end, err := s.log.Head(t.Context())
	require.NoError(t, err)
	require.Greater(t, end, head)
	var followed []uuid.UUID
	for batch, err := range store.Subscribe(t.Context(), 0) {
		require.NoError(t, err)
		for _, e := range batch.Events {
			followed = append(followed, e.ID)
		}
		if batch.UpTo >= end {
			break
		}
	}
	require.Equal(t, mine, followed)

	_, err = store.Append(t.Context(), eventstore.To("$settings", eventstore.Any, thing("ours")))
	require.ErrorIs(t, err, eventstore.ErrBadEvent)
	_, err = store.Append(t.Context(), eventstore.To(esdb.IdentityStream, eventstore.Any, thing("ours")))
	require.ErrorIs(t, err, eventstore.ErrBadEvent)
}

// A waiting follower learns how far the log was read, even if it has nothing for the follower.
func TestCheckpointAdvancesOverTheServersOwnEvents(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	store := s.open(t, s.address)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	caughtUp := false
	for batch, err := range store.Subscribe(ctx, 0) {
		require.NoError(t, err)
		require.Empty(t, batch.Events)
		if caughtUp {
			return
		}
		caughtUp = true
		for i := range 20 {
			var events []event.New
			for range 100 {
				e := thing("system")
				e.Type = "$stats"
				events = append(events, e)
			}
			_, err := s.log.Append(t.Context(), eventstore.To(fmt.Sprintf("$stats-%d", i), eventstore.NoStream, events...))
			require.NoError(t, err)
		}
	}
}

// counting counts the reads of the head, and lets a test delay one.
type counting struct {
	eventstore.Store

	reads atomic.Int32
	hold  chan struct{}
}

func (c *counting) ReadAll(ctx context.Context, from event.Position, direction eventstore.Direction) iter.Seq2[event.Stored, error] {
	if from == eventstore.End {
		c.reads.Add(1)
		<-c.hold
	}
	return c.Store.ReadAll(ctx, from, direction)
}

func TestConcurrentCallersOfHeadShareARead(t *testing.T) {
	t.Parallel()
	var log *counting
	s := newServer(t, func(store eventstore.Store) eventstore.Store {
		log = &counting{Store: store, hold: make(chan struct{})}
		return log
	})
	store := s.open(t, s.address)
	var all sync.WaitGroup
	ask := func() {
		if _, err := store.Head(t.Context()); err != nil {
			t.Error(err)
		}
	}
	all.Go(ask)
	require.Eventually(t, func() bool { return log.reads.Load() == 1 }, time.Minute, time.Millisecond)
	begun := make(chan struct{}, 100)
	for range cap(begun) {
		all.Go(func() { begun <- struct{}{}; ask() })
	}
	for range cap(begun) {
		<-begun
	}
	close(log.hold)
	all.Wait()
	require.Less(t, log.reads.Load(), int32(20), "callers that arrived during a read share the next")
}

func TestSubscriptionEndsWhenAccessIsDenied(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	store := s.open(t, s.address)
	s.deny.Store(true)
	for _, err := range store.Subscribe(t.Context(), 0) {
		require.ErrorContains(t, err, "the event log's server refuses")
	}
	_, err := store.Append(t.Context(), eventstore.To("denied-1", eventstore.NoStream, thing("denied")))
	require.Error(t, err)
	require.Empty(t, held(t, s.log, "denied-1"))
}
