package commands

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
)

// walk is an aggregate that remembers the positions of its steps.
type walk []event.Position

type stepped struct{}

func (stepped) Evolve(w walk) walk                      { return w }
func (stepped) EvolveAt(w walk, at event.Position) walk { return append(slices.Clip(w), at) }

var walks = event.NewKind("walk", event.Of[stepped]("Stepped", 1))

// steps is a command that decides several steps.
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
	n := nodes(t, 1)[0]
	out, err := Handle(t.Context(), n.Handler, as(t), walks, "1", steps(3))
	require.NoError(t, err)
	want := places(n.stream(t, "walk-1"))
	require.Equal(t, want, out.State)
	require.Equal(t, want[2], out.Position)
	cached, err := Load(t.Context(), n.Cached(), walks, "1")
	require.NoError(t, err)
	require.Equal(t, want, cached.State, "the cache has the same positions")
}
