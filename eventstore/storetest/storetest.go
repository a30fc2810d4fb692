// Package storetest is the conformance suite of the event log: a sentence for each behaviour that
// [eventstore.Store] promises. An implementation plugs in how a log is opened and says what it lacks;
// it is checked for all the rest.
//
// The sentences run side by side on one log that others may write to as well. So each keeps to streams
// of its own, and what it says of the whole log holds while others append.
package storetest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore"
)

// Suite is an implementation that is to be checked.
type Suite struct {
	// Open opens the log under test once more, as another node of the same system would. All nodes
	// must find the same log. The suite calls shut once for each.
	Open func(t testing.TB) (store eventstore.Store, shut func())

	// OpaquePositions says that positions only rise. Otherwise they must be 1, 2, 3 and so on.
	OpaquePositions bool

	// KnownHowever says that an event that is in a stream is known there however it was appended. Otherwise one that was
	// appended at an exact revision is not known to an append that names none.
	KnownHowever bool

	// FirstsAtOnce says that of equal appends at the same time several may be answered as the first, though the events are
	// appended once.
	FirstsAtOnce bool
}

// patience is how long the suite waits for what must happen; whoever waits longer waits for ever.
const patience = 2 * time.Minute

type sentence struct {
	says string
	test func(*testing.T, *node)
}

// Run checks that each sentence holds.
func Run(t *testing.T, s Suite) {
	t.Helper()
	shared := s.node(t)
	for _, chapter := range [][]sentence{expecting, repeating, together, refusing, reading, timing, following, cancelling, closing} {
		for _, c := range chapter {
			t.Run(c.says, func(t *testing.T) {
				t.Parallel()
				c.test(t, shared)
			})
		}
	}
	t.Run("it behaves as the model does, whatever is appended", func(t *testing.T) {
		t.Parallel()
		followsModel(t, shared)
	})
}

// node is a store on the log, and the suite that it came from.
type node struct {
	eventstore.Store

	suite Suite
	shut  func()
}

func (s Suite) node(t testing.TB) *node {
	t.Helper()
	n := &node{suite: s}
	n.Store, n.shut = s.Open(t)
	t.Cleanup(func() { n.shut() })
	return n
}

// another is one more node on the same log.
func (n *node) another(t testing.TB) *node {
	t.Helper()
	return n.suite.node(t)
}

// stream names a stream that nobody else uses.
func stream() string { return "suite-" + uuid.NewString() }

// some makes events that were never appended.
func some(n int) []event.New {
	events := make([]event.New, n)
	for i := range events {
		id := uuid.New()
		events[i] = event.New{
			ID: id, Type: fmt.Sprintf("Thing%dDone", i+1),
			Data: fmt.Appendf(nil, `{"id": %q, "nth": %d}`, id, i+1), Meta: []byte(`{"schema":1}`),
		}
	}
	return events
}

func one() event.New { return some(1)[0] }

// must appends what has to succeed.
func (n *node) must(t testing.TB, stream string, expected eventstore.Expected, events ...event.New) eventstore.Appended {
	t.Helper()
	done, err := n.persist(t.Context(), stream, expected, events...)
	require.NoError(t, err)
	return done
}

// persist appends the same events again, as a client does, when a busy machine did not answer in time.
func (n *node) persist(ctx context.Context, stream string, expected eventstore.Expected, events ...event.New) (eventstore.Appended, error) {
	for late := time.Now().Add(patience); ; {
		done, err := n.Append(ctx, stream, expected, events...)
		if !errors.Is(err, eventstore.ErrInDoubt) && !errors.Is(err, eventstore.ErrUnavailable) || ctx.Err() != nil || time.Now().After(late) {
			return done, err
		}
	}
}

// refused appends what must conflict, and must leave the stream as it is.
func (n *node) refused(t testing.TB, stream string, expected eventstore.Expected, actual int64, events ...event.New) {
	t.Helper()
	before := n.stream(t, stream)
	_, err := n.Append(t.Context(), stream, expected, events...)
	var wrong *eventstore.WrongRevision
	require.ErrorAs(t, err, &wrong)
	require.Equal(t, &eventstore.WrongRevision{Stream: stream, Expected: expected, Actual: actual}, wrong)
	require.Equal(t, before, n.stream(t, stream), "a refused append leaves nothing")
}

// stream reads all of a stream.
func (n *node) stream(t testing.TB, stream string) []event.Stored {
	t.Helper()
	return collect(t, n.ReadStream(t.Context(), stream, 0, eventstore.Forwards))
}

// holds checks what a stream consists of, to the byte.
func (n *node) holds(t testing.TB, stream string, want ...event.New) {
	t.Helper()
	got := n.stream(t, stream)
	same(t, want, got)
	for i, e := range got {
		require.Equal(t, stream, e.Stream)
		require.EqualValues(t, i, e.Revision)
		if i > 0 {
			require.Greater(t, e.Position, got[i-1].Position)
		}
	}
}

// same compares what was asked to be appended with what is there.
func same(t testing.TB, want []event.New, got []event.Stored) {
	t.Helper()
	require.Len(t, got, len(want))
	for i, e := range got {
		require.Equal(t, want[i].ID, e.ID)
		require.Equal(t, want[i].Type, e.Type)
		require.Equal(t, string(want[i].Data), string(e.Data))
		require.Equal(t, string(want[i].Meta), string(e.Meta))
	}
}

func collect(t testing.TB, events iter.Seq2[event.Stored, error]) (all []event.Stored) {
	t.Helper()
	for e, err := range events {
		require.NoError(t, err)
		all = append(all, e)
	}
	return all
}

// ends says what a read or subscription ends with.
func ends[T any](seq iter.Seq2[T, error]) (last error) {
	for _, err := range seq {
		last = cmp.Or(err, last)
	}
	return last
}

// follow subscribes and answers the events of the streams asked for, until it has seen as many as
// asked for. On the way it checks that the subscription never repeats, never goes back and, where
// positions are dense, never skips.
func (n *node) follow(t testing.TB, after event.Position, count int, streams ...string) []event.Stored {
	t.Helper()
	var got []event.Stored
	if count == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	last := after
	for batch, err := range n.Subscribe(ctx, after) {
		require.NoError(t, err)
		last = n.next(t, last, batch)
		for _, e := range batch.Events {
			if slices.Contains(streams, e.Stream) {
				got = append(got, e)
			}
		}
		if len(got) >= count {
			break
		}
	}
	require.GreaterOrEqual(t, len(got), count)
	return got[:count]
}

// next checks that a batch follows what was seen.
func (n *node) next(t testing.TB, last event.Position, batch eventstore.Batch) event.Position {
	t.Helper()
	for _, e := range batch.Events {
		if n.suite.OpaquePositions {
			require.Greater(t, e.Position, last)
		} else {
			require.Equal(t, last+1, e.Position)
		}
		last = e.Position
	}
	require.GreaterOrEqual(t, batch.UpTo, last)
	return batch.UpTo
}

// within waits for what must not take for ever, nor until somebody happens to look away.
func within(t testing.TB, done <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience / 6):
		require.FailNow(t, "this takes for ever: "+what)
	}
}

func isCancelled(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

func quote(text string) []byte {
	q, _ := json.Marshal(text) //nolint:errchkjson // a string is always JSON
	return q
}
