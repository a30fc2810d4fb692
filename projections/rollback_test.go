package projections

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRollbackSwapsLiveAndKept(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := seen("seen", nil)
	run := r.run(t, p)
	run.until("seen", func(s Status) bool { return s.Ready })
	r.tend(t, p)
	r.add(t, "Ant")
	b := r.build(p)
	b.How.Keep = time.Hour
	require.ErrorIs(t, b.Rollback(t.Context(), time.Hour), ErrNoPreviousGeneration)
	require.NoError(t, b.Run(t.Context()))
	for _, live := range []int{1, 2, 1} {
		r.add(t, "Bee")
		require.NoError(t, b.Rollback(t.Context(), time.Hour))
		r.add(t, "Cat")
		run.until("seen", func(s Status) bool { return s.Generation == live && s.Position == r.head(t) })
		require.Equal(t, []string{"seen_g1", "seen_g2"}, r.schemas(t))
	}
	require.Equal(t, []string{"Ant", "Bee", "Cat", "Bee", "Cat", "Bee", "Cat"}, r.names(t, "seen"))
}
