package projections

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestABuildNotesWhatItTookBehindItsFill(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	old := named(1, same)
	r.add(t, "Ant", "Bee")
	require.NoError(t, r.build(old).Run(t.Context()))
	took := func(p *Projection) (after *time.Duration) {
		t.Helper()
		g := r.live(t, p)
		require.NoError(t, r.pool.QueryRow(t.Context(), `select after_fill from projection.generation where name = $1 and generation = $2`,
			g.Name, g.Generation).Scan(&after))
		return after
	}
	require.Positive(t, *took(old))
	e, err := r.build(old).Estimate(t.Context())
	require.NoError(t, err)
	require.InDelta(t, *took(old), e.Then, 10, "the next one takes as long, for as many events")

	wrong := named(2, func(string) string { return "Wasp" })
	b := r.build(wrong)
	b.How.Accept = true
	require.NoError(t, b.Run(t.Context()))
	require.Nil(t, took(wrong), "it may have waited for another process")
}
