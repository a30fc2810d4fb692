package postgres

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore"
)

// losing checks a log that loses its newest events while nodes use it, as in a failover to a lagging server. Each sentence has its own log
// from fresh; lose deletes the newest events and cuts all connections.
func losing(t *testing.T, fresh func(t testing.TB) (s suite, lose func(count int))) {
	t.Helper()
	for _, c := range []struct {
		says string
		test func(*lossyNode, *testing.T)
	}{
		{"a reader of lost events gets ErrTailLost and nothing more", (*lossyNode).tellsTheReader},
		{"a reader of lost events gets ErrTailLost even after their positions have new events", (*lossyNode).tellsTheReaderLate},
		{"a reader before the lost events continues with the new ones", (*lossyNode).goesOn},
		{"appends continue at the new end", (*lossyNode).appends},
		{"a transaction that was decided on lost events is refused, even if streams have their revisions again", (*lossyNode).refusesTheLost},
	} {
		t.Run(c.says, func(t *testing.T) {
			t.Parallel()
			s, lose := fresh(t)
			c.test(&lossyNode{s.node(t), lose}, t)
		})
	}
}

// lossyNode is a node of a log that can lose its newest events.
type lossyNode struct {
	*node

	lose func(count int)
}

// filled appends events to separate streams, one after the other, and returns their positions. It retries while the log is
// unreachable.
func (l *lossyNode) filled(t *testing.T, count int) (at []event.Position) {
	t.Helper()
	for len(at) < count {
		done, err := l.append(t, stream(), eventstore.NoStream, one())
		require.NoError(t, err)
		at = append(at, done.Position)
	}
	return at
}

// reader follows the log. ended returns its last position and the error that ended its subscription.
func (l *lossyNode) reader(ctx context.Context, t *testing.T, after, upTo event.Position) (there <-chan struct{},
	ended func() (event.Position, error)) {
	t.Helper()
	reached, end := make(chan struct{}), make(chan error, 1)
	last := after
	go func() {
		for batch, err := range l.Subscribe(ctx, after) {
			if err != nil {
				end <- err
				return
			}
			if last < upTo && batch.UpTo >= upTo {
				close(reached)
			}
			last = batch.UpTo
		}
	}()
	return reached, func() (event.Position, error) {
		err := <-end
		return last, err
	}
}

// told returns the final error of a reader. Like a reader, it subscribes again if the connection was lost.
func (l *lossyNode) told(ctx context.Context, err error, last event.Position) error {
	for err != nil && ctx.Err() == nil && !errors.Is(err, eventstore.ErrTailLost) {
		for batch, failed := range l.Subscribe(ctx, last) {
			if err = failed; err == nil && batch.UpTo > last {
				return nil
			}
		}
	}
	return err
}

// readerOfLost lets a reader read twenty events to their end. Then the log loses five of them.
func (l *lossyNode) readerOfLost(ctx context.Context, t *testing.T) (end event.Position, ended func() (event.Position, error)) {
	at := l.filled(t, 20)
	there, ended := l.reader(ctx, t, 0, at[19])
	within(t, there, "the reader reaches the end")
	l.lose(5)
	return at[19], ended
}

func (l *lossyNode) tellsTheReader(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	end, ended := l.readerOfLost(ctx, t)
	last, err := ended()
	require.Equal(t, end, last)
	require.ErrorIs(t, l.told(ctx, err, last), eventstore.ErrTailLost)
	require.ErrorIs(t, ends(l.another(t).Subscribe(ctx, last)), eventstore.ErrTailLost, "a new subscription detects it too")
}

func (l *lossyNode) tellsTheReaderLate(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	end, ended := l.readerOfLost(ctx, t)
	(&lossyNode{l.another(t), nil}).filled(t, 12)
	last, err := ended()
	require.Error(t, err)
	require.Equal(t, end, last, "the reader skipped an event that replaced a lost one")
}

func (l *lossyNode) goesOn(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	at := l.filled(t, 20)
	var got []event.Stored
	given, lost := make(chan struct{}), make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for last := at[4]; len(got) < 13 && ctx.Err() == nil; { // ten that remain, and three new ones
			for batch, err := range l.Subscribe(ctx, last) {
				if err != nil {
					break // the connection was lost
				}
				if len(got) == 0 && len(batch.Events) > 0 {
					close(given)
					<-lost
					some := batch.Events[:min(3, len(batch.Events))] // processes some of them, and subscribes again
					got, last = slices.Clone(some), some[len(some)-1].Position
					break
				}
				if got, last = append(got, batch.Events...), batch.UpTo; len(got) >= 13 {
					break
				}
			}
		}
	}()
	within(t, given, "the reader gets a batch")
	l.lose(5)
	close(lost)
	l.filled(t, 3)
	within(t, done, "the reader sees the new events")
	var all []event.Stored
	require.Eventually(t, func() bool { // some of the pool's connections may still be broken
		all = nil
		for e, err := range l.ReadAll(ctx, at[4], eventstore.Forwards) {
			if err != nil {
				return false
			}
			all = append(all, e)
		}
		return true
	}, patience, time.Millisecond)
	require.Equal(t, all, got)
}

func (l *lossyNode) appends(t *testing.T) {
	s := stream()
	kept := l.must(t, s, eventstore.NoStream, one())
	gone := some(2)
	l.must(t, s, 0, gone...)
	require.Greater(t, l.head(t), kept.Position)
	l.lose(2)
	require.Eventually(t, func() bool {
		head, err := l.Head(t.Context())
		return err == nil && head == kept.Position
	}, patience, 10*time.Millisecond, "the head is at the end of the log")
	var wrong *eventstore.WrongRevision
	_, err := l.append(t, s, 2, one())
	require.ErrorAs(t, err, &wrong)
	require.EqualValues(t, 0, wrong.Actual)
	done, err := l.append(t, s, 0, one())
	require.NoError(t, err)
	require.EqualValues(t, 1, done.Revision)
	require.Equal(t, kept.Position+1, done.Position)
	head, err := until(t, func() (event.Position, error) { return l.Head(t.Context()) })
	require.NoError(t, err)
	require.Equal(t, done.Position, head)
	again, err := l.append(t, s, 0, gone...)
	require.ErrorAs(t, err, &wrong, "a lost append was taken for a repetition: %+v", again)
}

func (l *lossyNode) refusesTheLost(t *testing.T) {
	s, n := stream(), l.another(t)
	before := l.must(t, stream(), eventstore.NoStream, one())
	first := one()
	lost := l.must(t, s, eventstore.NoStream, first)
	require.Equal(t, lost.Position, n.head(t))
	l.lose(1)
	_, err := (&lossyNode{n, nil}).append(t, stream(), eventstore.NoStream, some(3)...)
	require.NoError(t, err)
	_, err = (&lossyNode{n, nil}).append(t, s, eventstore.NoStream, one())
	require.NoError(t, err)
	for _, node := range []*node{l.node, n} {
		for _, c := range []struct {
			at      eventstore.Appended
			id      uuid.UUID
			refused error
		}{
			{lost, first.ID, eventstore.ErrTailLost},
			{before, l.stored(t, before).ID, nil},
			{lost, l.stored(t, lost).ID, nil},
		} {
			_, err := until(t, func() (eventstore.Appended, error) {
				return node.Append(t.Context(), eventstore.Transaction{
					AsOf: c.at.Position, AsOfID: c.id, Checks: []eventstore.Check{{Stream: s, Expected: 0}},
					Writes: []eventstore.Write{{Stream: stream(), Expected: eventstore.NoStream, Events: some(1)}},
				})
			})
			require.ErrorIs(t, err, c.refused)
		}
	}
}

// stored returns the event that is now at the position of an append.
func (l *lossyNode) stored(t *testing.T, at eventstore.Appended) event.Stored {
	t.Helper()
	for e, err := range l.another(t).ReadAll(t.Context(), at.Position-1, eventstore.Forwards) { // without cut connections
		require.NoError(t, err)
		return e
	}
	t.Fatalf("the log has no event at %d", at.Position)
	return event.Stored{}
}

// append retries, because one connection after another turns out to be cut.
func (l *lossyNode) append(t *testing.T, stream string, expected eventstore.Expected, events ...event.Proposed,
) (eventstore.Appended, error) {
	t.Helper()
	return until(t, func() (eventstore.Appended, error) {
		return l.Append(t.Context(), eventstore.To(stream, expected, events...))
	})
}

// until retries while the log is unreachable.
func until[T any](t *testing.T, try func() (T, error)) (got T, err error) {
	t.Helper()
	require.Eventually(t, func() bool {
		got, err = try()
		return !errors.Is(err, eventstore.ErrUnavailable)
	}, patience, time.Millisecond)
	return got, err
}

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
		for range 8 { // more than the pool has connections
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
}
