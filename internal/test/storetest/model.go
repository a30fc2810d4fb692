package storetest

import (
	"fmt"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bahi/domain/event"
	"bahi/eventstore"
)

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
