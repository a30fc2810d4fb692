package postgres

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
)

// A window trusts no expectation that a dropped event made false.
func TestWindowKnowsWhatItForgot(t *testing.T) {
	t.Parallel()
	const streams = 1000
	var w window
	w.reset(0, 0)
	revisions, positions := map[string]int64{}, map[string]event.Position{}
	for i := range 3 * windowEvents {
		stream := strconv.Itoa(i % streams)
		if i%7 == 0 {
			stream = "rare-" + strconv.Itoa(i)
		}
		revisions[stream]++
		w.add(stream, revisions[stream]-1)
		w.trim()
		positions[stream] = w.head
		require.EqualValues(t, i+1, w.head)
	}
	dropped := 0
	for stream, position := range positions {
		c, known := w.last[stream]
		if known {
			require.Equal(t, change{stream, revisions[stream] - 1, position}, c)
			continue
		}
		dropped++
		require.False(t, w.trusts(0, position-1), "%s changed at %d", stream, position)
	}
	require.Positive(t, dropped)
	require.True(t, w.trusts(0, w.head))
	require.False(t, w.trusts(0, w.head+1), "of a position that the log does not have")
	require.GreaterOrEqual(t, int(w.head-w.since), windowEvents)
}
