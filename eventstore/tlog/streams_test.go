package tlog

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bahi/domain/event"
)

// The sizes of the batches and of the table do not matter.
func TestStreamsHaveTheNewestEventOfEachStream(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, model := newStreams(rapid.Uint64Range(0, 2000).Draw(t, "expected")), map[string]newest{}
		number, most := uint64(0), rapid.IntRange(1, 5000).Draw(t, "streams")
		for _, size := range rapid.SliceOfN(rapid.IntRange(0, 1000), 1, 10).Draw(t, "batches") {
			batch := make([]event.Stored, size)
			for i := range batch {
				batch[i] = event.Stored{Stream: fmt.Sprintf("bank-%d", (i*7919+int(number))%most), Revision: int64(i)}
			}
			s.expect(batch)
			for _, e := range batch {
				number++
				was, known := model[e.Stream]
				is, found := s.next()
				require.Equal(t, known, found)
				require.Equal(t, was, *is)
				*is = newest{e.Revision, number}
				model[e.Stream] = *is
			}
		}
		require.Equal(t, len(model), s.taken)
		require.LessOrEqual(t, s.taken, len(s.slots)/4*3)
	})
}
