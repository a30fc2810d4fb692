package postgres

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bahi/domain/event"
	"bahi/eventstore"
)

func TestASparingReadLeavesOutOnlyWhatItMay(t *testing.T) {
	t.Parallel()
	s := newStore(t, newLog(t))
	const events = 60
	types := []string{"Opened", "Opened", "Moved", "Closed"}
	for i := range events {
		_, err := s.Append(t.Context(),
			eventstore.To(fmt.Sprintf("thing-%d", i), eventstore.NoStream,
				event.Proposed{ID: uuid.New(), Type: types[i*i%len(types)], Data: []byte(`{}`), Meta: []byte(`{}`)}))
		require.NoError(t, err)
	}
	var all []event.Stored
	for e, err := range s.ReadAll(t.Context(), 0, eventstore.Forwards) {
		require.NoError(t, err)
		all = append(all, e)
	}
	rapid.Check(t, func(rt *rapid.T) {
		after := event.Position(rapid.IntRange(0, events).Draw(rt, "after"))
		upTo := event.Position(rapid.IntRange(0, events+20).Draw(rt, "up to"))
		without := rapid.SliceOfDistinct(rapid.SampledFrom(types), rapid.ID[string]).Draw(rt, "without")
		section := event.Position(rapid.IntRange(1, events).Draw(rt, "section"))
		var read []event.Stored
		for e, err := range s.readSections(t.Context(), after, upTo, without, section) {
			require.NoError(rt, err)
			read = append(read, e)
		}
		want := func(e event.Stored) bool {
			return e.Position > after && e.Position <= upTo && (e.Position == upTo || !slices.Contains(without, e.Type))
		}
		at := 0
		for _, e := range all {
			found := at < len(read) && read[at].Position == e.Position
			if want(e) {
				require.True(rt, found, "position %d", e.Position)
			}
			if found {
				require.Equal(rt, e, read[at])
				require.True(rt, e.Position > after && e.Position <= upTo, "position %d", e.Position)
				at++
			}
		}
		require.Len(rt, read, at, "each once, in order, and none that there is not")
		if more := len(read) - len(slices.DeleteFunc(slices.Clone(read), func(e event.Stored) bool { return !want(e) })); more > 0 {
			require.LessOrEqual(rt, more, int((upTo-after)/section), "one in each section")
		}
	})
}
