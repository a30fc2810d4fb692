package postgres

import (
	"bytes"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/internal/pgcluster"
	"bahi/internal/test/pgtest"
)

// pg_dump and pg_restore move a log. They keep positions and times. Sequences and transaction ids, which order other logs, would change.
func TestRestoredDumpContinuesTheLog(t *testing.T) {
	t.Parallel()
	from, into := newLog(t), pgtest.DB(t)
	old := newStore(t, from)
	exact := event.Proposed{
		ID: uuid.New(), Type: "Exact\tÉ₹", Meta: []byte("{ }"),
		Data: []byte(" {\"b\":1.10,\n\"a\":\"\\u20b9\\/ \\\\.\\t\", \"b\":12345678901234567890.0} "),
	}
	must(t, old, "bytes-1", exact)
	for _, s := range []string{"a-1", "b-1", "a-1"} {
		must(t, old, s, makes(50)...)
	}
	last := made(uuid.New())
	first, err := old.Append(t.Context(), eventstore.To("b-1", 49, last))
	require.NoError(t, err)
	want := all(t, old)

	programs, err := pgcluster.Find(t.Context(), old.log, 0)
	require.NoError(t, err)
	var dump, complaint bytes.Buffer
	save := programs.Command(t.Context(), "pg_dump", "--no-owner", "--dbname", from)
	save.Stdout, save.Stderr = &dump, &complaint
	require.NoError(t, save.Run(), &complaint)
	load := programs.Command(t.Context(), "psql", "--quiet", "--no-psqlrc", "--set", "ON_ERROR_STOP=1", "--dbname", into)
	load.Stdin, load.Stderr = &dump, &complaint
	require.NoError(t, load.Run(), &complaint)

	s := newStore(t, into)
	require.Equal(t, old.ID(), s.ID())
	require.Equal(t, want, all(t, s))

	again, err := s.Append(t.Context(), eventstore.To("b-1", 49, last))
	require.NoError(t, err)
	require.True(t, again.Replayed)
	require.Equal(t, first.Position, again.Position)
	replay, err := s.Append(t.Context(), eventstore.To("bytes-1", eventstore.Any, exact))
	require.NoError(t, err)
	require.True(t, replay.Replayed)
	at, err := s.PositionAt(t.Context(), first.At)
	require.NoError(t, err)
	require.Equal(t, first.Position, at)

	seen := want[60].Position // where a reader of the old log stopped
	next := makes(2)
	require.EqualValues(t, len(want)+2, must(t, s, "a-1", next...).Position)
	for batch, err := range s.Subscribe(t.Context(), seen) {
		require.NoError(t, err)
		for _, e := range batch.Events {
			require.Equal(t, seen+1, e.Position)
			seen = e.Position
		}
		if seen == event.Position(len(want)+2) {
			require.Equal(t, next[1].ID, batch.Events[len(batch.Events)-1].ID)
			break
		}
	}
}

func all(t testing.TB, s *Store) (events []event.Stored) {
	t.Helper()
	for e, err := range s.ReadAll(t.Context(), 0, eventstore.Forwards) {
		require.NoError(t, err)
		events = append(events, e)
	}
	return events
}
