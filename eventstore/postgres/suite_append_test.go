package postgres

import (
	"bytes"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore"
)

var expecting = []sentence{
	{"an exact revision is refused if the stream is shorter, longer, or missing", func(t *testing.T, n *node) {
		s := stream()
		n.refused(t, s, 0, -1, one())
		n.must(t, s, eventstore.NoStream, some(3)...)
		n.refused(t, s, 1, 2, one())
		n.refused(t, s, 3, 2, one())
		n.refused(t, s, math.MaxInt64, 2, one())
		n.refused(t, s, math.MaxInt64-1, 2, some(3)...)
	}},
	{"an append returns the position of its last event, and of the first if known", func(t *testing.T, n *node) {
		s := stream()
		done := n.must(t, s, eventstore.NoStream, some(3)...)
		all := n.stream(t, s)
		if done.First != 0 {
			require.Equal(t, all[0].Position, done.First)
		}
		require.Equal(t, eventstore.Appended{First: done.First, Position: all[2].Position, Revision: all[2].Revision, At: all[2].At}, done)
	}},
	{"of many concurrent appends with one expectation, one succeeds", func(t *testing.T, n *node) {
		s, other := stream(), n.another(t)
		n.must(t, s, eventstore.NoStream, one())
		var (
			all sync.WaitGroup
			won = make(chan event.Proposed, 16)
		)
		for i := range 16 {
			all.Go(func() {
				e, through := one(), n
				if i%2 == 0 {
					through = other
				}
				if _, err := through.Append(t.Context(), eventstore.To(s, 0, e)); err == nil {
					won <- e
				}
			})
		}
		all.Wait()
		require.Len(t, won, 1)
		require.Equal(t, (<-won).ID, n.stream(t, s)[1].ID)
	}},
	{"the head covers all earlier appends, on every node", func(t *testing.T, n *node) {
		other := n.another(t)
		for range 20 {
			done := n.must(t, stream(), eventstore.NoStream, some(2)...)
			require.GreaterOrEqual(t, n.head(t), done.Position)
			require.GreaterOrEqual(t, other.head(t), done.Position)
		}
	}},
	{"streams with similar names are separate", func(t *testing.T, n *node) {
		s := stream()
		for _, name := range []string{s, s + " ", s + "-", strings.ToUpper(s), s + "é", s + "e\u0301"} {
			e := one()
			n.must(t, name, eventstore.NoStream, e)
			n.holds(t, name, e)
		}
	}},
}

var repeating = []sentence{
	{"concurrent repetitions of an append get the same result", func(t *testing.T, n *node) {
		s, e, other := stream(), one(), n.another(t)
		var all sync.WaitGroup
		answers := make([]eventstore.Appended, 16)
		errs := make([]error, 16)
		for i := range 16 {
			all.Go(func() {
				through := n
				if i%2 == 0 {
					through = other
				}
				answers[i], errs[i] = through.Append(t.Context(), eventstore.To(s, eventstore.Any, e))
			})
		}
		all.Wait()
		n.holds(t, s, e)
		firsts := 0
		for i, a := range answers {
			require.NoError(t, errs[i])
			if !a.Replayed {
				firsts++
			}
			a.Replayed = answers[0].Replayed
			require.Equal(t, answers[0], a)
		}
		require.Equal(t, 1, firsts)
	}},
}

var together = []sentence{
	{"the events of an append are adjacent", func(t *testing.T, n *node) {
		s, events := stream(), some(100)
		done := n.must(t, s, eventstore.NoStream, events...)
		require.EqualValues(t, 99, done.Revision)
		n.holds(t, s, events...)
		stored := n.stream(t, s)
		for i, e := range stored[1:] {
			require.Equal(t, stored[i].Position+1, e.Position, "another event lies between")
			require.Equal(t, stored[i].At, e.At)
		}
	}},
	{"events that were appended apart are not the repetition of one append", func(t *testing.T, n *node) {
		s, events := stream(), some(3)
		for _, e := range events {
			n.must(t, s, eventstore.Any, e)
		}
		var wrong *eventstore.WrongRevision
		for _, repeated := range [][]event.Proposed{{events[0], events[2]}, {events[1], events[0]}} {
			_, err := n.persist(t.Context(), s, eventstore.Any, repeated...)
			require.ErrorAs(t, err, &wrong)
		}
		n.holds(t, s, events...)
	}},
	{"stored events do not share the caller's memory", func(t *testing.T, n *node) {
		s, e, after := stream(), one(), n.head(t)
		want := e
		want.Data, want.Meta = bytes.Clone(e.Data), bytes.Clone(e.Meta)
		n.must(t, s, eventstore.NoStream, e)
		clear(e.Data)
		clear(e.Meta)
		same(t, []event.Proposed{want}, n.follow(t, after, 1, s))
		n.holds(t, s, want)
	}},
}

var refusing = []sentence{
	{"an invalid event is refused, and its neighbours are not", func(t *testing.T, n *node) {
		with := func(change func(*event.Proposed)) []event.Proposed {
			e := one()
			change(&e)
			return []event.Proposed{e}
		}
		long, twice := strings.Repeat("x", 1<<16), one()
		good := stream()
		for name, r := range map[string]eventstore.Transaction{
			"no events":                      eventstore.To(good, 0),
			"a nil id":                       eventstore.To(good, 0, with(func(e *event.Proposed) { e.ID = uuid.Nil })...),
			"an id twice":                    eventstore.To(good, 0, twice, twice),
			"a payload that is no JSON":      eventstore.To(good, 0, with(func(e *event.Proposed) { e.Data = []byte(`{"a":}`) })...),
			"two JSON values":                eventstore.To(good, 0, with(func(e *event.Proposed) { e.Data = []byte(`{}{}`) })...),
			"no payload":                     eventstore.To(good, 0, with(func(e *event.Proposed) { e.Data = nil })...),
			"a payload with a zero byte":     eventstore.To(good, 0, with(func(e *event.Proposed) { e.Data = []byte("\"a\x00b\"") })...),
			"a payload not in UTF-8":         eventstore.To(good, 0, with(func(e *event.Proposed) { e.Data = []byte("\"a\xffb\"") })...),
			"metadata that is no JSON":       eventstore.To(good, 0, with(func(e *event.Proposed) { e.Meta = []byte(`nonsense`) })...),
			"no metadata":                    eventstore.To(good, 0, with(func(e *event.Proposed) { e.Meta = nil })...),
			"no type":                        eventstore.To(good, 0, with(func(e *event.Proposed) { e.Type = "" })...),
			"a type with a zero byte":        eventstore.To(good, 0, with(func(e *event.Proposed) { e.Type = "a\x00b" })...),
			"a type that is too long":        eventstore.To(good, 0, with(func(e *event.Proposed) { e.Type = long })...),
			"no stream name":                 eventstore.To("", 0, some(1)...),
			"a stream with a zero byte":      eventstore.To("a\x00-1", 0, some(1)...),
			"a stream not in UTF-8":          eventstore.To("a\xff-1", 0, some(1)...),
			"a stream name that is too long": eventstore.To(long, 0, some(1)...),
			"an unknown expectation":         eventstore.To(good, -3, some(1)...),
			"a good event and a bad one":     eventstore.To(good, 0, append(some(1), with(func(e *event.Proposed) { e.Data = []byte(`[`) })...)...),
			"more than can be stored": eventstore.To(good, 0,
				with(func(e *event.Proposed) { e.Data = quote(strings.Repeat("x", 20<<20)) })...),
		} {
			if w := &r.Writes[0]; w.Expected == 0 {
				w.Expected = eventstore.Any
			}
			left, right := stream(), stream()
			results := n.AppendEach(t.Context(), []eventstore.Transaction{
				eventstore.To(left, eventstore.NoStream, some(1)...), r,
				eventstore.To(right, eventstore.NoStream, some(1)...),
			})
			require.NoError(t, results[0].Err, name)
			require.ErrorIs(t, results[1].Err, eventstore.ErrBadEvent, name)
			require.NoError(t, results[2].Err, name)
			require.Empty(t, n.stream(t, r.Writes[0].Stream), name)
			require.Len(t, n.stream(t, left), 1, name)
			require.Len(t, n.stream(t, right), 1, name)
		}
	}},
	{"payloads keep their exact bytes", func(t *testing.T, n *node) {
		after := n.head(t)
		for _, text := range []string{
			`{}`, `[]`, `null`, `true`, `0`, `-0`, `""`, `"x"`,
			" \t\r\n{ \"b\" : 1 ,\n\t\"a\":2 } \n",
			`{"b":1,"a":2,"b":3}`,
			`{"text":"\u0041\u00e9\u20b9\ud83d\ude00 A é ₹ 😀 \/ \" \\ \b\f\n\r\t"}`,
			`{"zero":"\u0000","lone":"\ud800"}`,
			`[12345678901234567890123456789.000000000100, 1E+400, 1e-400, 0.10, 1.0e0]`,
			`{"":{"":[[[[{}]]]]}}`,
			"\"\u2028\u2029\u007f\ufeff\uffff\U0010ffff\"",
			string(quote(strings.Repeat("long ", 95_000))),
			strings.Repeat("[", 400) + strings.Repeat("]", 400),
		} {
			s, e := stream(), one()
			e.Data, e.Meta = []byte(text), []byte(text)
			n.must(t, s, eventstore.Any, e)
			n.holds(t, s, e)
			same(t, []event.Proposed{e}, n.follow(t, after, 1, s))
		}
	}},
	{"type and stream names keep their exact bytes", func(t *testing.T, n *node) {
		for _, name := range []string{"é", "e\u0301", "₹ 😀", "a b", "a\tb\n", `"quoted'\`, "%s $1 {}", strings.Repeat("x", 200)} {
			s, e := stream()+name, one()
			e.Type = name
			n.must(t, s, eventstore.NoStream, e)
			n.holds(t, s, e)
		}
	}},
}
