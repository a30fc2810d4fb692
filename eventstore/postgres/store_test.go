package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore"
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
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close(context.WithoutCancel(t.Context()))) })
	return conn
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

func TestAnEmptyLog(t *testing.T) {
	t.Parallel()
	s := newStore(t, newLog(t))
	head, err := s.Head(t.Context())
	require.NoError(t, err)
	require.Zero(t, head)
	for _, at := range []time.Time{{}, time.Now(), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)} {
		found, err := s.PositionAt(t.Context(), at)
		require.NoError(t, err)
		require.Zero(t, found)
	}
	require.Empty(t, wholeLog(t, s))
	require.EqualValues(t, 1, must(t, s, "first-1", makes(1)...).Position)
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
		_, err := connect(t, url).Exec(t.Context(), `alter database `+pgx.Identifier{name}.Sanitize()+` set `+setting)
		require.NoError(t, err)
	}
	// Reads may take longer, also those of an open.
	opened := func() *Store {
		return newStoreWith(t, url, defaultTimeouts, func(c *pgxpool.Config) {
			c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
				_, err := conn.Exec(ctx, `set statement_timeout = 0`)
				return err
			}
		})
	}
	s := opened()
	// A caller that waited for the lock must see the commits of the meantime.
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
	var setting string
	require.NoError(t, s.appender.conn.QueryRow(t.Context(), `show synchronous_commit`).Scan(&setting))
	require.Equal(t, "on", setting)
}

// lock acquires the log's lock like another node and holds it until unlock is called.
func lock(t testing.TB, url string) (unlock func()) {
	t.Helper()
	conn := connect(t, url)
	_, err := conn.Exec(t.Context(), `set statement_timeout = 0; begin; `+lockLog)
	require.NoError(t, err)
	return func() {
		_, err := conn.Exec(t.Context(), `commit`)
		require.NoError(t, err)
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
