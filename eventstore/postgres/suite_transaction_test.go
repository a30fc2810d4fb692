package postgres

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bahi/domain/event"
	"bahi/eventstore"
)

// write returns a write of new events, with the number of later events in the transaction.
func write(stream string, expected eventstore.Expected, count, follow int) eventstore.Write {
	w := eventstore.Write{Stream: stream, Expected: expected, Events: some(count)}
	for i := range w.Events {
		if more := count - 1 - i + follow; more > 0 {
			w.Events[i].Meta = fmt.Appendf(nil, `{"schema":1,"more":%d}`, more)
		}
	}
	return w
}

// exists makes a stream with some events and returns its name.
func (n *node) exists(t testing.TB, count int) string {
	t.Helper()
	s := stream()
	n.must(t, s, eventstore.NoStream, some(count)...)
	return s
}

// fails requires that a transaction conflicts on a stream and writes nothing.
func (n *node) fails(t testing.TB, x eventstore.Transaction, want eventstore.WrongRevision) {
	t.Helper()
	before := map[string]int{}
	for _, w := range x.Writes {
		before[w.Stream] = len(n.stream(t, w.Stream))
	}
	_, err := n.Append(t.Context(), x)
	var wrong *eventstore.WrongRevision
	require.ErrorAs(t, err, &wrong)
	require.Equal(t, want, *wrong)
	for s, count := range before {
		require.Len(t, n.stream(t, s), count, "a refused transaction wrote to %s", s)
	}
}

var transacting = []sentence{
	{"a transaction writes to several streams, adjacent and in order", func(t *testing.T, n *node) {
		a, b, c := stream(), n.exists(t, 2), stream()
		x := eventstore.Transaction{Writes: []eventstore.Write{
			write(a, eventstore.NoStream, 2, 4), write(b, 1, 1, 3), write(c, eventstore.NoStream, 3, 0),
		}}
		after := n.head(t)
		done, err := n.Append(t.Context(), x)
		require.NoError(t, err)
		require.EqualValues(t, 2, done.Revision)
		require.Equal(t, done.First+5, done.Position)
		var want []event.Proposed
		for _, w := range x.Writes {
			want = append(want, w.Events...)
		}
		got := n.follow(t, after, 6, a, b, c)
		same(t, want, got)
		for i, e := range got {
			require.Equal(t, done.First+event.Position(i), e.Position)
			require.Equal(t, done.At, e.At)
		}
		require.Equal(t, []int64{0, 1, 2, 0, 1, 2},
			[]int64{got[0].Revision, got[1].Revision, got[2].Revision, got[3].Revision, got[4].Revision, got[5].Revision})
	}},
	{"a transaction without writes returns a position where its checks hold", func(t *testing.T, n *node) {
		checked := n.exists(t, 2)
		before := n.head(t)
		done, err := n.Append(t.Context(), eventstore.Transaction{AsOf: before, Checks: []eventstore.Check{{Stream: checked, Expected: 1}}})
		require.NoError(t, err)
		require.GreaterOrEqual(t, done.Position, before)
		require.Zero(t, done.First)
		n.another(t).must(t, checked, 1, one())
		n.fails(t, eventstore.Transaction{AsOf: before, Checks: []eventstore.Check{{Stream: checked, Expected: 1}}},
			eventstore.WrongRevision{Stream: checked, Expected: 1, Actual: 2})
	}},
	{"a transaction sees the writes of those before it in one call", func(t *testing.T, n *node) {
		a, b := stream(), stream()
		results := n.AppendEach(t.Context(), []eventstore.Transaction{
			{Writes: []eventstore.Write{write(a, eventstore.NoStream, 2, 0)}},
			{Writes: []eventstore.Write{write(b, eventstore.NoStream, 1, 0)}, Checks: []eventstore.Check{{Stream: a, Expected: 0}}},
			{Writes: []eventstore.Write{write(b, eventstore.NoStream, 1, 0)}, Checks: []eventstore.Check{{Stream: a, Expected: 1}}},
			{Writes: []eventstore.Write{write(a, 1, 1, 1), write(b, 0, 1, 0)}},
		})
		var wrong *eventstore.WrongRevision
		require.ErrorAs(t, results[1].Err, &wrong)
		for _, i := range []int{0, 2, 3} {
			require.NoError(t, results[i].Err)
		}
		require.Len(t, n.stream(t, a), 3)
		require.Len(t, n.stream(t, b), 2)
	}},
	{"a repeated transaction returns the first result", func(t *testing.T, n *node) {
		checked := n.exists(t, 1)
		x := eventstore.Transaction{
			Writes: []eventstore.Write{write(stream(), eventstore.NoStream, 2, 1), write(n.exists(t, 1), 0, 1, 0)},
			Checks: []eventstore.Check{{Stream: checked, Expected: 0}},
		}
		first, err := n.Append(t.Context(), x)
		require.NoError(t, err)
		n.must(t, checked, 0, one()) // what it checked need not hold any longer
		again, err := n.another(t).Append(t.Context(), x)
		require.NoError(t, err)
		require.True(t, again.Replayed)
		again.Replayed = false
		require.Equal(t, first, again)
	}},
	{"of concurrent transactions that check what the other writes, one succeeds", func(t *testing.T, n *node) {
		other := n.another(t)
		for range 20 {
			a, b := n.exists(t, 1), n.exists(t, 1)
			asOf := n.head(t)
			cross := func(through *node, written, checked string) error {
				_, err := through.Append(t.Context(), eventstore.Transaction{
					AsOf: asOf, Writes: []eventstore.Write{write(written, 0, 1, 0)}, Checks: []eventstore.Check{{Stream: checked, Expected: 0}},
				})
				return err
			}
			var all sync.WaitGroup
			errs := make([]error, 2)
			all.Go(func() { errs[0] = cross(n, a, b) })
			all.Go(func() { errs[1] = cross(other, b, a) })
			all.Wait()
			require.NotEqual(t, errs[0] == nil, errs[1] == nil, "%v", errs)
		}
	}},
	{"a large transaction is written whole, and its neighbours are not refused", func(t *testing.T, n *node) {
		s := stream()
		results := n.AppendEach(t.Context(), []eventstore.Transaction{
			eventstore.To(stream(), eventstore.NoStream, one()),
			{Writes: []eventstore.Write{write(s, eventstore.NoStream, eventstore.MaxEvents, 0)}},
			eventstore.To(s, eventstore.MaxEvents-1, one()),
			{Writes: []eventstore.Write{write(stream(), eventstore.NoStream, eventstore.MaxEvents+1, 0)}},
		})
		for _, r := range results[:3] {
			require.NoError(t, r.Err)
		}
		require.ErrorIs(t, results[3].Err, eventstore.ErrBadEvent)
		require.Len(t, n.stream(t, s), eventstore.MaxEvents+1)
	}},
	{"a subscriber's batch never ends inside a transaction", func(t *testing.T, n *node) {
		after, other := n.head(t), n.another(t)
		var all sync.WaitGroup
		var streams []string
		const size = 300
		for range 12 {
			s := stream()
			streams = append(streams, s)
			all.Go(func() {
				_, err := n.Append(t.Context(), eventstore.Transaction{Writes: []eventstore.Write{write(s, eventstore.NoStream, size, 0)}})
				require.NoError(t, err)
			})
		}
		for _, reader := range []*node{n, other} {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			seen := 0
			for batch, err := range reader.Subscribe(ctx, after) {
				require.NoError(t, err)
				if len(batch.Events) > 0 {
					require.Zero(t, event.More(batch.Events[len(batch.Events)-1].Meta))
				}
				for _, e := range batch.Events {
					if slices.Contains(streams, e.Stream) {
						seen++
					}
				}
				if seen == len(streams)*size {
					break
				}
			}
			cancel()
			require.Equal(t, len(streams)*size, seen)
		}
		all.Wait()
	}},
	{"no reader sees a part of a transaction", func(t *testing.T, n *node) {
		reader, written := n.another(t), make(chan error, 1)
		go func() {
			var err error
			for i := 0; i < 100 && err == nil; i++ {
				_, err = n.Append(t.Context(), eventstore.Transaction{Writes: []eventstore.Write{
					write(stream(), eventstore.NoStream, 3, 3), write(stream(), eventstore.NoStream, 3, 0),
				}})
			}
			written <- err
		}()
		at := n.head(t)
		for done := false; !done; {
			select {
			case err := <-written:
				require.NoError(t, err)
				done = true
			default:
			}
			var last event.Stored
			for e, err := range reader.ReadAll(t.Context(), at, eventstore.Forwards) {
				require.NoError(t, err)
				last = e
			}
			require.Zero(t, event.More(last.Meta), "position %d is inside a transaction", last.Position)
			at = max(at, last.Position)
		}
	}},
	{"an invalid transaction is refused", func(t *testing.T, n *node) {
		s, e := stream(), one()
		known := n.exists(t, 1)
		for name, x := range map[string]eventstore.Transaction{
			"neither writes nor checks": {},
			"a stream written twice":    {Writes: []eventstore.Write{write(s, eventstore.NoStream, 1, 1), write(s, 0, 1, 0)}},
			"a stream written and checked": {Writes: []eventstore.Write{write(known, 0, 1, 0)},
				Checks: []eventstore.Check{{Stream: known, Expected: 0}}},
			"an event twice": {Writes: []eventstore.Write{{Stream: s, Expected: -1, Events: []event.Proposed{e}},
				{Stream: stream(), Expected: -1, Events: []event.Proposed{e}}}},
			"a check of any revision": {Checks: []eventstore.Check{{Stream: known, Expected: eventstore.Any}}},
			"several writes, one without exact": {Writes: []eventstore.Write{write(s, eventstore.NoStream, 1, 1),
				write(known, eventstore.Any, 1, 0)}},
			"a check beside an inexact write": {
				Writes: []eventstore.Write{write(s, eventstore.Any, 1, 0)}, Checks: []eventstore.Check{{Stream: known, Expected: 0}},
			},
			"a guess of a revision":        {Writes: []eventstore.Write{{Stream: known, Expected: 0, Events: []event.Proposed{e}, Guess: true}}},
			"a check of a nameless stream": {Checks: []eventstore.Check{{Expected: 0}}},
			"too many bytes":               eventstore.To(s, eventstore.NoStream, heavy(5, 900_000)...),
		} {
			_, err := n.Append(t.Context(), x)
			require.ErrorIs(t, err, eventstore.ErrBadEvent, name)
			require.Empty(t, n.stream(t, s), name)
		}
		_, err := n.Append(t.Context(), eventstore.To(s, eventstore.NoStream, heavy(4, 900_000)...))
		require.NoError(t, err)
	}},
	{"transactions behave as the model does", followsTransactions},
}

// heavy returns events with payloads of a size.
func heavy(count, size int) []event.Proposed {
	events := some(count)
	for i := range events {
		events[i].Data = quote(strings.Repeat("x", size))
	}
	return events
}

// followsTransactions runs random transactions on two nodes. Their expectations come from views of the log of any age. A transaction must
// be accepted exactly if all of them are true at the head.
func followsTransactions(t *testing.T, n *node) {
	nodes := []*node{n, n.another(t)}
	type view struct {
		asOf      event.Position
		revisions map[string]int64
	}
	rapid.Check(t, func(rt *rapid.T) {
		names := []string{stream(), stream(), stream(), stream()}
		now := map[string]int64{}
		for _, name := range names {
			now[name] = -1
		}
		views := []view{{n.head(t), maps.Clone(now)}}
		var written []uuid.UUID
		begin := views[0].asOf
		for range rapid.IntRange(1, 30).Draw(rt, "transactions") {
			through := rapid.SampledFrom(nodes).Draw(rt, "node")
			v := rapid.SampledFrom(views).Draw(rt, "view")
			if rapid.Bool().Draw(rt, "newest") {
				v = views[len(views)-1]
			}
			x := eventstore.Transaction{AsOf: v.asOf}
			if rapid.IntRange(0, 3).Draw(rt, "without") == 0 {
				x.AsOf = 0
			}
			fits, ids := true, []uuid.UUID{}
			for _, name := range rapid.Permutation(names).Draw(rt, "streams") {
				expected := eventstore.Expected(v.revisions[name])
				kind := rapid.IntRange(0, 3).Draw(rt, "kind")
				switch kind {
				case 1, 2:
					fits = fits && v.revisions[name] == now[name]
				case 3: // no reader has read the stream
					fits = fits && now[name] == -1
				}
				switch kind {
				case 1:
					x.Checks = append(x.Checks, eventstore.Check{Stream: name, Expected: expected})
				case 2, 3:
					w := write(name, expected, rapid.IntRange(1, 3).Draw(rt, "events"), 0)
					if kind == 3 {
						w.Expected, w.Guess = eventstore.NoStream, true
					}
					x.Writes = append(x.Writes, w)
					for _, e := range w.Events {
						ids = append(ids, e.ID)
					}
				}
			}
			if len(x.Writes)+len(x.Checks) == 0 {
				continue
			}
			done, err := through.Append(t.Context(), x)
			if !fits {
				var wrong *eventstore.WrongRevision
				require.ErrorAs(rt, err, &wrong)
				require.Equal(rt, now[wrong.Stream], wrong.Actual)
				continue
			}
			require.NoError(rt, err)
			require.Equal(rt, len(x.Writes) > 0, done.First > 0)
			if len(ids) > 0 {
				require.Equal(rt, done.First+event.Position(len(ids)-1), done.Position)
			}
			written = append(written, ids...)
			for _, w := range x.Writes {
				now[w.Stream] += int64(len(w.Events))
			}
			if rapid.Bool().Draw(rt, "look") {
				views = append(views, view{max(done.Position, v.asOf), maps.Clone(now)})
			}
		}
		var got []uuid.UUID
		for _, e := range rapid.SampledFrom(nodes).Draw(rt, "reader").follow(t, begin, len(written), names...) {
			got = append(got, e.ID)
		}
		require.Equal(rt, written, got)
		for _, name := range names {
			require.Len(rt, n.stream(t, name), int(now[name])+1)
		}
	})
}
