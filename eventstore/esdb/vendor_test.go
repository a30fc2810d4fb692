package esdb_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/esdb"
	"bahi/eventstore/esdb/esdbtest"
	"bahi/eventstore/storetest"
)

// The tests of this file run on a log that behaves as the vendor's server does.

func vendor(t testing.TB, url string) *esdb.Store {
	t.Helper()
	store, err := esdb.Open(t.Context(), url, testLog(t))
	require.NoError(t, err)
	t.Cleanup(store.Close)
	return store
}

func suiteOf(url string) storetest.Suite {
	return storetest.Suite{
		OpaquePositions: true, OneStream: true, AnyRetryFound: true, ConcurrentFirsts: true, EachUntold: true, OwnTimes: true,
		Open: func(t testing.TB) (eventstore.Store, func()) {
			t.Helper()
			store, err := esdb.Open(t.Context(), url, testLog(t))
			require.NoError(t, err)
			return store, store.Close
		},
	}
}

func TestStoreOnAServerLikeTheVendors(t *testing.T) {
	t.Parallel()
	c := esdbtest.Start(t, 1)
	c.System(20)
	t.Cleanup(func() { // after the sentences, which run in parallel
		require.Zero(t, c.Node(0).Counts.Refused.Load(), "no call names a position that the server did not tell")
	})
	storetest.Run(t, suiteOf(c.URL()))
}

func TestVendorsLogLosesItsNewestEvents(t *testing.T) {
	t.Parallel()
	storetest.Losing(t, func(t testing.TB) (storetest.Suite, func(int)) {
		t.Helper()
		c := esdbtest.Start(t, 1)
		return suiteOf(c.URL()), func(count int) { c.Cut(t, count) }
	})
}

// The log's old end is no place up to which a subscriber has seen the log that is there now.
func TestALogThatLosesItsEndWhileASubscriptionBeginsIsFollowedFromThere(t *testing.T) {
	t.Parallel()
	c := esdbtest.Start(t, 1)
	writer := vendor(t, c.URL())
	put := func(text string) string {
		e := thing(text)
		_, err := writer.Append(t.Context(), eventstore.To("lost-1", eventstore.Any, e))
		require.NoError(t, err)
		return e.ID.String()
	}
	kept := put("kept")
	put(strings.Repeat("lost ", 1000))
	var lost atomic.Bool
	c.Node(0).Subscribing(func(all bool) error {
		switch {
		case lost.Load():
		case !all: // the tail that the subscriber may share waits
			return status.Error(codes.Unknown, "not yet")
		default:
			c.Lose(1)
			lost.Store(true)
		}
		return nil
	})
	got, want := []string{}, []string{kept}
	for batch, err := range vendor(t, c.URL()).Subscribe(t.Context(), 0) {
		require.NoError(t, err)
		for _, e := range batch.Events {
			got = append(got, e.ID.String())
		}
		if len(got) == 1 && len(want) == 1 {
			want = append(want, put("below the old end"), put(strings.Repeat("beyond ", 1000)))
		}
		if len(want) > 1 && slices.Contains(got, want[2]) {
			break
		}
	}
	require.Equal(t, want, got)
}

// fresh returns an event with an id that was made for one append.
func fresh() event.New {
	e := thing("fresh")
	e.ID = uuid.Must(uuid.NewV7())
	return e
}

// The server is what a request costs: an append of new events is one call, and a look at the head is one call for one event.
func TestCallsOfAnAppendAndOfTheHead(t *testing.T) {
	t.Parallel()
	c := esdbtest.Start(t, 1)
	store := vendor(t, c.URL())
	n := &c.Node(0).Counts
	done, err := store.Append(t.Context(), eventstore.To("counted-1", eventstore.NoStream, fresh()))
	require.NoError(t, err)
	appends, reads, events := n.Appends.Load(), n.Reads.Load(), n.Events.Load()
	for i := range 10 {
		_, err := store.Append(t.Context(), eventstore.To("counted-1", eventstore.Expected(done.Revision+int64(i)), fresh()))
		require.NoError(t, err)
	}
	require.EqualValues(t, 10, n.Appends.Load()-appends)
	require.Zero(t, n.Reads.Load()-reads, "an append of new events reads nothing")
	for range 10 {
		_, err := store.Head(t.Context())
		require.NoError(t, err)
	}
	require.EqualValues(t, 10, n.Reads.Load()-reads)
	require.EqualValues(t, 10, n.Events.Load()-events)

	// Events whose ids may have been used before are looked for before, and looked at after.
	reads = n.Reads.Load()
	_, err = store.Append(t.Context(), eventstore.To("counted-2", eventstore.NoStream, thing("keyed")))
	require.NoError(t, err)
	require.EqualValues(t, 2, n.Reads.Load()-reads)
}

func TestHeadPassesOverTheServersOwnEventsOnce(t *testing.T) {
	t.Parallel()
	c := esdbtest.Start(t, 1)
	store := vendor(t, c.URL())
	done, err := store.Append(t.Context(), eventstore.To("mine-1", eventstore.NoStream, fresh()))
	require.NoError(t, err)
	c.System(300)
	n := &c.Node(0).Counts
	for i, most := range []int64{1000, 1} {
		before := n.Events.Load()
		head, err := store.Head(t.Context())
		require.NoError(t, err)
		require.Equal(t, done.Position, head)
		require.LessOrEqual(t, n.Events.Load()-before, most, "look %d", i)
	}
}

// A checkpoint may be at a position that is none of the server's: written by another version, copied, or counted.
func TestReadersBeginBetweenEvents(t *testing.T) {
	t.Parallel()
	c := esdbtest.Start(t, 1)
	store := vendor(t, c.URL())
	var at []event.Position
	for range 600 {
		c.System(1)
		done, err := store.Append(t.Context(), eventstore.To("placed-1", eventstore.Expected(len(at)-1), fresh()))
		require.NoError(t, err)
		at = append(at, done.Position)
	}
	for _, place := range []event.Position{1, at[0] + 1, at[300] - 1, at[300], at[300] + 5, at[599] - 1} {
		other := vendor(t, c.URL()) // knows no position
		var before, after []event.Position
		for _, p := range at {
			if p < place {
				before = append(before, p)
			} else if p > place {
				after = append(after, p)
			}
		}
		read := func(direction eventstore.Direction) (got []event.Position) {
			for e, err := range other.ReadAll(t.Context(), place, direction) {
				require.NoError(t, err)
				got = append(got, e.Position)
			}
			return got
		}
		require.Equal(t, after, read(eventstore.Forwards))
		backwards := read(eventstore.Backwards)
		require.Len(t, backwards, len(before))
		for i, p := range backwards {
			require.Equal(t, before[len(before)-1-i], p)
		}
		var followed []event.Position
		for batch, err := range vendor(t, c.URL()).Subscribe(t.Context(), place) {
			require.NoError(t, err)
			for _, e := range batch.Events {
				followed = append(followed, e.Position)
			}
			if len(followed) >= len(after) {
				break
			}
		}
		require.Equal(t, after, followed)
	}
	require.Zero(t, c.Node(0).Counts.Refused.Load())
}

// table is a table of places.
type table struct {
	positions []event.Position
	times     []time.Time
}

func (p table) Before(_ context.Context, position event.Position) (last event.Position, err error) {
	for _, at := range p.positions {
		if at <= position {
			last = at
		}
	}
	return last, nil
}

func (p table) At(_ context.Context, at time.Time) (last event.Position, err error) {
	for i, t := range p.times {
		if !t.After(at) {
			last = p.positions[i]
		}
	}
	return last, nil
}

// Events of one append have their own times, a few microseconds apart: no moment between them shows a part of the append.
func TestAMomentNeverPartsAnAppend(t *testing.T) {
	t.Parallel()
	c := esdbtest.Start(t, 1)
	store := vendor(t, c.URL())
	var (
		appended []eventstore.Appended
		stored   []event.Stored
	)
	for i := range 40 {
		events := make([]event.New, 1+i%4)
		meta := fmt.Appendf(nil, `{"schema":1,"request_id":"%d"}`, i)
		for n := range events {
			events[n] = fresh()
			events[n].Meta = meta
		}
		done, err := store.Append(t.Context(), eventstore.To("parts-1", eventstore.Expected(len(stored)-1), events...))
		require.NoError(t, err)
		appended = append(appended, done)
		stored = stored[:0]
		for e, err := range store.ReadStream(t.Context(), "parts-1", 0, eventstore.Forwards) {
			require.NoError(t, err)
			stored = append(stored, e)
		}
	}
	ends := map[event.Position]bool{0: true}
	for _, done := range appended {
		ends[done.Position] = true
	}
	for every := range 5 { // tables of places, in the middle of appends too; without one at first
		var places table
		for i, e := range stored {
			if every > 0 && i%every == 0 {
				places.positions, places.times = append(places.positions, e.Position), append(places.times, e.At)
			}
		}
		other := vendor(t, c.URL())
		other.UsePlaces(places)
		for _, e := range stored {
			for _, moment := range []time.Time{e.At.Add(-time.Microsecond), e.At, e.At.Add(time.Microsecond)} {
				want := event.Position(0)
				for _, s := range stored {
					if ends[s.Position] && !s.At.After(moment) {
						want = s.Position
					}
				}
				got, err := other.PositionAt(t.Context(), moment)
				require.NoError(t, err)
				require.Equal(t, want, got, "every %d, %s", every, moment)
			}
		}
	}
	require.Zero(t, c.Node(0).Counts.Refused.Load())
}

// Of equal appends at one time, whose contents tell the callers apart, one is the first.
func TestOneOfManyConcurrentRetriesIsTheFirst(t *testing.T) {
	t.Parallel()
	c := esdbtest.Start(t, 1)
	nodes := []*esdb.Store{vendor(t, c.URL()), vendor(t, c.URL())}
	for round := range 10 {
		stream, id := fmt.Sprintf("keyed-%d", round), uuid.New()
		var (
			all     sync.WaitGroup
			results [16]eventstore.Appended
			errs    [16]error
		)
		for i := range results {
			all.Go(func() {
				e := thing("keyed")
				e.ID, e.Meta = id, fmt.Appendf(nil, `{"schema":1,"attempt":"%d"}`, i)
				results[i], errs[i] = nodes[i%2].Append(t.Context(), eventstore.To(stream, eventstore.NoStream, e))
			})
		}
		all.Wait()
		firsts := 0
		for i, r := range results {
			require.NoError(t, errs[i])
			require.Equal(t, results[0].Position, r.Position)
			if !r.Replayed {
				firsts++
			}
		}
		require.Equal(t, 1, firsts)
	}
}

func TestServerWithoutCaughtUpIsRefusedWithItsVersion(t *testing.T) {
	t.Parallel()
	for version, says := range map[string]string{
		"22.10.5": "its version is 22.10.5, and Bahi needs 23.10", "23.6.0": "23.6.0", "nonsense": "invalid EventStoreDB server version",
	} {
		c := esdbtest.Start(t, 1)
		c.Version = version
		_, err := esdb.Open(t.Context(), c.URL(), testLog(t))
		require.ErrorContains(t, err, says)
	}
}

func TestServerThatIsNotReadyIsWaitedFor(t *testing.T) {
	t.Parallel()
	c := esdbtest.Start(t, 1)
	store := vendor(t, c.URL())
	c.Node(0).Unready(true)
	_, err := store.Head(t.Context())
	require.ErrorIs(t, err, eventstore.ErrUnavailable)
	c.Node(0).Unready(false)
	require.Eventually(t, func() bool {
		_, err := store.Head(t.Context())
		return err == nil
	}, time.Minute, 10*time.Millisecond)
	_, err = store.Append(t.Context(), eventstore.To("ready-1", eventstore.NoStream, fresh()))
	require.NoError(t, err)
}

// Callers mostly want the newest event before a position, or the event at one.
func TestReadBackwardsAsksForAsManyEventsAsAreWanted(t *testing.T) {
	t.Parallel()
	c := esdbtest.Start(t, 1)
	store := vendor(t, c.URL())
	var last eventstore.Appended
	for i := range 2 * 4096 / 500 {
		events := make([]event.New, 500)
		for n := range events {
			events[n] = fresh()
		}
		var err error
		last, err = store.Append(t.Context(), eventstore.To(fmt.Sprint("many-", i), eventstore.NoStream, events...))
		require.NoError(t, err)
	}
	n := &c.Node(0).Counts
	for _, from := range []event.Position{last.Position, last.Position + 1, eventstore.End} {
		reads, events := n.Reads.Load(), n.Events.Load()
		for e, err := range store.ReadAll(t.Context(), from, eventstore.Backwards) {
			require.NoError(t, err)
			require.Equal(t, from == last.Position, e.Position < last.Position)
			break
		}
		require.EqualValues(t, 1, n.Reads.Load()-reads)
		require.EqualValues(t, 1, n.Events.Load()-events)
	}
	for _, from := range []event.Position{last.Position + 1, eventstore.End} { // a read of all, in several calls
		count, before := 0, from
		for e, err := range store.ReadAll(t.Context(), from, eventstore.Backwards) {
			require.NoError(t, err)
			require.Less(t, e.Position, before)
			before, count = e.Position, count+1
		}
		require.Equal(t, 2*4096/500*500, count)
	}
}
