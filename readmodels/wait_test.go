package readmodels_test

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/internal/test/worktest"
	"bahi/projections"
	"bahi/readmodels"
)

func TestARowThatIsNotTakenEndsTheRead(t *testing.T) {
	t.Parallel()
	s, taken, f := built(t, 3), 0, &readmodels.At{}
	err := readmodels.Each(t.Context(), s.reader.From(f, "names"), pgx.RowTo[string], func(string) error {
		taken++
		return errNoName
	}, `select name from names.name`)
	require.ErrorIs(t, err, errNoName)
	require.Equal(t, 1, taken)
	_, read := f.Position()
	require.False(t, read)
}

func TestWhoReadsNoTableMayWaitForIt(t *testing.T) {
	t.Parallel()
	s := built(t, 1)
	s.add(t, "new")
	require.NoError(t, s.reader.From(&readmodels.At{Min: 2, Wait: forever}).Await(t.Context()), "for none")
	require.NoError(t, s.reader.From(&readmodels.At{Min: 1, Wait: forever}, "names").Await(t.Context()))
	require.ErrorIs(t, s.reader.From(&readmodels.At{Min: 2, Wait: time.Millisecond}, "names").Await(t.Context()),
		readmodels.ErrPositionTimeout)
	s.run(t)
	require.NoError(t, s.reader.From(&readmodels.At{Min: 2, Wait: forever}, "names").Await(t.Context()))
}

func TestReadsOfOneDecisionNeedWhatTheLogHadAtTheFirst(t *testing.T) {
	t.Parallel()
	s := built(t, 2)
	reader := s.read(nil)
	read := func(at *readmodels.At) ([]string, error) {
		for range 3 { // no process folds the events that are added meanwhile
			all, err := list(t.Context(), reader, at)
			require.NoError(t, err)
			require.Equal(t, []string{"n0", "n1"}, all)
			s.add(t, "later")
		}
		return nil, nil
	}
	_, at, err := readmodels.CompleteAsOf(read)
	require.NoError(t, err)
	require.Equal(t, event.Position(2), at)
}

// tend maintains the kept generations, as a serving process does.
func (s *fixture) tend(t *testing.T) {
	t.Helper()
	worktest.Background(t, func(ctx context.Context) error { return s.runner.MaintainGenerations(ctx, names) })
}

// After a read up to a position, no later read of any generation has less. No read fails because generations switch. The benchmark measures
// how long a switch takes on a quiet machine.
func TestReadersNeverGoBackWhileGenerationsSwitch(t *testing.T) {
	t.Parallel()
	s := built(t, 5)
	s.run(t)
	s.tend(t)
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	var (
		all           sync.WaitGroup
		reads, writes atomic.Int64
	)
	for i := range 4 {
		reader := s.reader
		if i%2 == 0 {
			reader = s.read(nil)
		}
		all.Go(func() {
			rows, position := 0, int64(0)
			for ctx.Err() == nil {
				f := &readmodels.At{Wait: 20 * time.Second}
				n, err := count(t.Context(), reader, f)
				at, _ := f.Position()
				if err != nil || f.Stale() || n < rows || int64(at) < position {
					t.Errorf("%d rows at %d after %d at %d, stale: %t, error: %v", n, at, rows, position, f.Stale(), err)
					return
				}
				rows, position = n, int64(at)
				reads.Add(1)
			}
		})
	}
	all.Go(func() {
		for ctx.Err() == nil {
			if _, err := s.tryAdd(t.Context(), "x"); err != nil {
				t.Error(err)
				return
			}
			writes.Add(1)
			time.Sleep(3 * time.Millisecond) // the log must not become long
		}
	})
	build := projections.Build{
		Store: s.store, Config: s.pool.Config().ConnConfig.Copy(), Projection: names, Log: slog.New(slog.DiscardHandler),
		How: projections.BuildOptions{Keep: time.Hour},
	}
	const switches = 20
	for nth := range switches {
		if nth%2 == 0 {
			require.NoError(t, build.Run(ctx))
			s.runner.Ask() // for generations kept from now on
		} else {
			require.NoError(t, build.Rollback(ctx, time.Hour))
		}
	}
	stop()
	all.Wait()
	t.Logf("%d reads and %d writes during %d switches", reads.Load(), writes.Load(), switches)
	require.Greater(t, reads.Load(), int64(switches))
	found, err := build.Examine(t.Context())
	require.NoError(t, err)
	require.Empty(t, found.Differences)
}

func TestAPageKnowsHowManyRowsThereAre(t *testing.T) {
	t.Parallel()
	s := built(t, 5)
	type name struct {
		Position int64
		Name     string
	}
	page := func(number, size int, from int64) (found []string, total int64) {
		rows, total, err := readmodels.List[name]{
			As: pgx.RowToStructByName[name], SQL: `select name, position from names.name where position >= @from`, Order: `position desc`,
			Args: pgx.NamedArgs{"from": from},
		}.Page(t.Context(), s.reader.From(nil, "names"), readmodels.Page{Number: number, Size: size})
		require.NoError(t, err)
		for _, r := range rows {
			found = append(found, r.Name)
		}
		return found, total
	}
	for _, c := range []struct {
		number, size int
		from         int64
		found        []string
		total        int64
	}{
		{1, 2, 1, []string{"n4", "n3"}, 5},
		{3, 2, 1, []string{"n0"}, 5},
		{4, 2, 1, nil, 5},
		{1, 2, 5, []string{"n4"}, 1},
		{1, 2, 6, nil, 0},
		{2, 2, 6, nil, 0},
		{1, 0, 3, []string{"n4", "n3", "n2"}, 3},
	} {
		found, total := page(c.number, c.size, c.from)
		require.Equal(t, c.found, found)
		require.Equal(t, c.total, total)
	}
}
