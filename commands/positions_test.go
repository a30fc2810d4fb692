package commands

import (
	"context"
	"iter"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/eventstore"
)

// sparse is a log with gaps between positions, also within one append.
type sparse struct{ eventstore.Store }

const apart = 977

func (s sparse) Append(ctx context.Context, t eventstore.Transaction) (eventstore.Appended, error) {
	done, err := s.Store.Append(ctx, t)
	done.Position *= apart
	return done, err
}

func (s sparse) ReadStream(ctx context.Context, stream string, from int64, direction eventstore.Direction) iter.Seq2[event.Stored, error] {
	return func(yield func(event.Stored, error) bool) {
		for e, err := range s.Store.ReadStream(ctx, stream, from, direction) {
			e.Position *= apart
			if !yield(e, err) {
				return
			}
		}
	}
}

func (s sparse) Subscribe(ctx context.Context, after event.Position) iter.Seq2[eventstore.Batch, error] {
	return func(yield func(eventstore.Batch, error) bool) {
		for batch, err := range s.Store.Subscribe(ctx, after/apart) {
			batch.UpTo *= apart
			for i := range batch.Events {
				batch.Events[i].Position *= apart
			}
			if !yield(batch, err) {
				return
			}
		}
	}
}

func (s sparse) Head(ctx context.Context) (event.Position, error) {
	head, err := s.Store.Head(ctx)
	return head * apart, err
}

// walk is an aggregate that remembers the positions of its steps.
type walk []event.Position

type (
	stepped     struct{}
	stepRefused struct{ Position event.Position }
)

func (stepped) Evolve(w walk) walk                      { return w }
func (stepped) EvolveAt(w walk, at event.Position) walk { return append(slices.Clip(w), at) }
func (stepRefused) Evolve(w walk) walk                  { return w }

var walks = event.NewKind("walk", event.Of[stepped]("Stepped", 1), event.Of[stepRefused]("StepRefused", 1))

// steps is a command that decides several steps at once.
type steps int

func (n steps) Decide(walk) (events []event.Event[walk], err error) {
	for range n {
		events = append(events, stepped{})
	}
	return events, nil
}

func places(events []event.Stored) (all walk) {
	for _, e := range events {
		all = append(all, e.Position)
	}
	return all
}

func TestEventsOfOneAppendHaveTheLogsPositions(t *testing.T) {
	t.Parallel()
	for name, gap := range map[string]event.Position{"consecutive positions": 1, "sparse positions": apart} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := idle(t, database(t))
			if gap > 1 {
				n.store.Store = sparse{n.store.Store}
			}
			n.follow(t)
			placed(t, n, walk{gap, 2 * gap, 3 * gap})
		})
	}
}

func placed(t *testing.T, n *node, where walk) {
	t.Helper()
	out, err := Handle(t.Context(), n.Handler, as(t), walks, "1", steps(3))
	require.NoError(t, err)
	want := places(n.stream(t, "walk-1"))
	require.Equal(t, want, where)
	require.Equal(t, want, out.State)
	require.Equal(t, want[2], out.Position)
	cached, err := Load(t.Context(), n.Cached(), walks, "1")
	require.NoError(t, err)
	require.Equal(t, want, cached.State, "the cache has the same positions")
}

func TestRefusalNamesTheVoidEvent(t *testing.T) {
	t.Parallel()
	n := idle(t, database(t))
	n.store.Store = sparse{n.store.Store}
	n.follow(t)
	tired := fault.New(fault.Conflict, "Too tired")
	Govern(n.Handler, walks, Rule[walk]{
		Refuses: func(_ context.Context, _ Source, before walk, r event.Recorded[event.Event[walk]]) error {
			if _, step := r.Data.(stepped); step && r.Position < eventstore.End && len(before) == 1 {
				return tired
			}
			return nil
		},
		Refusal: func(at event.Position, _ string) event.Event[walk] { return stepRefused{Position: at} },
	})
	out, err := Handle(t.Context(), n.Handler, as(t), walks, "1", steps(3))
	require.ErrorIs(t, err, tired)
	require.True(t, out.Changed)
	events := n.stream(t, "walk-1")
	require.Len(t, events, 4)
	refused, err := walks.Decode(events[3])
	require.NoError(t, err)
	require.Equal(t, stepRefused{Position: events[1].Position}, refused.Data)
}
