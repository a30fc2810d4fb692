package esdb

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore"
)

// A subscriber may wake only after the tail has ended and begun again, on a log that has lost the subscriber's last event.
func TestATailThatBeganAgainDoesNotCoverItsFormerSubscribers(t *testing.T) {
	t.Parallel()
	var tail tail
	tail.begin(10)
	life, covered := tail.covers(10)
	require.True(t, covered)
	tail.end()
	tail.begin(5)
	tail.add(eventstore.Batch{Events: []event.Stored{{Position: 12}}, UpTo: 12})
	_, _, covered = tail.after(10, life)
	require.False(t, covered)
	life, covered = tail.covers(10)
	require.True(t, covered)
	b, _, covered := tail.after(10, life)
	require.True(t, covered)
	require.Len(t, b.Events, 1)
}
