// Package storetest is the conformance suite of the event log: a sentence for each behaviour that [eventstore.Store] promises. An
// implementation passes a function that opens a log.
//
// The sentences run in parallel on one log that others may write to as well. So each uses its own streams, and its checks of the whole log
// allow others' appends.
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

// Suite is an implementation to check.
type Suite struct {
	// Open opens the log again, like another node of the same system: all nodes must find the same log. The suite calls shut once for each
	// node.
	Open func(t testing.TB) (store eventstore.Store, shut func())
}

// patience is the suite's timeout, longer than any correct implementation needs.
const patience = 2 * time.Minute

type sentence struct {
	says string
	test func(*testing.T, *node)
}

// Run checks that each sentence holds.
func Run(t *testing.T, s Suite) {
	t.Helper()
	shared := s.node(t)
	for _, chapter := range [][]sentence{expecting, repeating, together, refusing, reading, timing, following, cancelling, closing,
		transacting} {
		for _, c := range chapter {
			t.Run(c.says, func(t *testing.T) {
				t.Parallel()
				c.test(t, shared)
			})
		}
	}
	t.Run("it behaves as the model does", func(t *testing.T) {
		t.Parallel()
		followsModel(t, shared)
	})
}

// node is a store on the log, with its suite.
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

// another opens one more node of the same log.
func (n *node) another(t testing.TB) *node {
	t.Helper()
	return n.suite.node(t)
}

// stream returns a new name of a stream.
func stream() string { return "suite-" + uuid.NewString() }

// some returns new events for one append, identified by their metadata.
func some(n int) []event.Proposed {
	events, meta := make([]event.Proposed, n), fmt.Appendf(nil, `{"schema":1,"request_id":%q}`, uuid.New())
	for i := range events {
		id := uuid.New()
		events[i] = event.Proposed{
			ID: id, Type: fmt.Sprintf("Thing%dDone", i+1),
			Data: fmt.Appendf(nil, `{"id": %q, "nth": %d}`, id, i+1), Meta: meta,
		}
	}
	return events
}

func one() event.Proposed { return some(1)[0] }

// must appends and requires success.
func (n *node) must(t testing.TB, stream string, expected eventstore.Expected, events ...event.Proposed) eventstore.Appended {
	t.Helper()
	done, err := n.persist(t.Context(), stream, expected, events...)
	require.NoError(t, err)
	return done
}

// persist repeats an append until it gets a response, as a client does on a busy machine.
func (n *node) persist(ctx context.Context, stream string, expected eventstore.Expected, events ...event.Proposed) (eventstore.Appended,
	error) {
	for late := time.Now().Add(patience); ; {
		done, err := n.Append(ctx, eventstore.To(stream, expected, events...))
		if !errors.Is(err, eventstore.ErrInDoubt) && !errors.Is(err, eventstore.ErrUnavailable) || ctx.Err() != nil || time.Now().After(late) {
			return done, err
		}
	}
}

// refused requires that an append conflicts and leaves the stream unchanged.
func (n *node) refused(t testing.TB, stream string, expected eventstore.Expected, actual int64, events ...event.Proposed) {
	t.Helper()
	before := n.stream(t, stream)
	_, err := n.Append(t.Context(), eventstore.To(stream, expected, events...))
	var wrong *eventstore.WrongRevision
	require.ErrorAs(t, err, &wrong)
	require.Equal(t, &eventstore.WrongRevision{Stream: stream, Expected: expected, Actual: actual}, wrong)
	require.Equal(t, before, n.stream(t, stream), "a refused append changed the stream")
}

// stream returns all events of a stream.
func (n *node) stream(t testing.TB, stream string) []event.Stored {
	t.Helper()
	return collect(t, n.ReadStream(t.Context(), stream, 0, eventstore.Forwards))
}

// holds checks that a stream has exactly these events, to the byte.
func (n *node) holds(t testing.TB, stream string, want ...event.Proposed) {
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

// same compares stored events with the requested ones.
func same(t testing.TB, want []event.Proposed, got []event.Stored) {
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

// ends returns the error that ends a read or subscription.
func ends[T any](seq iter.Seq2[T, error]) (last error) {
	for _, err := range seq {
		last = cmp.Or(err, last)
	}
	return last
}

// follow subscribes until it has seen count events of these streams, and returns them. It checks that the subscription
// never repeats, goes back or skips.
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

// next checks that a batch continues after the last position.
func (n *node) next(t testing.TB, last event.Position, batch eventstore.Batch) event.Position {
	t.Helper()
	for _, e := range batch.Events {
		require.Equal(t, last+1, e.Position)
		last = e.Position
	}
	require.GreaterOrEqual(t, batch.UpTo, last)
	return batch.UpTo
}

// within waits for done and fails after a timeout.
func within(t testing.TB, done <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience / 6):
		require.FailNow(t, "timed out: "+what)
	}
}

func isCancelled(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

func quote(text string) []byte {
	q, _ := json.Marshal(text) //nolint:errchkjson // a string is always valid JSON
	return q
}
