package readmodels_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/eventstore"
	"bahi/projections"
	"bahi/readmodels"
)

// defineSigns defines the names of accounts by workspace. A program that does not tell has the same tables.
func defineSigns(tells bool) *projections.Projection {
	p := projections.Define("names", 1, `create table sign (workspace_id uuid, name text);`,
		projections.On(func(b *projections.Batch, e event.Recorded[book.AccountOpened]) {
			b.Exec(`insert into sign values ($1, $2)`, e.Meta.Workspace, e.Data.Name)
			b.MarkChanged(e.Meta.Workspace)
		}))
	if tells {
		return p.WithChangeTracking()
	}
	return p
}

// keeping asks a reader for what it may keep, and counts what it read.
type keeping struct {
	*shelf

	reader *readmodels.Reader
	reads  int
}

func (k *keeping) ask(t *testing.T, workspace uuid.UUID, f *readmodels.Freshness) []string {
	t.Helper()
	key := readmodels.CacheKey{Projection: "names", Workspace: workspace, Of: "signs"}
	size := func(all []string) int { return len(all) }
	found, err := readmodels.Cached(readmodels.WithFreshness(t.Context(), f), k.reader, key, size,
		func(ctx context.Context) ([]string, error) {
			k.reads++
			return readmodels.RowsBatched(ctx, k.reader, pgx.RowTo[string], `select name from names.sign where workspace_id = $1`, workspace)
		})
	require.NoError(t, err)
	slices.Sort(found)
	return found
}

func (s *shelf) sign(t *testing.T, workspace uuid.UUID, name string) event.Position {
	t.Helper()
	e, err := bank.Ledger.Accounts.Encode(uuid.New(), book.AccountOpened{Name: name}, event.Meta{Workspace: workspace})
	require.NoError(t, err)
	done, err := s.store.Append(t.Context(), eventstore.To("bank-"+uuid.NewString(), eventstore.NoStream, e))
	require.NoError(t, err)
	return done.Position
}

// folding lets a program follow until end is called.
func (s *shelf) folding(t *testing.T, p *projections.Projection) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	runner, stopped := projections.NewRunner(s.store, s.pool, slog.New(slog.DiscardHandler)), make(chan error, 1)
	go func() { stopped <- runner.Run(ctx, p) }()
	return func() {
		cancel()
		require.NoError(t, <-stopped)
	}
}

// told waits until the tables are live and followed by a program that tells.
func (s *shelf) told(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		var told bool
		err := s.pool.QueryRow(t.Context(), `select coalesce(bool_or(live and told_to = position), false) from projection.generation`).Scan(&told)
		return err == nil && told
	}, time.Minute, time.Millisecond)
}

func patient() *readmodels.Freshness { return &readmodels.Freshness{Wait: forever} }

func TestAKeptAnswerIsReadAgainWhenItsWorkspaceChanged(t *testing.T) {
	t.Parallel()
	s := open(t)
	end := s.folding(t, defineSigns(true))
	k := &keeping{shelf: s, reader: s.read(nil)}
	mine, other := uuid.New(), uuid.New()
	s.sign(t, mine, "a")
	s.told(t)

	require.Equal(t, []string{"a"}, k.ask(t, mine, patient()))
	require.Equal(t, []string{"a"}, k.ask(t, mine, patient()))
	require.Equal(t, 1, k.reads)

	head, f := s.sign(t, other, "x"), patient()
	require.Equal(t, []string{"a"}, k.ask(t, mine, f))
	require.Equal(t, 1, k.reads, "another workspace changed")
	at, _ := f.Position()
	require.GreaterOrEqual(t, at, head, "it is as fresh as a read")

	s.sign(t, mine, "b")
	require.Equal(t, []string{"a", "b"}, k.ask(t, mine, patient()))
	require.Equal(t, 2, k.reads)
	require.Equal(t, []string{"x"}, k.ask(t, other, patient()), "an answer is one workspace's")

	// A program that does not tell folds for a while.
	end()
	end = s.folding(t, defineSigns(false))
	s.sign(t, mine, "c")
	require.Equal(t, []string{"a", "b", "c"}, k.ask(t, mine, patient()))
	s.sign(t, mine, "d")
	require.Equal(t, []string{"a", "b", "c", "d"}, k.ask(t, mine, patient()))
	end()
	reads := k.reads
	end = s.folding(t, defineSigns(true))
	defer end()
	s.sign(t, other, "y")
	require.Equal(t, []string{"a", "b", "c", "d"}, k.ask(t, mine, patient()))
	require.LessOrEqual(t, k.reads, reads+1)
	reads = k.reads
	require.Equal(t, []string{"a", "b", "c", "d"}, k.ask(t, mine, patient()))
	require.Equal(t, reads, k.reads)
}

func TestOfCallersAtOnceOneReads(t *testing.T) {
	t.Parallel()
	s := open(t)
	defer s.folding(t, defineSigns(true))()
	k, mine := &keeping{shelf: s, reader: s.read(nil)}, uuid.New()
	s.sign(t, mine, "a")
	s.told(t)
	var (
		all   sync.WaitGroup
		reads atomic.Int64
	)
	two := make(chan struct{})
	for range 8 {
		all.Go(func() {
			key := readmodels.CacheKey{Projection: "names", Workspace: mine, Of: "at once"}
			size := func(all []string) int { return len(all) }
			ctx := readmodels.WithFreshness(t.Context(), patient())
			found, err := readmodels.Cached(ctx, k.reader, key, size, func(ctx context.Context) ([]string, error) {
				if reads.Add(1) == 2 {
					close(two)
				}
				select { // time enough for another one to read too
				case <-two:
				case <-time.After(100 * time.Millisecond):
				}
				return readmodels.RowsBatched(ctx, k.reader, pgx.RowTo[string], `select name from names.sign where workspace_id = $1`, mine)
			})
			assert.NoError(t, err)
			assert.Equal(t, []string{"a"}, found)
		})
	}
	all.Wait()
	require.Equal(t, int64(1), reads.Load())
}

func TestAKeptAnswerDoesNotOutliveItsTables(t *testing.T) {
	t.Parallel()
	s := open(t)
	signs := defineSigns(true)
	end := s.folding(t, signs)
	k := &keeping{shelf: s, reader: s.read(nil)}
	mine := uuid.New()
	at := s.sign(t, mine, "a")
	s.sign(t, uuid.New(), "x")
	s.told(t)
	require.Equal(t, []string{"a"}, k.ask(t, mine, patient()))
	end()

	// A rebuild: other tables are live.
	b := projections.Build{
		Store: s.store, Config: s.pool.Config().ConnConfig.Copy(), Projection: signs, Log: slog.New(slog.DiscardHandler),
		How: projections.BuildOptions{Accept: true},
	}
	require.NoError(t, b.Run(t.Context()))
	end = s.folding(t, signs)
	require.Equal(t, []string{"a"}, k.ask(t, mine, patient()))
	require.Equal(t, 2, k.reads)
	end()

	// A restore of an older state, in which the log went on in another way.
	s.exec(t, `update projection.generation set position = position - 1, told_to = position - 1`)
	s.exec(t, `delete from projection.change`)
	require.Equal(t, []string{"a"}, k.ask(t, mine, &readmodels.Freshness{Min: at, Wait: time.Nanosecond}))
	require.Equal(t, 3, k.reads)
}

func TestWhatIsKeptIsBounded(t *testing.T) {
	t.Parallel()
	s := open(t)
	end := s.folding(t, defineSigns(true))
	defer end()
	k := &keeping{shelf: s, reader: s.read(nil)}
	readmodels.Keep(k.reader, 2000)
	workspaces := []uuid.UUID{uuid.New(), uuid.New(), uuid.New(), uuid.New()}
	for _, w := range workspaces {
		s.sign(t, w, "a")
	}
	s.told(t)
	for range 2 {
		for _, w := range workspaces {
			require.Equal(t, []string{"a"}, k.ask(t, w, patient()))
		}
	}
	require.Equal(t, 8, k.reads, "each was dropped before it was asked for again")
	k.ask(t, workspaces[3], patient())
	require.Equal(t, 8, k.reads)
	require.LessOrEqual(t, readmodels.KeptBytes(k.reader), 2000)
}
