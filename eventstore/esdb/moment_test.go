package esdb_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/esdb/esdbtest"
)

// placeEvery is the distance of two places in the projection of places.
const placeEvery = 256

// momentsOf fills a log with appends of ten events, and with events of the server's own. It returns the places of the log, and of the
// first, the middle and the last place four times: of the place, of the event after it, and of events between it and the next one.
func momentsOf(t *testing.T, c *esdbtest.Cluster, count int) (places table, moments []time.Time) {
	t.Helper()
	store := vendor(t, c.URL())
	var appends []eventstore.Transaction
	for i := range count / 10 {
		var events []event.New
		for range 10 {
			e := fresh()
			e.Meta = fmt.Appendf(nil, `{"schema":1,"request_id":"%d"}`, i)
			events = append(events, e)
		}
		appends = append(appends, eventstore.To(fmt.Sprint("moment-", i), eventstore.NoStream, events...))
	}
	for len(appends) > 0 {
		n := min(64, len(appends))
		for _, r := range store.AppendEach(t.Context(), appends[:n]) {
			require.NoError(t, r.Err)
		}
		appends = appends[n:]
		c.System(5)
	}
	var log []event.Stored
	for e, err := range store.ReadAll(t.Context(), 0, eventstore.Forwards) {
		require.NoError(t, err)
		log = append(log, e)
	}
	require.Len(t, log, count)
	for i := 0; i < count; i += placeEvery {
		places.positions, places.times = append(places.positions, log[i].Position), append(places.times, log[i].At)
	}
	last := len(places.positions) - 1
	for _, place := range []int{0, last / 2, last - 1} {
		for _, after := range []int{0, 1, placeEvery / 2, placeEvery - 1} {
			moments = append(moments, log[place*placeEvery+after].At)
		}
	}
	return places, moments
}

// What is known of positions after a start is the table of places: the first moment costs as much on a log of any length.
func TestTheFirstMomentAfterAStartReadsAsMuchOfAnyLog(t *testing.T) {
	t.Parallel()
	const (
		short = 10 * placeEvery // of both logs, the places named above are as far into an append

		// A call from the place, and two backwards if the append at the place took place later: for its first event, and the one before it.
		mostCalls  = 3
		mostEvents = 2*placeEvery + 1 + 16 + 1 // the last is the log's name, which a start reads
	)
	calls := map[int][]int64{}
	for _, count := range []int{short, 10 * short} {
		c := esdbtest.Start(t, 1)
		places, moments := momentsOf(t, c, count)
		n := &c.Node(0).Counts
		before := n.Events.Load()
		for _, moment := range moments {
			store := vendor(t, c.URL()) // knows no position
			store.UsePlaces(places)
			reads := n.Reads.Load()
			_, err := store.PositionAt(t.Context(), moment)
			require.NoError(t, err)
			calls[count] = append(calls[count], n.Reads.Load()-reads)
			require.LessOrEqual(t, n.Reads.Load()-reads, int64(mostCalls))
		}
		require.LessOrEqual(t, n.Events.Load()-before, int64(len(moments)*mostEvents), "a log of %d events", count)
		require.Zero(t, n.Refused.Load())
	}
	require.Equal(t, calls[short], calls[10*short])
}

// Between two events of ours may be more of the server's own than one call asks for.
func TestAMomentIsFoundBeyondTheServersOwnEvents(t *testing.T) {
	t.Parallel()
	c := esdbtest.Start(t, 1)
	store := vendor(t, c.URL())
	var at []event.Position
	for i := range 3 {
		e := fresh()
		e.Meta = fmt.Appendf(nil, `{"schema":1,"request_id":"%d"}`, i)
		done, err := store.Append(t.Context(), eventstore.To("apart-1", eventstore.Expected(i-1), e))
		require.NoError(t, err)
		at = append(at, done.Position)
		c.System(3000)
	}
	for e, err := range store.ReadStream(t.Context(), "apart-1", 0, eventstore.Forwards) {
		require.NoError(t, err)
		other := vendor(t, c.URL())
		other.UsePlaces(table{positions: at[:1], times: []time.Time{{}}})
		got, err := other.PositionAt(t.Context(), e.At)
		require.NoError(t, err)
		require.Equal(t, e.Position, got)
		before, err := other.PositionAt(t.Context(), e.At.Add(-time.Microsecond))
		require.NoError(t, err)
		require.Equal(t, append([]event.Position{0}, at...)[e.Revision], before)
	}
}
