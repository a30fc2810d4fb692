package journal_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/journal"
	"bahi/eventstore/tlog"
	"bahi/internal/test/journaltest"
)

type fixture struct {
	*journal.Journal

	server *journaltest.Server
}

func start(t testing.TB) *fixture {
	t.Helper()
	server := journaltest.New()
	return &fixture{journal.New(server, uuid.New(), slog.New(slog.DiscardHandler)), server}
}

// entries returns n entries after a position.
func entries(after event.Position, n int) []journal.Entry {
	all := make([]journal.Entry, n)
	for i := range all {
		all[i].Stored = event.Stored{
			Position: after + 1 + event.Position(i), Stream: "bank-" + uuid.NewString(), ID: uuid.New(), Type: "BankAccountOpened",
			Data: []byte(`{"name":"HDFC"}`), Meta: []byte(`{"schema":1}`), At: time.Now().UTC().Truncate(time.Microsecond),
		}
	}
	return all
}

func (f *fixture) holds(t testing.TB, want ...journal.Entry) {
	t.Helper()
	var got []journal.Entry
	for part, err := range f.After(t.Context(), 0) {
		require.NoError(t, err)
		got = append(got, part...)
	}
	require.Len(t, got, len(want))
	for i := range want {
		require.Equal(t, want[i], got[i])
	}
}

func TestEntryKeepsEveryByte(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		text := rapid.SampledFrom([]string{`{}`, ` {"a": "<&>é\u0000"} `, "{\"meta\":{\"bahi\":1}}\n", `[]`, `"}"`, `{"more":3,"id":"x"}`})
		f := start(t)
		e := entries(0, 1)[0]
		e.Stream = rapid.SampledFrom([]string{"bank-1", `a"b<c>-\ 1`, "ખાતું-1"}).Draw(r, "stream")
		e.Type = rapid.SampledFrom([]string{"BankAccountOpened", "$metadata", "bahi:x"}).Draw(r, "type")
		e.Data, e.Meta = []byte(text.Draw(r, "data")), []byte(text.Draw(r, "meta"))
		e.Revision, e.OpenEnded = rapid.Int64Range(0, 1<<62).Draw(r, "revision"), rapid.Bool().Draw(r, "open")
		require.NoError(t, f.Append(t.Context(), 0, []journal.Entry{e}))
		f.holds(t, e)
		got, found, err := f.Last(t.Context())
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, tlog.LeafHash(e.Stored), tlog.LeafHash(got.Stored))
	})
}

func TestForeignOrChangedEntryIsRefused(t *testing.T) {
	t.Parallel()
	good := entries(0, 1)[0]
	f := start(t)
	require.NoError(t, f.Append(t.Context(), 0, []journal.Entry{good}))
	raw := f.server.Stream(f.Stream())[0]
	for name, change := range map[string]func(*event.Proposed){
		"another program's": func(e *event.Proposed) { e.Meta = []byte(`{}`) },
		"no JSON":           func(e *event.Proposed) { e.Meta = []byte(`no`) },
		"a changed payload": func(e *event.Proposed) { e.Data = []byte(`{"name":"SBI"}`) },
		"changed metadata": func(e *event.Proposed) {
			e.Meta = []byte(strings.Replace(string(e.Meta), `"schema":1`, `"schema":2`, 1))
		},
		"another type":    func(e *event.Proposed) { e.Type = "BankAccountOpened" },
		"another id":      func(e *event.Proposed) { e.ID = uuid.New() },
		"another version": func(e *event.Proposed) { e.Meta = []byte(strings.Replace(string(e.Meta), `"bahi":1`, `"bahi":2`, 1)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			other := start(t)
			e := event.Proposed{ID: raw.ID, Type: raw.Type, Data: raw.Data, Meta: raw.Meta}
			change(&e)
			require.NoError(t, other.server.Append(t.Context(), other.Stream(), -1, []event.Proposed{e}))
			_, _, err := other.Last(t.Context())
			require.ErrorContains(t, err, "read revision 0 of the journal")
		})
	}
}

// A group is in the journal once, whatever happens to its calls.
func TestGroupIsAppendedOnceAfterAnyFaults(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		faults := rapid.SliceOfN(rapid.SliceOfN(rapid.SampledFrom(journaltest.Faults), 0, 4), 1, 4).Draw(r, "faults of each group")
		events := rapid.SliceOfN(rapid.IntRange(1, 3), len(faults), len(faults)).Draw(r, "events of each group")
		synctest.Test(t, func(t *testing.T) {
			f := start(t)
			var all []journal.Entry
			for i := range faults {
				f.server.Fail(append(faults[i], journaltest.None)...)
				group := entries(event.Position(len(all)), events[i])
				require.NoError(t, f.Append(t.Context(), event.Position(len(all)), group))
				all = append(all, group...)
				f.holds(t, all...)
			}
		})
	})
}

func TestSilentServerLeavesTheGroupInDoubt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, fault := range []journaltest.Fault{journaltest.Silent, journaltest.LostRequest} {
			f := start(t)
			for range 1000 {
				f.server.Fail(fault)
			}
			require.ErrorIs(t, f.Append(t.Context(), 0, entries(0, 1)), eventstore.ErrInDoubt, fault)
		}
	})
}

func TestServerThatIsNotReachedGetsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := start(t)
		for range 1000 {
			f.server.Fail(journaltest.NotSent)
		}
		require.ErrorIs(t, f.Append(t.Context(), 0, entries(0, 1)), eventstore.ErrUnavailable)
		require.Zero(t, f.server.Appends)
	})
}

func TestOutcomeInDoubtStaysInDoubt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := start(t)
		f.server.Fail(journaltest.Late)
		for range 1000 {
			f.server.Fail(journaltest.NotSent)
		}
		require.ErrorIs(t, f.Append(t.Context(), 0, entries(0, 1)), eventstore.ErrInDoubt)
	})
}

func TestUnexpectedEndIsReported(t *testing.T) {
	t.Parallel()
	all := entries(0, 4)
	for name, c := range map[string]struct {
		there int
		after event.Position
		group []journal.Entry
	}{
		"others' events are there":   {2, 1, entries(1, 1)},
		"the journal ends before":    {2, 3, all[3:]},
		"the journal is empty":       {0, 3, all[3:]},
		"the group is there in part": {2, 0, append(all[:2:2], entries(2, 1)...)},
		"the same event was recorded at another time": {1, 0, func() []journal.Entry {
			e := all[0]
			e.At = e.At.Add(time.Second)
			return []journal.Entry{e}
		}()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := start(t)
			if c.there > 0 {
				require.NoError(t, f.Append(t.Context(), 0, all[:c.there]))
			}
			require.ErrorIs(t, f.Append(t.Context(), c.after, c.group), journal.ErrMoved)
			f.holds(t, all[:c.there:c.there]...)
		})
	}
}

func TestPartOfAKnownGroupIsKnown(t *testing.T) {
	t.Parallel()
	f := start(t)
	all := entries(0, 3)
	require.NoError(t, f.Append(t.Context(), 0, all))
	require.NoError(t, f.Append(t.Context(), 0, all[:1]))
	require.NoError(t, f.Append(t.Context(), 1, all[1:]))
	f.holds(t, all...)
}

func TestRefusalsOfTheServerAreFinal(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.server.MaxBytes = 1000
	large := entries(0, 1)
	large[0].Data = fmt.Appendf(nil, `"%1000d"`, 1)
	var tooLarge *eventstore.TooLarge
	require.ErrorAs(t, f.Append(t.Context(), 0, large), &tooLarge)
	require.EqualValues(t, 1000, tooLarge.Max)
	require.Equal(t, 1, f.server.Appends)
}

func TestCancelledCallerIsAnswered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := start(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		f.server.Fail(journaltest.Silent)
		require.ErrorIs(t, f.Append(ctx, 0, entries(0, 1)), eventstore.ErrInDoubt)
	})
}

func TestCutJournalIsFound(t *testing.T) {
	t.Parallel()
	f := start(t)
	require.NoError(t, f.Whole(t.Context()), "an empty one is whole")
	require.NoError(t, f.Append(t.Context(), 0, entries(0, 3)))
	require.NoError(t, f.Whole(t.Context()))
	f.server.Cut(f.Stream(), 1)
	require.ErrorIs(t, f.Whole(t.Context()), journal.ErrCut)
	for _, err := range f.After(t.Context(), 0) {
		require.ErrorIs(t, err, journal.ErrCut)
	}
}

func TestServerNamesItsLogs(t *testing.T) {
	t.Parallel()
	f := start(t)
	other := journal.New(f.server, uuid.New(), slog.New(slog.DiscardHandler))
	named, err := f.Named(t.Context())
	require.NoError(t, err)
	require.False(t, named)
	for _, j := range []*journal.Journal{f.Journal, other, f.Journal} {
		require.NoError(t, j.Name(t.Context()))
	}
	require.Len(t, f.server.Stream(journal.NamesStream), 2)
	named, err = other.Named(t.Context())
	require.NoError(t, err)
	require.True(t, named)
}

func TestBadAddressIsRefusedWithoutItsPassword(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"abc", "http://me:secret@host", "esdb://me:secret@host:x", "esdb://me:secret@"} {
		err := journal.CheckAddress(address)
		require.ErrorContains(t, err, "EVENTSTORE_URL", address)
		require.NotContains(t, err.Error(), "secret", address)
	}
	require.NoError(t, journal.CheckAddress("esdb://me:secret@host:2113?tls=false"))
	_, err := journal.Connect("abc", slog.New(slog.DiscardHandler))
	require.Error(t, err)
}

func TestAbsentServerIsNotReached(t *testing.T) {
	t.Parallel()
	s, err := journal.Connect("esdb://127.0.0.1:1?tls=false", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer s.Close()
	_, _, err = s.Last(t.Context(), "bahi-1")
	require.ErrorIs(t, err, journal.ErrNotSent)
	require.ErrorIs(t, s.Append(t.Context(), "bahi-1", -1, nil), journal.ErrNotSent)
	s.Close()
	_, err = s.Read(t.Context(), "bahi-1", 0, 1)
	require.ErrorIs(t, err, journal.ErrNotSent)
}
