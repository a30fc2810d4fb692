package postgres

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/journal"
	"bahi/eventstore/tlog"
	"bahi/internal/test/journaltest"
	"bahi/internal/test/pgtest"
)

// journaled opens a log with its journal until the test ends.
func journaled(t testing.TB, url string, server journal.Server) *Store {
	t.Helper()
	s, err := OpenJournaled(t.Context(), newPool(t, url), slog.New(slog.NewTextHandler(t.Output(), nil)), server)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// refusedWith opens a log with its journal and returns the error.
func refusedWith(t testing.TB, url string, server journal.Server) error {
	t.Helper()
	s, err := OpenJournaled(t.Context(), newPool(t, url), slog.New(slog.DiscardHandler), server)
	if err == nil {
		s.Close()
	}
	return err
}

// mirrored requires that a log and its journal are equal, and returns the log.
func mirrored(t testing.TB, s *Store, server journal.Server) (all []event.Stored) {
	t.Helper()
	for e, err := range s.ReadAll(t.Context(), 0, eventstore.Forwards) {
		require.NoError(t, err)
		all = append(all, e)
	}
	n := 0
	for entries, err := range journal.New(server, s.ID(), slog.New(slog.DiscardHandler)).After(t.Context(), 0) {
		require.NoError(t, err)
		for _, e := range entries {
			require.Less(t, n, len(all), "the journal is longer")
			require.Equal(t, tlog.LeafHash(all[n]), tlog.LeafHash(e.Stored), "position %d", n+1)
			n++
		}
	}
	require.Len(t, all, n, "the journal is as long as the log")
	return all
}

func TestStoreWithJournal(t *testing.T) {
	t.Parallel()
	url, server := newLog(t), journaltest.New()
	server.MaxBytes = 2 * eventstore.MaxAppend
	t.Run("suite", func(t *testing.T) {
		suite{Appends: true, Open: func(t testing.TB) (eventstore.Store, func()) {
			s := journaled(t, url, server)
			return s, s.Close
		}}.run(t)
	})
	require.NotEmpty(t, mirrored(t, journaled(t, url, server), server))
}

// An acknowledged append is on disk: after a crash of the server, reads must see it, even if the journal has it.
func TestEachCommitWaitsForTheDisk(t *testing.T) {
	t.Parallel()
	for _, with := range []bool{false, true} {
		url := newLog(t)
		sql(t, url, `
			create table committed (waits text);
			create function note_commit() returns trigger language plpgsql as $$
			begin
			  insert into committed values (current_setting('synchronous_commit'));
			  return null;
			end $$;
			create constraint trigger note_commit after insert on log.event deferrable initially deferred
			for each row execute function note_commit()`)
		s := newStore(t, url)
		if with {
			s.Close()
			s = journaled(t, url, journaltest.New())
		}
		for range calm + 2 { // the last ones are alone
			must(t, s, "things-1", makes(2)...)
		}
		waits := pgtest.Value[[]string](t, connect(t, url), `select array_agg(distinct waits) from committed`)
		require.Equal(t, []string{"on"}, waits)
	}
}

func connected(t testing.TB, address string) journal.Server {
	t.Helper()
	server, err := journal.Connect(address, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(server.Close)
	return server
}

// Two nodes write through a gateway over separate connections. `make soak` runs the whole suite there.
func TestTwoNodesHaveTheirJournalInAGateway(t *testing.T) {
	t.Parallel()
	url, address := newLog(t), journaltest.Served(t, newStore(t, newLog(t)))
	nodes := []*Store{journaled(t, url, connected(t, address)), journaled(t, url, connected(t, address))}
	var writers sync.WaitGroup
	for w := range 6 {
		writers.Go(func() {
			for range 20 {
				_, err := nodes[w%2].Append(t.Context(), eventstore.To(fmt.Sprintf("writer-%d", w), eventstore.Any, makes(2)...))
				assert.NoError(t, err)
			}
		})
	}
	writers.Wait()
	require.Len(t, mirrored(t, nodes[0], connected(t, address)), 6*20*2)
}

// Two nodes write while the server has faults. Each acknowledged event is in the log once, and the journal is equal to the log.
func TestFaultsLoseNoAnsweredEvent(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4 * rounds(1)) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 1))
			url, server := newLog(t), journaltest.New()
			nodes := []*Store{journaled(t, url, server), journaled(t, url, server)}
			for range 30 {
				server.Fail(journaltest.Faults[random.IntN(len(journaltest.Faults))])
				for range random.IntN(3) {
					server.Fail(journaltest.None)
				}
			}
			var (
				writers  sync.WaitGroup
				mu       sync.Mutex
				answered []uuid.UUID
			)
			for w := range 6 {
				writers.Go(func() {
					for range 8 {
						events := makes(2)
						if _, err := nodes[w%2].Append(t.Context(), eventstore.To(fmt.Sprintf("writer-%d", w), eventstore.Any, events...)); err != nil {
							continue
						}
						mu.Lock()
						answered = append(answered, events[0].ID, events[1].ID)
						mu.Unlock()
					}
				})
			}
			writers.Wait()
			require.NotEmpty(t, answered)
			there := byID(t, wholeLog(t, nodes[0]))
			for _, id := range answered {
				require.Contains(t, there, id)
			}
			mirrored(t, journaled(t, url, server), server)
		})
	}
}

func TestLogAndJournalAreLeveledAtTheStart(t *testing.T) {
	t.Parallel()
	const total = 1200 // some sections
	stream := func(s *Store) string { return "bahi-" + s.ID().String() }
	for name, c := range map[string]struct {
		lose    func(t *testing.T, url string, server *journaltest.Server, stream string)
		refused string
	}{
		"equal": {func(*testing.T, string, *journaltest.Server, string) {}, ""},
		"the log lost its tail": {func(t *testing.T, url string, _ *journaltest.Server, _ string) {
			sql(t, url, `delete from log.event where position > 100`)
		}, ""},
		"the log lost its last event": {func(t *testing.T, url string, _ *journaltest.Server, _ string) {
			sql(t, url, `delete from log.event where position = 1200`)
		}, ""},
		"the log is empty": {func(t *testing.T, url string, _ *journaltest.Server, _ string) { sql(t, url, `delete from log.event`) }, ""},
		"the log is empty and has no name there": {func(t *testing.T, url string, server *journaltest.Server, _ string) {
			sql(t, url, `delete from log.event`)
			server.LoseTail(journal.NamesStream, 1)
		}, "does not name this log"},
		"the journal lost its tail": {func(_ *testing.T, _ string, server *journaltest.Server, stream string) {
			server.LoseTail(stream, total-100)
		}, ""},
		"the journal is empty": {func(_ *testing.T, _ string, server *journaltest.Server, stream string) {
			server.LoseTail(stream, total)
		}, "the journal is empty, and the log is not"},
		"the journal was cut": {func(_ *testing.T, _ string, server *journaltest.Server, stream string) { server.Cut(stream, 1) }, "$maxCount"},
		"the last event differs": {func(t *testing.T, url string, _ *journaltest.Server, _ string) {
			sql(t, url, `update log.event set data = '{}' where position = 1200`)
		}, "different events at the same position, 1200"},
		"an event differs where the log ends": {func(t *testing.T, url string, _ *journaltest.Server, _ string) {
			sql(t, url, `delete from log.event where position > 700; update log.event set recorded_at = now() where position = 700`)
		}, "different events at the same position, 700"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, server := newLog(t), journaltest.New()
			s := journaled(t, url, server)
			for range total / 100 {
				must(t, s, "things-1", makes(100)...)
			}
			before := mirrored(t, s, server)
			s.Close()
			c.lose(t, url, server, stream(s))
			if c.refused != "" {
				require.ErrorContains(t, refusedWith(t, url, server), c.refused)
				return
			}
			again := journaled(t, url, server)
			require.Equal(t, before, mirrored(t, again, server))
			require.EqualValues(t, total+1, must(t, again, "things-1", makes(1)...).Position)
			mirrored(t, again, server)
		})
	}
}

// A server acknowledged events and lost them while the nodes run.
func TestRunningNodeRestoresTheTailOfItsJournal(t *testing.T) {
	t.Parallel()
	url, server := newLog(t), journaltest.New()
	s := journaled(t, url, server)
	for range 20 {
		must(t, s, "things-1", makes(2)...)
	}
	server.LoseTail("bahi-"+s.ID().String(), 7)
	require.EqualValues(t, 41, must(t, s, "things-1", makes(1)...).Position)
	require.Len(t, mirrored(t, s, server), 41)
}

// Postgres fails over to a server that lacks the newest events, while the nodes run.
func TestRunningNodeRestoresTheTailOfItsLog(t *testing.T) {
	t.Parallel()
	url, server := newLog(t), journaltest.New()
	s := journaled(t, url, server)
	for range 20 {
		must(t, s, "things-1", makes(2)...)
	}
	sql(t, url, `delete from log.event where position > 30`)
	sql(t, url, `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`)
	require.EqualValues(t, 41, must(t, s, "things-1", makes(1)...).Position)
	require.Eventually(t, func() bool {
		for batch, err := range s.Subscribe(t.Context(), 40) {
			require.NotErrorIs(t, err, eventstore.ErrTailLost)
			return err == nil && batch.UpTo == 41
		}
		return false
	}, time.Minute, 10*time.Millisecond, "its other connections were cut, too")
	require.Len(t, mirrored(t, s, server), 41)
}

// A subscriber is the first to notice that events are gone.
func TestFollowerRestoresTheTailOfItsLog(t *testing.T) {
	t.Parallel()
	url, server := newLog(t), journaltest.New()
	s := journaled(t, url, server)
	must(t, s, "things-1", makes(40)...)
	sql(t, url, `delete from log.event where position > 30`)
	s.tail.reset()
	events := makes(1)
	done := make(chan error, 1)
	go func() {
		_, err := s.Append(t.Context(), eventstore.To("things-1", eventstore.Any, events...))
		done <- err
	}()
	for batch, err := range s.Subscribe(t.Context(), 35) {
		require.NoError(t, err)
		require.EqualValues(t, 36, batch.Events[0].Position)
		break
	}
	require.NoError(t, <-done)
	require.Len(t, mirrored(t, s, server), 41)
}

func TestLogWithJournalIsNotOpenedWithoutIt(t *testing.T) {
	t.Parallel()
	url, server := newLog(t), journaltest.New()
	journaled(t, url, server).Close()
	_, err := Open(t.Context(), newPool(t, url), slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "this log has a journal in EventStoreDB: set EVENTSTORE_URL")
}

func TestUnreachableJournalRefusesAppendsAndReadsGoOn(t *testing.T) {
	t.Parallel()
	url, server := newLog(t), journaltest.New()
	s := journaled(t, url, server)
	must(t, s, "things-1", makes(1)...)
	for range 200 {
		server.Fail(journaltest.NotSent)
	}
	_, err := s.Append(t.Context(), eventstore.To("things-1", eventstore.Any, makes(1)...))
	require.ErrorIs(t, err, eventstore.ErrUnavailable)
	require.Len(t, wholeLog(t, s), 1)
}

func TestTransactionTooLargeForTheServerIsRefusedAlone(t *testing.T) {
	t.Parallel()
	url, server := newLog(t), journaltest.New()
	server.MaxBytes = 64 << 10
	s := journaled(t, url, server)
	large := made(uuid.New())
	large.Data = fmt.Appendf(nil, `{"text":%q}`, strings.Repeat("m", 64<<10))
	appends := []eventstore.Transaction{
		eventstore.To("things-1", eventstore.Any, makes(1)...), eventstore.To("things-2", eventstore.Any, large),
		eventstore.To("things-3", eventstore.Any, makes(1)...),
	}
	results := s.AppendEach(t.Context(), appends)
	require.NoError(t, results[0].Err)
	require.NoError(t, results[2].Err)
	var tooLarge *eventstore.TooLarge
	require.ErrorAs(t, results[1].Err, &tooLarge)
	require.EqualValues(t, 64<<10, tooLarge.Max)
	require.Len(t, mirrored(t, s, server), 2)
}

// Many transactions, each below the server's usual limit, do not exceed it together.
func TestGroupsFitTheServer(t *testing.T) {
	t.Parallel()
	url, server := newLog(t), journaltest.New()
	s := journaled(t, url, server)
	appends := make([]eventstore.Transaction, 60)
	for i := range appends {
		e := made(uuid.New())
		e.Data = fmt.Appendf(nil, `{"text":%q}`, strings.Repeat("m", 100_000))
		appends[i] = eventstore.To(fmt.Sprintf("things-%d", i), eventstore.NoStream, e)
	}
	for _, r := range s.AppendEach(t.Context(), appends) {
		require.NoError(t, r.Err)
	}
	require.Len(t, mirrored(t, s, server), len(appends))
	require.Less(t, server.Appends, len(appends), "they are grouped")
}

func TestLogIsCopiedToAnEmptyJournal(t *testing.T) {
	t.Parallel()
	url, server := newLog(t), journaltest.New()
	s := newStore(t, url)
	for range 30 {
		must(t, s, "things-1", makes(40)...)
	}
	must(t, s, "things-2", made(uuid.New()))
	before := wholeLog(t, s)
	s.Close()
	require.ErrorIs(t, refusedWith(t, url, server), journal.ErrEmpty)
	var shown []int64
	stream, err := CopyToJournal(t.Context(), newPool(t, url), server, slog.New(slog.DiscardHandler), func(done, of int64) {
		require.EqualValues(t, len(before), of)
		shown = append(shown, done)
	})
	require.NoError(t, err)
	require.Equal(t, "bahi-"+s.ID().String(), stream)
	require.IsNonDecreasing(t, shown)
	again := journaled(t, url, server)
	require.Equal(t, before, mirrored(t, again, server))
	require.Equal(t, s.ID(), again.ID())
	replayed := must(t, again, "things-2",
		event.Proposed{ID: before[1200].ID, Type: before[1200].Type, Data: before[1200].Data, Meta: before[1200].Meta})
	require.True(t, replayed.Replayed, "retries find what was appended before the copy")
	_, err = CopyToJournal(t.Context(), newPool(t, url), server, slog.New(slog.DiscardHandler), nil)
	require.NoError(t, err, "a copy can be repeated")
}

func sql(t testing.TB, url, text string) {
	t.Helper()
	pgtest.Exec(t, connect(t, url), text)
}
