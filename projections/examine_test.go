package projections

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExaminationBesideWritersHasIndexes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := seen("seen", nil)
	r.add(t, numberedNames(0, 100)...)
	run := r.run(t, p)
	run.reached("seen", 100)
	build := r.build(p)
	var meanwhile sync.Once
	indexes := 0
	build.Progress = func(now Progress) {
		switch now.Phase {
		case catchingUp: // the log was folded up to the position at the start
			meanwhile.Do(func() {
				r.add(t, numberedNames(100, 200)...)
				run.reached("seen", 200)
			})
		case comparing:
			require.NoError(t, r.pool.QueryRow(t.Context(), `select count(*) from pg_indexes where indexname = 'seen_position_idx'`).Scan(&indexes))
		}
	}
	found, err := build.Examine(t.Context())
	require.NoError(t, err)
	require.Empty(t, found.Differences)
	require.EqualValues(t, 200, found.Position)
	require.Equal(t, 2, indexes, "of the live tables and of those that are compared with them")
}
