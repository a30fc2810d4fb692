package storetest

import (
	"context"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore"
)

func (n *node) head(t testing.TB) event.Position {
	t.Helper()
	head, err := n.Head(t.Context())
	require.NoError(t, err)
	return head
}

// all reads the log from a position, checks its order, and returns the events of one stream.
func (n *node) all(t testing.TB, from event.Position, direction eventstore.Direction, stream string) (mine []event.Stored) {
	t.Helper()
	last, first := from, direction == eventstore.Backwards
	for e, err := range n.ReadAll(t.Context(), from, direction) {
		require.NoError(t, err)
		switch direction {
		case eventstore.Backwards:
			require.Less(t, e.Position, last)
			require.True(t, first || e.Position == last-1, "%d is followed by %d", last, e.Position)
			first = false
		default:
			require.Equal(t, last+1, e.Position)
		}
		last = e.Position
		if e.Stream == stream {
			mine = append(mine, e)
		}
	}
	return mine
}

func reversed(events []event.Stored) []event.Stored {
	events = slices.Clone(events)
	slices.Reverse(events)
	return events
}

var reading = []sentence{
	{"a stream is read from any revision, in both directions", func(t *testing.T, n *node) {
		s := stream()
		n.must(t, s, eventstore.NoStream, some(200)...)
		stored := n.stream(t, s)
		require.Len(t, stored, 200)
		read := func(from int64, d eventstore.Direction) []event.Stored {
			return collect(t, n.ReadStream(t.Context(), s, from, d))
		}
		for _, from := range []int64{0, 1, 63, 64, 65, 136, 199} {
			require.Equal(t, stored[from:], read(from, eventstore.Forwards))
			require.Equal(t, reversed(stored[:from+1]), read(from, eventstore.Backwards))
		}
		require.Equal(t, reversed(stored), read(eventstore.LastRevision, eventstore.Backwards))
		require.Equal(t, reversed(stored), read(200, eventstore.Backwards))
		require.Empty(t, read(200, eventstore.Forwards))
		require.Empty(t, read(math.MaxInt64, eventstore.Forwards))
	}},
	{"a missing stream yields nothing", func(t *testing.T, n *node) {
		for _, s := range []string{stream(), "", "a\x00b", "a\xffb", stream() + string(make([]byte, 1<<16))} {
			require.Empty(t, collect(t, n.ReadStream(t.Context(), s, 0, eventstore.Forwards)))
			require.Empty(t, collect(t, n.ReadStream(t.Context(), s, eventstore.LastRevision, eventstore.Backwards)))
		}
	}},
	{"the log is read from any position, in both directions", func(t *testing.T, n *node) {
		s := stream()
		for range 40 {
			n.must(t, s, eventstore.Any, some(5)...)
		}
		stored := n.stream(t, s)
		equal := func(want, got []event.Stored, why string) {
			require.Len(t, got, len(want), why)
			for i := range want {
				require.Equal(t, want[i], got[i], why)
			}
		}
		for _, i := range []int{0, 1, 63, 64, 100, 199} {
			at := stored[i].Position
			equal(stored[i+1:], n.all(t, at, eventstore.Forwards, s), "after a position, exclusive")
			equal(reversed(stored[:i]), n.all(t, at, eventstore.Backwards, s), "before a position, exclusive")
		}
		require.Equal(t, stored, n.all(t, 0, eventstore.Forwards, s))
		require.Equal(t, reversed(stored), n.all(t, eventstore.End, eventstore.Backwards, s))
		require.Empty(t, n.all(t, 0, eventstore.Backwards, s))
	}},
	{"beyond the log's end there is nothing", func(t *testing.T, n *node) {
		n.must(t, stream(), eventstore.NoStream, one())
		for _, from := range []event.Position{eventstore.End - 1, eventstore.End, eventstore.End + 1, math.MaxUint64} {
			require.Empty(t, collect(t, n.ReadAll(t.Context(), from, eventstore.Forwards)))
			for e, err := range n.ReadAll(t.Context(), from, eventstore.Backwards) {
				require.NoError(t, err)
				require.NotZero(t, e)
				break
			}
		}
	}},
	{"a read may stop early and start again", func(t *testing.T, n *node) {
		s := stream()
		n.must(t, s, eventstore.NoStream, some(100)...)
		read := n.ReadStream(t.Context(), s, 0, eventstore.Forwards)
		for range 2 {
			count := 0
			for _, err := range read {
				require.NoError(t, err)
				if count++; count == 70 {
					break
				}
			}
			require.Equal(t, 70, count)
		}
		for range 50 { // more than the pool has connections
			for _, err := range n.ReadAll(t.Context(), 0, eventstore.Forwards) {
				require.NoError(t, err)
				break
			}
		}
	}},
	{"a reader may append and read while it reads", func(t *testing.T, n *node) {
		s, copied := stream(), stream()
		n.must(t, s, eventstore.NoStream, some(70)...)
		var all sync.WaitGroup
		for range 20 { // more than the pool has connections
			all.Go(func() {
				for e := range n.ReadStream(t.Context(), s, 0, eventstore.Forwards) {
					if _, err := n.Append(t.Context(),
						eventstore.To(copied, eventstore.Any, event.Proposed{ID: e.ID, Type: e.Type, Data: e.Data, Meta: e.Meta})); err != nil {
						return
					}
				}
			})
		}
		all.Wait()
		require.Len(t, n.stream(t, copied), 70)
	}},
	{"a cancelled read ends with the reason", func(t *testing.T, n *node) {
		s := stream()
		n.must(t, s, eventstore.NoStream, one())
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, ends(n.ReadStream(ctx, s, 0, eventstore.Forwards)), context.Canceled)
		require.ErrorIs(t, ends(n.ReadAll(ctx, 0, eventstore.Backwards)), context.Canceled)
		_, err := n.Head(ctx)
		require.ErrorIs(t, err, context.Canceled)
		_, err = n.PositionAt(ctx, time.Now())
		require.ErrorIs(t, err, context.Canceled)
	}},
	{"the head covers all earlier appends, on every node", func(t *testing.T, n *node) {
		other := n.another(t)
		for range 20 {
			done := n.must(t, stream(), eventstore.NoStream, some(2)...)
			require.GreaterOrEqual(t, n.head(t), done.Position)
			require.GreaterOrEqual(t, other.head(t), done.Position)
		}
	}},
	{"the log's id is the same on every node", func(t *testing.T, n *node) {
		require.NotZero(t, n.ID())
		require.Equal(t, n.ID(), n.another(t).ID())
	}},
}

var timing = []sentence{
	{"an event's time is never before its predecessor's, in microseconds of UTC", func(t *testing.T, n *node) {
		other := n.another(t)
		for _, through := range []*node{n, other, n, other} {
			// The log's clock is the server's, so the test compares it only with itself.
			before := through.must(t, stream(), eventstore.NoStream, one())
			done := through.must(t, stream(), eventstore.NoStream, one())
			require.False(t, done.At.Before(before.At))
		}
		var last time.Time
		for e, err := range n.ReadAll(t.Context(), 0, eventstore.Forwards) {
			require.NoError(t, err)
			require.False(t, e.At.Before(last), "position %d", e.Position)
			require.Equal(t, time.UTC, e.At.Location())
			require.Equal(t, e.At, e.At.Truncate(time.Microsecond))
			last = e.At
		}
	}},
	{"PositionAt returns the last position recorded at or before a time", func(t *testing.T, n *node) {
		s := stream()
		for range 5 {
			n.must(t, s, eventstore.Any, some(2)...)
		}
		at := func(moment time.Time) event.Position {
			p, err := n.PositionAt(t.Context(), moment)
			require.NoError(t, err)
			return p
		}
		all := n.stream(t, s)
		for i, e := range all {
			appended := all[i|1].At // when the last event of its append was recorded
			for _, moment := range []time.Time{appended, appended.Add(-time.Microsecond), appended.Add(time.Microsecond), appended.Add(999)} {
				found := at(moment)
				require.Equal(t, !moment.Before(appended), found >= e.Position)
				for next, err := range n.ReadAll(t.Context(), found, eventstore.Forwards) {
					require.NoError(t, err)
					require.True(t, next.At.After(moment), "%d at %s is not after %s", next.Position, next.At, moment)
					break
				}
				for last, err := range n.ReadAll(t.Context(), found+1, eventstore.Backwards) {
					require.NoError(t, err)
					require.Equal(t, found, last.Position)
					require.False(t, last.At.After(moment))
					break
				}
			}
		}
		require.Zero(t, at(time.Time{}))
		require.Zero(t, at(time.Unix(0, 0)))
		before := n.head(t)
		require.GreaterOrEqual(t, at(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)), before)
	}},
	{"PositionAt ignores the time zone", func(t *testing.T, n *node) {
		done := n.must(t, stream(), eventstore.NoStream, one())
		here, err := n.PositionAt(t.Context(), done.At)
		require.NoError(t, err)
		there, err := n.PositionAt(t.Context(), done.At.In(time.FixedZone("IST", 19800)))
		require.NoError(t, err)
		require.Equal(t, here, there)
	}},
}
