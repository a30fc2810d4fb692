package cli_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/esdb"
	"bahi/eventstore/esdb/esdbtest"
	"bahi/internal/app/apptest"
	"bahi/internal/cli/events"
)

// logWithOtherPositions returns an empty log over the EventStoreDB protocol whose first event will not get position 1: the server
// has events of its own.
func logWithOtherPositions(t *testing.T) *esdb.Store {
	t.Helper()
	behind, _ := apptest.EmptyLog(t)
	e := event.New{ID: uuid.New(), Type: "$stats", Data: []byte(`{}`), Meta: []byte(`{}`)}
	_, err := behind.Append(t.Context(), eventstore.To("$stats-1", eventstore.NoStream, e))
	require.NoError(t, err)
	store, err := esdb.Open(t.Context(), apptest.Served(t, behind), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(store.Close)
	return store
}

func all(t *testing.T, log eventstore.Store) (events []event.Stored) {
	t.Helper()
	for e, err := range log.ReadAll(t.Context(), 0, eventstore.Forwards) {
		require.NoError(t, err)
		events = append(events, e)
	}
	return events
}

func put(t *testing.T, log eventstore.Store, stream, kind, data, meta string) eventstore.Appended {
	t.Helper()
	done, err := log.Append(t.Context(), eventstore.To(stream, eventstore.Any, event.New{ID: uuid.New(), Type: kind, Data: []byte(data), Meta: []byte(meta)}))
	require.NoError(t, err)
	return done
}

func quiet(int64, int64) {}

func TestCopiedEventsNameNewPositions(t *testing.T) {
	t.Parallel()
	from, _ := apptest.EmptyLog(t)
	decided := put(t, from, "bankbulk-1", "BankRowsPosted", `{ "rows" : [ ] }`, `{"schema":1}`)
	put(t, from, "bankrow-1", "BankRowAdded", `{"of":1,"note":"1.50"}`, fmt.Sprintf(`{"schema":1, "of":%d ,"actor":"user:1"}`, decided.Position))
	put(t, from, "bankrow-1", "BankRowRefused", `{"position":2,"why":{"position":2}}`, `{"schema":1}`)
	put(t, from, "bank-1", "BankAccountDeleted", `{"rows_as_of":3}`, `{"schema":1}`)
	put(t, from, "orders-1", "OrderPlaced", `{"position":2}`, `{"of":2}`)

	to := logWithOtherPositions(t)
	done, err := events.CopyLog(t.Context(), from, to, quiet)
	require.NoError(t, err)
	require.Equal(t, events.Copied{Copied: 5, Renumbered: 3}, done)
	want, got := all(t, from), all(t, to)
	require.Len(t, got, len(want))
	at := func(i int) event.Position { return got[i].Position }
	require.NotEqual(t, want[0].Position, at(0))
	for i := range want {
		require.Equal(t, want[i].ID, got[i].ID)
		require.Equal(t, want[i].Stream, got[i].Stream)
		require.Equal(t, want[i].Revision, got[i].Revision)
		require.Equal(t, want[i].Type, got[i].Type)
	}
	require.Equal(t, []string{
		`{ "rows" : [ ] }`, `{"of":1,"note":"1.50"}`, fmt.Sprintf(`{"schema":1, "of":%d ,"actor":"user:1"}`, at(0)),
		fmt.Sprintf(`{"position":%d,"why":{"position":2}}`, at(1)), fmt.Sprintf(`{"rows_as_of":%d}`, at(2)),
		`{"position":2}`, `{"of":2}`, // events of another program
	}, []string{
		string(got[0].Data), string(got[1].Data), string(got[1].Meta), string(got[2].Data), string(got[3].Data), string(got[4].Data), string(got[4].Meta),
	})
}

// failing is a log that fails after some appends.
type failing struct {
	eventstore.Store

	left int
}

func (f *failing) AppendEach(ctx context.Context, appends []eventstore.Transaction) []eventstore.Result {
	n := min(max(f.left, 0), len(appends))
	f.left -= n
	results := f.Store.AppendEach(ctx, appends[:n])
	for range appends[n:] {
		results = append(results, eventstore.Result{Err: eventstore.ErrUnavailable})
	}
	return results
}

func TestACopyThatWasInterruptedGoesOn(t *testing.T) {
	t.Parallel()
	from, _ := apptest.EmptyLog(t)
	for i := range 40 {
		put(t, from, fmt.Sprintf("bankrow-%d", i%7), "BankRowEdited", fmt.Sprintf(`{"n":%d}`, i), fmt.Sprintf(`{"schema":1,"of":%d}`, i))
	}
	whole := logWithOtherPositions(t)
	_, err := events.CopyLog(t.Context(), from, whole, quiet)
	require.NoError(t, err)

	to, times := logWithOtherPositions(t), 0
	for {
		times++
		_, err := events.CopyLog(t.Context(), from, &failing{Store: to, left: 9}, quiet)
		if err == nil {
			break
		}
		require.ErrorIs(t, err, eventstore.ErrUnavailable)
	}
	require.Greater(t, times, 3)
	text := func(log eventstore.Store) (lines []string) {
		for _, e := range all(t, log) {
			lines = append(lines, fmt.Sprint(e.Position, e.Stream, e.Revision, e.ID, string(e.Data), string(e.Meta)))
		}
		return lines
	}
	require.Equal(t, text(whole), text(to))

	put(t, from, "bankrow-1", "BankRowEdited", `{"n":41}`, `{"schema":1}`)
	done, err := events.CopyLog(t.Context(), from, to, quiet)
	require.NoError(t, err)
	require.Equal(t, events.Copied{There: 40, Copied: 1}, done, "the event that came later")
}

// The positions of EventStoreDB are byte offsets: of a copy, events are counted, and their total is estimated by position.
func TestACopyToEventStoreDBShowsHowManyEventsAreCopied(t *testing.T) {
	t.Parallel()
	const count = 500
	inPostgres, _ := apptest.EmptyLog(t)
	first, second := vendors(t), vendors(t)
	for i := range count {
		put(t, inPostgres, fmt.Sprintf("orders-%d", i%7), "OrderPlaced", fmt.Sprintf(`{"n":"%s"}`, strings.Repeat("x", i*37%200)), `{}`)
	}
	for _, c := range []struct{ from, to eventstore.Store }{{inPostgres, first}, {first, second}, {first, second}} { // the last finds all there
		next := int64(0)
		_, err := events.CopyLog(t.Context(), c.from, c.to, func(done, total int64) {
			require.Equal(t, next, done)
			require.Greater(t, total, done)
			if next++; next > count/10 { // enough events to tell their size
				require.InEpsilon(t, count, total, 0.2, "at %d", done)
			}
			if next == count {
				require.EqualValues(t, count, total)
			}
		})
		require.NoError(t, err)
		require.EqualValues(t, count, next)
	}
}

// vendors returns an empty log on a server that behaves as the vendor's does.
func vendors(t *testing.T) *esdb.Store {
	t.Helper()
	store, err := esdb.Open(t.Context(), esdbtest.Start(t, 1).URL(), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(store.Close)
	return store
}

func TestACopyKeepsTheOrderOfStreamsThatComeAgain(t *testing.T) {
	t.Parallel()
	from, _ := apptest.EmptyLog(t)
	for i := range 60 {
		put(t, from, fmt.Sprintf("orders-%d", i), "OrderPlaced", `{}`, `{}`)
		put(t, from, "orders-0", "OrderChanged", `{}`, `{}`)
	}
	places := func(log eventstore.Store) (all []string) {
		for e, err := range log.ReadAll(t.Context(), 0, eventstore.Forwards) {
			require.NoError(t, err)
			all = append(all, fmt.Sprintf("%s@%d", e.Stream, e.Revision))
		}
		return all
	}
	to, _ := apptest.EmptyLog(t)
	for _, to := range []eventstore.Store{to, logWithOtherPositions(t)} {
		done, err := events.CopyLog(t.Context(), from, to, quiet)
		require.NoError(t, err)
		require.Equal(t, 120, done.Copied)
		require.Equal(t, places(from), places(to))
	}
}

func TestLargeEventsAreAppendedSeparately(t *testing.T) {
	t.Parallel()
	from, _ := apptest.EmptyLog(t)
	to, _ := apptest.EmptyLog(t)
	large := `"` + strings.Repeat("x", 600_000) + `"`
	for range 2 { // more than a log takes in one append
		put(t, from, "pictures-1", "PictureDrawn", large, `{}`)
	}
	done, err := events.CopyLog(t.Context(), from, to, quiet)
	require.NoError(t, err)
	require.Equal(t, events.Copied{Copied: 2}, done)
}

func TestACopyIsMadeOfOneLogOnly(t *testing.T) {
	t.Parallel()
	from, address := apptest.EmptyLog(t)
	put(t, from, "orders-1", "OrderPlaced", `{}`, `{}`)
	to, _ := apptest.EmptyLog(t)
	put(t, to, "orders-1", "OrderPlaced", `{}`, `{}`)
	_, err := events.CopyLog(t.Context(), from, to, quiet)
	require.ErrorContains(t, err, "it is not the beginning of a copy")
	_, err = events.CopyLog(t.Context(), from, from, quiet)
	require.ErrorContains(t, err, "both are the log")

	longer, other := apptest.EmptyLog(t)
	cmd := apptest.Command(t, t.TempDir(), "events", "copy", "--from", address, "--to", other)
	stdout, stderr, status := apptest.Execute(t, cmd)
	require.Zero(t, status, "%s", stderr)
	require.Contains(t, stdout, "1 events copied, 0 were there")
	require.Contains(t, stdout, fmt.Sprintf("; the log %s is now the log %s\n", from.ID(), longer.ID()))
	stdout, stderr, status = apptest.Execute(t, apptest.Command(t, t.TempDir(), "events", "copy", "--from", other, "--to", other))
	require.Equal(t, 1, status)
	require.Contains(t, stderr, "bahi: both are the log")
	require.Equal(t, "0 events copied, 0 were there\n", stdout)
	put(t, longer, "orders-2", "OrderPlaced", `{}`, `{}`)
	_, err = events.CopyLog(t.Context(), from, longer, quiet)
	require.ErrorContains(t, err, "after the end of the log to copy the other one has orders-2@0")
}
