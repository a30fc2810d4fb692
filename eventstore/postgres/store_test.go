package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/internal/test/draws"
	"bahi/internal/test/pgtest"
	"bahi/migrations"
)

func TestStore(t *testing.T) {
	t.Parallel()
	url := newLog(t)
	suite{
		Open: func(t testing.TB) (eventstore.Store, func()) {
			s := newStore(t, url)
			return s, s.Close
		},
	}.run(t)
}

// newLog returns the URL of a database with an empty log.
func newLog(t testing.TB) string {
	t.Helper()
	return pgtest.Template(t, "log", migrations.Up)
}

// newStore opens a log until the test ends.
func newStore(t testing.TB, url string) *Store {
	t.Helper()
	return newStoreWith(t, url, defaultTimeouts)
}

func newStoreWith(t testing.TB, url string, p timeouts, change ...func(*pgxpool.Config)) *Store {
	t.Helper()
	s, err := open(t.Context(), newPool(t, url, change...), slog.New(slog.NewTextHandler(t.Output(), nil)), p, nil)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

func newPool(t testing.TB, url string, change ...func(*pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	require.NoError(t, err)
	config.MaxConns = 4
	for _, c := range change {
		c(config)
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

func connect(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	return pgtest.Connect(t, url)
}

// made returns an event whose bytes are derived from its id, so a reader can check them.
func made(id uuid.UUID) event.Proposed {
	return event.Proposed{
		ID: id, Type: "ThingDone",
		Data: fmt.Appendf(nil, `{"id": %q, "text": %q}`, id, strings.Repeat(id.String()[:8], int(id[0])%16)),
		Meta: fmt.Appendf(nil, `{"of": %q}`, id),
	}
}

func makes(n int) []event.Proposed {
	events := make([]event.Proposed, n)
	for i := range events {
		events[i] = made(uuid.New())
	}
	return events
}

func must(t testing.TB, s *Store, stream string, events ...event.Proposed) eventstore.Appended {
	t.Helper()
	done, err := s.Append(t.Context(), eventstore.To(stream, eventstore.Any, events...))
	require.NoError(t, err)
	return done
}

// wholeLog reads the log and checks the invariants of every log: positions are 1 to N, revisions are dense in each stream, times never
// decrease, and bytes are those that made generates.
func wholeLog(t testing.TB, s *Store) []event.Stored {
	t.Helper()
	var (
		all       []event.Stored
		revisions = map[string]int64{}
		last      time.Time
	)
	for e, err := range s.ReadAll(t.Context(), 0, eventstore.Forwards) {
		require.NoError(t, err)
		all = append(all, e)
		require.EqualValues(t, len(all), e.Position)
		require.Equal(t, revisions[e.Stream], e.Revision, "position %d", e.Position)
		revisions[e.Stream]++
		require.False(t, e.At.Before(last), "position %d", e.Position)
		last = e.At
		want := made(e.ID)
		require.Equal(t, string(want.Data), string(e.Data), "position %d", e.Position)
		require.Equal(t, string(want.Meta), string(e.Meta), "position %d", e.Position)
	}
	return all
}

// byID returns events by id and fails if an id occurs twice.
func byID(t testing.TB, log []event.Stored) map[uuid.UUID]event.Stored {
	t.Helper()
	there := make(map[uuid.UUID]event.Stored, len(log))
	for _, e := range log {
		there[e.ID] = e
	}
	require.Equal(t, len(log), len(there)) //nolint:testifylint // a failure would print them all
	return there
}

func TestEachLogHasItsOwnID(t *testing.T) {
	t.Parallel()
	one, two := pgtest.DB(t), pgtest.DB(t) // a copied database would keep the id
	require.NoError(t, migrations.Up(t.Context(), one))
	require.NoError(t, migrations.Up(t.Context(), two))
	require.NotEqual(t, newStore(t, one).ID(), newStore(t, two).ID())
}

func TestUnmigratedDatabaseIsNotOpened(t *testing.T) {
	t.Parallel()
	_, err := Open(t.Context(), newPool(t, pgtest.DB(t)), slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "open the event log")
}

func TestDatabaseDefaultsDoNotWeakenTheLog(t *testing.T) {
	t.Parallel()
	url := newLog(t)
	name := connect(t, url).Config().Database
	for _, setting := range []string{
		`default_transaction_isolation = 'repeatable read'`, `synchronous_commit = off`, `statement_timeout = '50ms'`,
	} {
		pgtest.Exec(t, connect(t, url), `alter database `+pgx.Identifier{name}.Sanitize()+` set `+setting)
	}
	// Reads may take longer, even those that open a store makes.
	opened := func() *Store {
		return newStoreWith(t, url, defaultTimeouts, func(c *pgxpool.Config) {
			c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
				_, err := conn.Exec(ctx, `set statement_timeout = 0`)
				return err
			}
		})
	}
	s := opened()
	// A caller that waited for the lock must see the commits made during the wait.
	done := make(chan error, 2)
	unlock := lock(t, url)
	for _, node := range []*Store{opened(), opened()} {
		go func() {
			_, err := node.Append(t.Context(), eventstore.To("busy-1", eventstore.Any, makes(1)...))
			done <- err
		}()
	}
	waitersForLock(t, url, 2)
	unlock()
	require.NoError(t, <-done)
	require.NoError(t, <-done)
	require.Len(t, wholeLog(t, s), 2)

	must(t, s, "busy-1", makes(1)...)
	setting := pgtest.Value[string](t, s.appender.conn, `show synchronous_commit`)
	require.Equal(t, "on", setting)
}

// lock acquires the log's lock like another node and holds it until unlock is called.
func lock(t testing.TB, url string) (unlock func()) {
	t.Helper()
	conn := connect(t, url)
	pgtest.Exec(t, conn, `set statement_timeout = 0; begin; `+lockLog)
	return func() {
		pgtest.Exec(t, conn, `commit`)
	}
}

// waitersForLock waits until count sessions wait for the log's lock.
func waitersForLock(t testing.TB, url string, count int) {
	t.Helper()
	conn := connect(t, url)
	require.Eventually(t, func() bool {
		var waiting int
		err := conn.QueryRow(t.Context(), `
			select count(*) from pg_locks where locktype = 'advisory' and not granted
			and database = (select oid from pg_database where datname = current_database())`).Scan(&waiting)
		return err == nil && waiting == count
	}, time.Minute, time.Millisecond)
}

func TestMain(m *testing.M) {
	draws.Default(20) // the suite follows its model three times, with a transaction for each step
	os.Exit(m.Run())
}

// rounds returns how often a test injects a fault: BAHI_ROUNDS in make soak, otherwise few times.
func rounds(few int) int {
	if n, err := strconv.Atoi(os.Getenv("BAHI_ROUNDS")); err == nil {
		return n
	}
	return few
}

func TestEventsAreReadInEachQueryExecMode(t *testing.T) {
	t.Parallel()
	url := newLog(t)
	pool := newPool(t, url)
	want := event.Stored{
		Position: 1, Stream: "café-1", Revision: 0, ID: uuid.New(), Type: "Made", Data: []byte(`{ "é" :1.50}`), Meta: []byte("{}"),
		At: time.Date(1999, 12, 31, 23, 59, 59, 999_999_000, time.UTC),
	}
	pgtest.Exec(t, pool, `insert into log.event (position, stream, revision, id, open_ended, type, data, meta, recorded_at)
		values ($1, $2, $3, $4, false, $5, $6, $7, $8)`,
		want.Position, want.Stream, want.Revision, want.ID, want.Type, want.Data, want.Meta, want.At)
	first := func(mode pgx.QueryExecMode) (e event.Stored, err error) {
		s := newStoreWith(t, url, defaultTimeouts, func(c *pgxpool.Config) { c.ConnConfig.DefaultQueryExecMode = mode })
		for e, err = range s.ReadAll(t.Context(), 0, eventstore.Forwards) {
			break
		}
		return e, err
	}
	modes := []pgx.QueryExecMode{
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec,
		pgx.QueryExecModeSimpleProtocol,
	}
	for _, mode := range modes {
		e, err := first(mode)
		require.NoError(t, err, mode)
		require.Equal(t, want, e, mode)
	}

	pgtest.Exec(t, pool, `update log.event set recorded_at = '-infinity'`)
	e, err := first(pgx.QueryExecModeCacheStatement)
	require.NoError(t, err)
	require.NotEqual(t, want.At, e.At)
}

// The window must not trust the expectation: a dropped event made it false.
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
