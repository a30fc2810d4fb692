package readmodels_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/eventstore"
	"bahi/eventstore/postgres"
	"bahi/internal/test/logtest"
	"bahi/internal/test/pgtest"
	"bahi/internal/test/worktest"
	"bahi/projections"
	"bahi/readmodels"
)

var names = projections.Define("names", 1, `create table name (position bigint, name text);`,
	projections.On(func(b *projections.Batch, e event.Recorded[book.AccountOpened]) {
		b.Exec(`insert into name values ($1, $2)`, int64(e.Position), e.Data.Name)
	}))

// fixture is a log, and a projection that comes only as far as a test lets it.
type fixture struct {
	pool   *pgxpool.Pool
	reads  *readmodels.Pool
	store  *postgres.Store
	runner *projections.Runner
	reader *readmodels.Reader
}

const forever = time.Hour

func open(t *testing.T) *fixture {
	t.Helper()
	s := &fixture{}
	s.pool, s.store = logtest.Open(t)
	s.reads = logtest.Snapshots(t, s.pool)
	s.runner = projections.NewRunner(s.store, s.pool, slog.New(slog.DiscardHandler))
	s.reader = s.read(s.runner.Follow)
	return s
}

func (s *fixture) read(follow readmodels.Follow) *readmodels.Reader {
	return readmodels.NewReader(s.reads, map[string]int{"names": 1}, follow)
}

// built returns a fixture whose projection has folded the given number of events and then stopped.
func built(t *testing.T, events int) *fixture {
	t.Helper()
	s := open(t)
	for i := range events {
		s.add(t, fmt.Sprint("n", i))
	}
	s.build(t)
	return s
}

func (s *fixture) build(t *testing.T) {
	t.Helper()
	b := projections.Build{
		Store: s.store, Config: s.pool.Config().ConnConfig.Copy(), Projection: names, Log: slog.New(slog.DiscardHandler),
		How: projections.BuildOptions{Accept: true},
	}
	require.NoError(t, b.Run(t.Context()))
}

// run lets the projection go on.
func (s *fixture) run(t *testing.T) {
	t.Helper()
	worktest.Background(t, func(ctx context.Context) error { return s.runner.Run(ctx, names) })
}

func (s *fixture) add(t *testing.T, name string) event.Position {
	t.Helper()
	at, err := s.tryAdd(t.Context(), name)
	require.NoError(t, err)
	return at
}

func (s *fixture) tryAdd(ctx context.Context, name string) (event.Position, error) {
	e, err := bank.Ledger.Accounts.Encode(uuid.New(), book.AccountOpened{Name: name}, event.Meta{})
	if err != nil {
		return 0, err
	}
	done, err := s.store.Append(ctx, eventstore.To("bank-"+uuid.NewString(), eventstore.NoStream, e))
	return done.Position, err
}

var errNoName = errors.New("no such name")

// list and count are the two ways of reading.
func list(ctx context.Context, r *readmodels.Reader, at *readmodels.At) (all []string, err error) {
	err = readmodels.Each(ctx, r.From(at, "names"), pgx.RowTo[string], func(name string) error {
		all = append(all, name)
		return nil
	}, `select name from names.name order by position`)
	return all, err
}

func count(ctx context.Context, r *readmodels.Reader, at *readmodels.At) (int, error) {
	return readmodels.Row(ctx, r.From(at, "names"), errNoName, pgx.RowTo[int], `select count(*) from names.name`)
}

func find(ctx context.Context, r *readmodels.Reader, at *readmodels.At, name string) (int64, error) {
	return readmodels.Row(ctx, r.From(at, "names"), errNoName, pgx.RowTo[int64], `select position from names.name where name = @name`,
		pgx.NamedArgs{"name": name})
}

func TestEachReadSeesEveryWriteAnsweredBefore(t *testing.T) {
	t.Parallel()
	s := built(t, 0)
	s.run(t)
	other := s.read(nil)
	for i := range 50 {
		s.add(t, strconv.Itoa(i))
		for _, r := range []*readmodels.Reader{s.reader, other} {
			f := &readmodels.At{Wait: forever}
			n, err := count(t.Context(), r, f)
			require.NoError(t, err)
			require.Equal(t, i+1, n)
			require.False(t, f.Stale())
		}
	}
}

func TestALateProjectionAnswersWhatItHasAndSaysSo(t *testing.T) {
	t.Parallel()
	s := built(t, 1)
	s.add(t, "new")
	f := &readmodels.At{Wait: time.Millisecond}
	all, err := list(t.Context(), s.reader, f)
	require.NoError(t, err)
	require.Equal(t, []string{"n0"}, all)
	require.True(t, f.Stale())
	position, _ := f.Position()
	require.EqualValues(t, 1, position)
	_, err = find(t.Context(), s.reader, f, "new")
	require.ErrorIs(t, err, errNoName, "nothing is an answer too")
	require.True(t, f.Stale())
}

func TestACallerNamesTheLeastPositionItNeeds(t *testing.T) {
	t.Parallel()
	s := built(t, 2)
	s.add(t, "new")
	f := &readmodels.At{Min: 2, Wait: forever}
	n, err := count(t.Context(), s.reader, f)
	require.NoError(t, err, "no more than that is waited for")
	require.Equal(t, 2, n)
	require.False(t, f.Stale())

	_, err = count(t.Context(), s.reader, &readmodels.At{Min: 3, Wait: time.Millisecond})
	require.ErrorIs(t, err, readmodels.ErrPositionTimeout)
	_, err = list(t.Context(), s.reader, &readmodels.At{Min: 3, Wait: time.Millisecond})
	require.ErrorIs(t, err, readmodels.ErrPositionTimeout)
	_, err = count(t.Context(), s.reader, &readmodels.At{Min: 4, Wait: forever})
	require.ErrorIs(t, err, readmodels.ErrBeyondHead, "at once")

	s.run(t)
	f = &readmodels.At{Min: 3, Wait: forever}
	n, err = count(t.Context(), s.reader, f)
	require.NoError(t, err)
	require.Equal(t, 3, n)
}

func TestAReadOfThePastWaitsForItAlone(t *testing.T) {
	t.Parallel()
	s := built(t, 2)
	s.add(t, "new")
	wait := &readmodels.At{Wait: forever}
	n, err := count(t.Context(), s.reader, wait.AsKnownAt(1))
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.False(t, wait.Stale())
	position, read := wait.Position()
	require.True(t, read)
	require.EqualValues(t, 2, position, "the request knows what its reads saw")
	hasty := &readmodels.At{Wait: time.Millisecond}
	_, err = count(t.Context(), s.reader, hasty.AsKnownAt(3))
	require.ErrorIs(t, err, readmodels.ErrPositionTimeout)
	_, err = count(t.Context(), s.reader, hasty.AsKnownAt(4))
	require.ErrorIs(t, err, readmodels.ErrBeyondHead)
	_, err = count(t.Context(), s.reader, hasty.After(3))
	require.ErrorIs(t, err, readmodels.ErrPositionTimeout)
	_, err = count(t.Context(), s.reader, hasty.AsKnownAt(1).After(3))
	require.ErrorIs(t, err, readmodels.ErrPositionTimeout)
}

func TestAParkedProjectionIsStaleAtOnce(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]string{"parked": `error = 'cannot', error_position = 3`, "paused": `paused = true`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			staleImmediately(t, stop)
		})
	}
}

// The position of a projection proves nothing if it is not of this log: the events up to it are lost, and others may have their positions.
func TestAProjectionThatIsNotOfThisLogIsStaleWhereverItStands(t *testing.T) {
	t.Parallel()
	s := built(t, 3)
	for _, sql := range []string{`update projection.generation set error = 'the log has no such event there'`,
		`update projection.generation set error = null; delete from log.event where position > 1`} {
		pgtest.Exec(t, s.pool, sql)
		f := &readmodels.At{Wait: forever}
		n, err := count(t.Context(), s.reader, f)
		require.NoError(t, err)
		require.Equal(t, 3, n)
		require.True(t, f.Stale(), sql)
	}
}

func staleImmediately(t *testing.T, stop string) {
	t.Helper()
	s := built(t, 2)
	pgtest.Exec(t, s.pool, `update projection.generation set `+stop)
	f := &readmodels.At{Wait: forever}
	n, err := count(t.Context(), s.reader, f)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.False(t, f.Stale(), "nothing is missing yet")
	s.add(t, "new")
	_, err = list(t.Context(), s.reader, f)
	require.NoError(t, err)
	require.True(t, f.Stale())
	_, err = count(t.Context(), s.reader, &readmodels.At{Min: 2, Wait: forever})
	require.NoError(t, err)
	_, err = count(t.Context(), s.reader, &readmodels.At{Min: 3, Wait: time.Millisecond})
	require.ErrorIs(t, err, readmodels.ErrPositionTimeout)
	_, err = readmodels.Complete(func(at *readmodels.At) (int, error) { return count(t.Context(), s.reader, at) })
	require.ErrorIs(t, err, readmodels.ErrPositionTimeout, "not for what is decided on it")
}

func TestAReadEndsWithItsRequest(t *testing.T) {
	t.Parallel()
	s := built(t, 1)
	s.add(t, "new")
	for _, read := range []func(context.Context) error{
		func(ctx context.Context) error {
			_, err := list(ctx, s.reader, &readmodels.At{Wait: forever})
			return err
		},
		func(ctx context.Context) error {
			_, err := count(ctx, s.reader, &readmodels.At{Wait: forever})
			return err
		},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		require.ErrorIs(t, read(ctx), context.DeadlineExceeded)
		cancel()
		require.Error(t, read(ctx))
	}
}

func TestSeveralReadsOfARequestReportTheOldest(t *testing.T) {
	t.Parallel()
	s := built(t, 1)
	f := &readmodels.At{Wait: time.Millisecond}
	_, read := f.Position()
	require.False(t, read)
	_, err := count(t.Context(), s.reader, f)
	require.NoError(t, err)
	s.add(t, "new")
	_, err = count(t.Context(), s.reader, f)
	require.NoError(t, err)
	require.True(t, f.Stale())
	s.run(t)
	late := &readmodels.At{Wait: forever, Min: 2}
	_, err = count(t.Context(), s.reader, late)
	require.NoError(t, err)
	_, err = count(t.Context(), s.reader, f)
	require.NoError(t, err)
	position, _ := f.Position()
	require.EqualValues(t, 1, position)
	require.True(t, f.Stale(), "and that one of them was stale")
}

func TestAConnectionThatKnowsAnOldGenerationReadsTheNewOne(t *testing.T) {
	t.Parallel()
	s := built(t, 2)
	config := s.pool.Config().Copy()
	config.MaxConns = 1
	pool, err := readmodels.OpenPool(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	reader := readmodels.NewReader(pool, map[string]int{"names": 1}, nil)
	for range 4 {
		for range 3 {
			n, err := count(t.Context(), reader, nil)
			require.NoError(t, err)
			require.Equal(t, 2, n)
			rows, err := list(t.Context(), reader, nil)
			require.NoError(t, err)
			require.Len(t, rows, 2)
		}
		s.build(t)
	}
	generation := pgtest.Value[int](t, s.pool, `select max(generation) from projection.generation`)
	require.Equal(t, 5, generation)
}

func TestWhatIsNotBuiltIsToldAtOnce(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, err := count(t.Context(), s.reader, &readmodels.At{Wait: forever})
	require.ErrorIs(t, err, readmodels.ErrNotBuilt)
	s.build(t)
	_, err = count(t.Context(), s.reader, nil)
	require.NoError(t, err)
	next := readmodels.NewReader(s.reads, map[string]int{"names": 2}, nil)
	_, err = count(t.Context(), next, nil)
	require.ErrorIs(t, err, readmodels.ErrNotBuilt, "another version's tables are not its own")
}

func TestTablesThatAreGoneAreNotWaitedForForEver(t *testing.T) {
	t.Parallel()
	s := built(t, 1)
	_, err := count(t.Context(), s.reader, nil)
	require.NoError(t, err)
	pgtest.Exec(t, s.pool, `drop schema names_g1 cascade`)
	for range 2 {
		_, err = count(t.Context(), s.reader, &readmodels.At{Wait: 20 * time.Millisecond})
		require.ErrorIs(t, err, readmodels.ErrNotBuilt)
	}
	_, err = list(t.Context(), s.reader, &readmodels.At{Wait: 20 * time.Millisecond})
	require.ErrorIs(t, err, readmodels.ErrNotBuilt)
	s.build(t)
	_, err = count(t.Context(), s.reader, nil)
	require.NoError(t, err)
}

func TestAMistakeInAViewIsTold(t *testing.T) {
	t.Parallel()
	s := built(t, 1)
	tables := s.reader.From(nil, "names")
	_, err := readmodels.Rows(t.Context(), s.reader.From(nil, "nobody"), pgx.RowTo[int], `select 1`)
	require.ErrorIs(t, err, readmodels.ErrNotBuilt)
	_, err = readmodels.Rows(t.Context(), tables, pgx.RowTo[int], `select nonsense from names.name`)
	require.ErrorContains(t, err, "nonsense")
	_, err = readmodels.Row(t.Context(), tables, errNoName, pgx.RowTo[int], `select nonsense from names.name`)
	require.ErrorContains(t, err, "nonsense")
	_, err = readmodels.Row(t.Context(), tables, errNoName, pgx.RowTo[int], `select name from names.name`)
	require.Error(t, err)
	_, err = readmodels.Row(t.Context(), tables, errNoName, pgx.RowTo[int], `select 1 / (position - position) from names.name`)
	require.ErrorContains(t, err, "division by zero")
	require.Panics(t, func() {
		_, _ = readmodels.Row(t.Context(), tables, errNoName, func(pgx.CollectableRow) (int, error) { panic("a mistake") },
			`select name from names.name`)
	})
	require.Zero(t, s.pool.Stat().AcquiredConns(), "and gives its connection back")
	n, err := count(t.Context(), s.reader, nil)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	s.add(t, "n0")
	s.build(t)
	_, err = find(t.Context(), s.reader, nil, "n0")
	require.ErrorIs(t, err, pgx.ErrTooManyRows)
}
