package postgres

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
	"pgregory.net/rapid"

	"bahi/domain/event"
	"bahi/eventstore"
)

// suite is the conformance suite of the event log: a sentence for each behaviour that [eventstore.Store] promises.
//
// The sentences run in parallel on one log that others may write to as well. So each uses its own streams, and its checks of the whole log
// allow others' appends.
type suite struct {
	// Open opens the log again, like another node of the same system: all nodes must find the same log. The suite calls shut once for each
	// node.
	Open func(t testing.TB) (store eventstore.Store, shut func())
	// Appends limits the suite to appends, for a log whose reads are those of another one that passes it.
	Appends bool
}

// patience is the suite's timeout, longer than any correct implementation needs.
const patience = 2 * time.Minute

type sentence struct {
	says string
	test func(*testing.T, *node)
}

// run checks that each sentence holds.
func (s suite) run(t *testing.T) {
	t.Helper()
	shared := s.node(t)
	chapters := [][]sentence{expecting, repeating, together, refusing, closing, transacting}
	if !s.Appends {
		chapters = append(chapters, reading, timing, following, cancelling)
	}
	for _, chapter := range chapters {
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

	suite suite
	shut  func()
}

func (s suite) node(t testing.TB) *node {
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

// model is a log according to the interface's documentation, in a few lines.
type model struct {
	streams map[string][]kept
}

// kept is an event in the model.
type kept struct {
	event.Proposed

	open bool // appended without an exact expected revision
	at   eventstore.Appended
}

// append returns what a store must return: the revision and whether it is a repetition, or a conflict.
func (m *model) append(r eventstore.Write) (revision int64, replayed bool, wrong *eventstore.WrongRevision) {
	held := m.streams[r.Stream]
	current := int64(len(held)) - 1
	open := r.Expected < eventstore.NoStream
	fits := r.Expected == eventstore.Any || r.Expected == eventstore.StreamExists && current >= 0 || int64(r.Expected) == current

	where, some := m.find(r, open)
	if open && some || !fits {
		if where >= 0 {
			return where, true, nil
		}
		return 0, false, &eventstore.WrongRevision{Stream: r.Stream, Expected: r.Expected, Actual: current}
	}
	for _, e := range r.Events {
		m.streams[r.Stream] = append(m.streams[r.Stream], kept{Proposed: e, open: open})
	}
	return current + int64(len(r.Events)), false, nil
}

// find looks up the events of an append where it would have put them. It returns the revision of the last one, or -1 unless all are there
// and adjacent, and whether any of them is known.
func (m *model) find(r eventstore.Write, open bool) (last int64, some bool) {
	held := m.streams[r.Stream]
	begin := int(min(r.Expected, 1<<30)) + 1
	if open {
		begin = -1
		for i, k := range held {
			for n, e := range r.Events {
				if k.open && k.ID == e.ID {
					some = true
					if n == 0 {
						begin = i
					}
				}
			}
		}
	}
	for n, e := range r.Events {
		i := begin + n
		if begin < 0 || i >= len(held) || held[i].ID != e.ID || open && !held[i].open {
			return -1, some
		}
	}
	return int64(begin + len(r.Events) - 1), some
}

// followsModel runs the same random operations on the store and the model and compares them after each.
func followsModel(t *testing.T, n *node) {
	nodes := []*node{n, n.another(t)}
	rapid.Check(t, func(rt *rapid.T) {
		var (
			m       = &model{streams: map[string][]kept{}}
			names   = []string{stream(), stream(), stream()}
			before  = n.head(t)
			known   []event.Proposed
			asked   []eventstore.Write
			through = func() *node { return rapid.SampledFrom(nodes).Draw(rt, "node") }
		)
		events := func() (events []event.Proposed) {
			used := map[uuid.UUID]bool{}
			for range rapid.IntRange(1, 4).Draw(rt, "events") {
				e := one()
				if len(known) > 0 && rapid.IntRange(0, 4).Draw(rt, "known") == 0 {
					e = rapid.SampledFrom(known).Draw(rt, "event")
				}
				if !used[e.ID] {
					used[e.ID] = true
					events = append(events, e)
				}
			}
			return events
		}
		request := func() (r eventstore.Write) {
			if len(asked) > 0 && rapid.IntRange(0, 3).Draw(rt, "again") == 0 {
				return rapid.SampledFrom(asked).Draw(rt, "request")
			}
			r.Stream = rapid.SampledFrom(names).Draw(rt, "stream")
			current := eventstore.Expected(len(m.streams[r.Stream]) - 1)
			r.Expected = rapid.SampledFrom([]eventstore.Expected{
				eventstore.Any, eventstore.NoStream, eventstore.StreamExists, current, max(current-1, eventstore.NoStream), current + 1,
			}).Draw(rt, "expected")
			r.Events = events()
			asked = append(asked, r)
			known = append(known, r.Events...)
			return r
		}
		check := func(r eventstore.Write, got eventstore.Result) {
			revision, replayed, wrong := m.append(r)
			if wrong != nil {
				var err *eventstore.WrongRevision
				require.ErrorAs(rt, got.Err, &err, "%+v", r)
				require.Equal(rt, wrong, err)
				return
			}
			require.NoError(rt, got.Err)
			require.Equal(rt, replayed, got.Replayed)
			require.Equal(rt, revision, got.Revision)
			held := m.streams[r.Stream]
			if !replayed {
				held[revision].at = got.Appended
			} else if first := held[revision].at; first.At.IsZero() {
				require.NotZero(rt, got.Position) // the first position inside a longer append is unknown
			} else {
				got.Replayed, got.First = false, first.First // perhaps only the last event was repeated
				require.Equal(rt, first, got.Appended)
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"append": func(*rapid.T) {
				r := request()
				done, err := through().Append(t.Context(), eventstore.To(r.Stream, r.Expected, r.Events...))
				check(r, eventstore.Result{Appended: done, Err: err})
			},
			"append each": func(*rapid.T) {
				var (
					requests []eventstore.Write
					each     []eventstore.Transaction
				)
				for range rapid.IntRange(1, 4).Draw(rt, "appends") {
					r := request()
					requests, each = append(requests, r), append(each, eventstore.To(r.Stream, r.Expected, r.Events...))
				}
				order := func(yield func(int)) { // one stream's events in order; streams are independent
					for _, name := range names {
						for i, r := range requests {
							if r.Stream == name {
								yield(i)
							}
						}
					}
				}
				results := through().AppendEach(t.Context(), each)
				order(func(i int) { check(requests[i], results[i]) })
			},
			"": func(*rapid.T) {
				name := rapid.SampledFrom(names).Draw(rt, "read")
				held := m.streams[name]
				from := rapid.IntRange(0, len(held)).Draw(rt, "from")
				back := eventstore.Direction(rapid.Bool().Draw(rt, "backwards"))
				var want []string
				for i := range held {
					switch {
					case back == eventstore.Forwards && i >= from:
						want = append(want, fmt.Sprint(i, held[i].ID, string(held[i].Data)))
					case back == eventstore.Backwards && len(held)-1-i <= from:
						want = append(want, fmt.Sprint(len(held)-1-i, held[len(held)-1-i].ID, string(held[len(held)-1-i].Data)))
					}
				}
				var got []string
				for e, err := range through().ReadStream(t.Context(), name, int64(from), back) {
					require.NoError(rt, err)
					got = append(got, fmt.Sprint(e.Revision, e.ID, string(e.Data)))
				}
				require.Equal(rt, want, got)
			},
		})
		// The log has each event once, and followers see the same order.
		count := 0
		for _, name := range names {
			count += len(m.streams[name])
		}
		followed := through().follow(t, before, count, names...)
		byStream := map[string][]event.Stored{}
		for _, e := range followed {
			byStream[e.Stream] = append(byStream[e.Stream], e)
		}
		for _, name := range names {
			require.Equal(rt, n.stream(t, name), byStream[name])
		}
	})
}
