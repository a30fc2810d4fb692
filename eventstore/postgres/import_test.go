package postgres

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/archive"
	"bahi/internal/test/pgtest"
)

func all(t testing.TB, s *Store) (events []event.Stored) {
	t.Helper()
	for e, err := range s.ReadAll(t.Context(), 0, eventstore.Forwards) {
		require.NoError(t, err)
		events = append(events, e)
	}
	return events
}

// given yields the events, and then the error if there is one.
func given(events []event.Stored, fails error) iter.Seq2[event.Stored, error] {
	return func(yield func(event.Stored, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
		if fails != nil {
			yield(event.Stored{}, fails)
		}
	}
}

func TestImportedLogContinuesTheOriginal(t *testing.T) {
	t.Parallel()
	old := newStore(t, newLog(t))
	odd := event.Proposed{
		ID: uuid.New(), Type: "Odd\tÉ₹", Meta: []byte("{ }"),
		Data: []byte(" {\"b\":1.10,\n\"a\":\"\\u20b9\\/ \\\\.\\t\", \"b\":12345678901234567890.0} "),
	}
	must(t, old, "bytes-1", odd)
	for _, s := range []string{"a-1", "b-1", "a-1"} {
		must(t, old, s, makes(50)...)
	}
	exact, open := made(uuid.New()), made(uuid.New())
	first, err := old.Append(t.Context(), eventstore.To("b-1", 49, exact))
	require.NoError(t, err)
	second := must(t, old, "b-1", open)
	want := all(t, old)

	url := newLog(t)
	id, err := Import{StoreID: old.ID(), Events: given(want, nil)}.Into(t.Context(), newPool(t, url))
	require.NoError(t, err)
	require.Equal(t, old.ID(), id)
	s := newStore(t, url)
	require.Equal(t, old.ID(), s.ID())
	require.Equal(t, want, all(t, s))

	// A client that received no response retries and gets the first outcome, with any expectation.
	for _, c := range []struct {
		expected eventstore.Expected
		e        event.Proposed
		at       eventstore.Appended
	}{{49, exact, first}, {50, open, second}, {eventstore.Any, open, second}, {eventstore.StreamExists, exact, first},
		{eventstore.Any, exact, first}} {
		again, err := s.Append(t.Context(), eventstore.To("b-1", c.expected, c.e))
		require.NoError(t, err)
		c.at.Replayed = true
		require.Equal(t, c.at, again)
	}
	_, err = s.Append(t.Context(), eventstore.To("b-1", 49, made(uuid.New())))
	require.Equal(t, &eventstore.WrongRevision{Stream: "b-1", Expected: 49, Actual: 51}, err)
	at, err := s.PositionAt(t.Context(), first.At)
	require.NoError(t, err)
	require.Equal(t, first.Position, at)

	next := makes(2)
	require.EqualValues(t, len(want)+2, must(t, s, "a-1", next...).Position)
	for batch, err := range s.Subscribe(t.Context(), event.Position(len(want))) {
		require.NoError(t, err)
		require.Equal(t, next[0].ID, batch.Events[0].ID)
		break
	}
}

func TestCopyHasTheLogsIndexesAndItsOwnID(t *testing.T) {
	t.Parallel()
	structure := func(url string) []string {
		return pgtest.Values[string](t, connect(t, url), `
			select pg_get_indexdef(indexrelid) from pg_index where indrelid = 'log.event'::regclass and indisvalid order by 1`)
	}
	old, url := newStore(t, newLog(t)), newLog(t)
	must(t, old, "a-1", makes(3)...)
	before := structure(url)
	require.Len(t, before, 3)
	id, err := Import{Events: given(all(t, old), nil)}.Into(t.Context(), newPool(t, url))
	require.NoError(t, err)
	require.Equal(t, before, structure(url))
	require.Equal(t, id, newStore(t, url).ID())
	require.NotContains(t, []uuid.UUID{old.ID(), uuid.Nil}, id)
}

func TestFailedImportChangesNothing(t *testing.T) {
	t.Parallel()
	old := newStore(t, newLog(t))
	must(t, old, "a-1", makes(5)...)
	must(t, old, "b-1", makes(5)...)
	good := all(t, old)
	changed := func(n int, change func(e *event.Stored)) []event.Stored {
		events := append([]event.Stored(nil), good...)
		change(&events[n])
		return events
	}
	url := newLog(t)
	pool := newPool(t, url)
	name := newStore(t, url).ID()
	gone := errors.New("the disk is gone")
	for _, c := range []struct {
		in  Import
		why string
	}{
		{Import{Events: given(good[:7], gone)}, "the disk is gone"},
		{Import{Events: given(good, nil), Within: func(context.Context, pgx.Tx) error { return gone }}, "the disk is gone"},
		{Import{Events: given(good[1:], nil)}, "position 2 follows position 0"},
		{Import{Events: given(changed(4, func(e *event.Stored) { e.Position++ }), nil)}, "position 6 follows position 4"},
		{Import{Events: given(changed(4, func(e *event.Stored) { e.At = e.At.Add(-time.Hour) }), nil)},
			"position 5 was recorded earlier than its predecessor"},
		{Import{Events: given(changed(4, func(e *event.Stored) { e.Revision = 3 }), nil)}, "two events have the same revision in their stream: " +
			"Key (stream, revision)=(a-1, 3) is duplicated."},
		{Import{Events: given(changed(4, func(e *event.Stored) { e.Revision = 7 }), nil)},
			"the revisions of stream a-1 are not 0, 1, 2 and so on"},
		{Import{Events: given(changed(5, func(e *event.Stored) { e.Stream = "c-1" }), nil)},
			"the revisions of stream b-1 are not 0, 1, 2 and so on"},
		{Import{Events: given(changed(4, func(e *event.Stored) { e.Data = []byte(`{`) }), nil)},
			"position 5 has a payload or metadata that is not JSON"},
		{Import{Events: given(changed(4, func(e *event.Stored) { e.Meta = []byte("\"\xff\"") }), nil)},
			"position 5 has a payload or metadata that is not JSON"},
		{Import{Events: given(changed(4, func(e *event.Stored) { e.Type = "" }), nil)},
			"position 5 has no id, or an invalid name of a stream or type"},
		{Import{Events: given(changed(4, func(e *event.Stored) { e.Stream = "a\x00" }), nil)},
			"position 5 has no id, or an invalid name of a stream or type"},
		{Import{Events: given(changed(4, func(e *event.Stored) { e.ID = uuid.Nil }), nil)},
			"position 5 has no id, or an invalid name of a stream or type"},
	} {
		c.in.StoreID = old.ID()
		_, err := c.in.Into(t.Context(), pool)
		require.ErrorContains(t, err, c.why)
		s := newStore(t, url)
		require.Empty(t, all(t, s), c.why)
		require.Equal(t, name, s.ID(), c.why)
	}
	_, err := Import{StoreID: old.ID(), Events: given(good, nil)}.Into(t.Context(), pool)
	require.NoError(t, err)
	_, err = Import{StoreID: uuid.New(), Events: given(good, nil)}.Into(t.Context(), pool)
	require.ErrorIs(t, err, ErrNotEmpty)
	require.ErrorContains(t, err, "up to position 10")
	s := newStore(t, url)
	require.Equal(t, good, all(t, s))
	require.Equal(t, old.ID(), s.ID())
}

func TestStreamWithTheSameIDTwiceIsImported(t *testing.T) {
	t.Parallel()
	old, url := newStore(t, newLog(t)), newLog(t)
	e := made(uuid.New())
	for expected := eventstore.NoStream; expected < 2; expected++ {
		_, err := old.Append(t.Context(), eventstore.To("a-1", expected, e))
		require.NoError(t, err)
	}
	_, err := Import{Events: given(all(t, old), nil)}.Into(t.Context(), newPool(t, url))
	require.NoError(t, err)
	s := newStore(t, url)
	require.Equal(t, all(t, old), all(t, s))
	for expected := eventstore.NoStream; expected < 2; expected++ {
		again, err := s.Append(t.Context(), eventstore.To("a-1", expected, e))
		require.NoError(t, err)
		require.True(t, again.Replayed)
		require.EqualValues(t, expected+1, again.Revision)
	}
}

// This holds for any log: archiving the imported archive gives the same archive.
func TestArchiveOfAnImportedArchiveIsTheSame(t *testing.T) {
	t.Parallel()
	one, other, folder := newPool(t, newLog(t)), newPool(t, newLog(t)), t.TempDir()
	opened := func(pool *pgxpool.Pool) *Store {
		s, err := Open(t.Context(), pool, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		return s
	}
	exported := func(s *Store, name string) (dir string, files map[string]string) {
		head, err := s.Head(t.Context())
		require.NoError(t, err)
		dir = filepath.Join(folder, name)
		require.NoError(t, os.RemoveAll(dir))
		_, err = archive.Create(t.Context(), dir, s, archive.Options{UpTo: head, SegmentEvents: 16, At: time.Unix(0, 0)})
		require.NoError(t, err)
		return dir, contents(t, dir)
	}
	value := rapid.SampledFrom([]string{"{}", " [1.10,\r\n\t-0] ", `"\u0000\ud800"`, "\"\u2028<&>\u007f\"", "null", `{"a":1,"a":2}`})
	logs := rapid.SliceOfN(rapid.Custom(func(r *rapid.T) eventstore.Write {
		w := eventstore.Write{Stream: rapid.SampledFrom([]string{"a-1", "b-\n\"\\", "ક-1"}).Draw(r, "stream")}
		for range rapid.IntRange(1, 4).Draw(r, "events") {
			w.Events = append(w.Events, event.Proposed{
				ID: uuid.New(), Type: "T" + strings.ReplaceAll(rapid.StringN(0, 20, 40).Draw(r, "type"), "\x00", ""),
				Data: []byte(value.Draw(r, "data")), Meta: []byte(value.Draw(r, "meta")),
			})
		}
		return w
	}), 0, 12)
	for seed := range 25 * rounds(1) {
		for _, pool := range []*pgxpool.Pool{one, other} {
			pgtest.Exec(t, pool, `truncate log.event`)
		}
		from := opened(one)
		for _, w := range logs.Example(seed) {
			must(t, from, w.Stream, w.Events...)
		}
		dir, want := exported(from, "from")
		from.Close()
		a, err := archive.Open(dir)
		require.NoError(t, err)
		_, err = Import{StoreID: a.StoreID, Events: a.Events(t.Context())}.Into(t.Context(), other)
		require.NoError(t, err)
		into := opened(other)
		_, got := exported(into, "into")
		into.Close()
		require.Equal(t, want, got)
	}
}

// contents returns a folder's files by name.
func contents(t testing.TB, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, dir)] = string(text)
		return err
	}))
	return files
}
