package projections

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
)

func TestACheckpointOverEventsOfOthersIsFenced(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := seen("seen", nil)
	require.NoError(t, r.build(p).Run(t.Context()))
	s := r.hold(t, p)
	r.add(t, "a")
	upTo := r.head(t)
	for _, c := range []struct {
		paused bool
		err    error
		at     event.Position
	}{{true, ErrFenced, 0}, {false, nil, upTo}} {
		require.EqualValues(t, 1, r.exec(t, fmt.Sprint(`update projection.generation set paused = `, c.paused)))
		require.ErrorIs(t, s.apply(t.Context(), decoded{upTo: upTo}), c.err)
		g, _, err := liveGeneration(t.Context(), s.conn, s.p)
		require.NoError(t, err)
		require.Equal(t, []event.Position{c.at, c.at}, []event.Position{s.g.Position, g.Position})
	}
}
