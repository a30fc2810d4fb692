package projections

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
)

func TestCheckpointsMoveTogetherAndAFencedOneAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	all := &checkpointBatcher{pool: r.pool}
	var held []*session
	for i := range 5 {
		p := seen(fmt.Sprintf("seen%d", i), nil)
		require.NoError(t, r.build(p).Run(t.Context()))
		s := r.hold(t, p)
		s.together = all
		held = append(held, s)
	}
	r.add(t, "a")
	require.EqualValues(t, 1, r.exec(t, `update projection.generation set paused = true where name = 'seen2'`))
	upTo := r.head(t)
	var done sync.WaitGroup
	errs := make([]error, len(held))
	for i, s := range held {
		done.Go(func() { errs[i] = s.apply(t.Context(), decoded{upTo: upTo}) })
	}
	done.Wait()
	for i, s := range held {
		g, _, err := liveGeneration(t.Context(), s.conn, s.p)
		require.NoError(t, err)
		if i == 2 {
			require.ErrorIs(t, errs[i], ErrFenced)
			require.Equal(t, []event.Position{0, 0}, []event.Position{s.g.Position, g.Position})
		} else {
			require.NoError(t, errs[i])
			require.Equal(t, []event.Position{upTo, upTo}, []event.Position{s.g.Position, g.Position})
		}
	}
}
