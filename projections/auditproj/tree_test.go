package auditproj_test

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/postgres"
	"bahi/eventstore/tlog"
	"bahi/internal/test/logtest"
	"bahi/internal/test/pgtest"
	"bahi/internal/test/worktest"
	"bahi/projections"
	"bahi/projections/auditproj"
)

// fixture is a log with its tree.
type fixture struct {
	t     *testing.T
	pool  *pgxpool.Pool
	store *postgres.Store
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	pool, store := logtest.Open(t)
	return &fixture{t, pool, store}
}

// add appends n events of an unknown type to one stream.
func (r *fixture) add(n int) {
	r.t.Helper()
	events := make([]event.Proposed, n)
	for i := range events {
		events[i] = event.Proposed{ID: uuid.New(), Type: "Noted", Data: fmt.Appendf(nil, `{"n": %d}`, i), Meta: []byte(`{}`)}
	}
	_, err := r.store.Append(r.t.Context(), eventstore.To("note-"+uuid.NewString(), eventstore.NoStream, events...))
	require.NoError(r.t, err)
}

// leaves returns the hashes of the log's events.
func (r *fixture) leaves() (hashes []tlog.Hash) {
	r.t.Helper()
	for e, err := range r.store.ReadAll(r.t.Context(), 0, eventstore.Forwards) {
		require.NoError(r.t, err)
		hashes = append(hashes, tlog.LeafHash(e))
	}
	return hashes
}

func (r *fixture) build() projections.Build {
	return projections.Build{Store: r.store, Config: r.pool.Config().ConnConfig.Copy(), Projection: auditproj.Tree,
		Log: slog.New(slog.DiscardHandler)}
}

func TestTablesHaveTheTreeOfTheLog(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	for _, n := range []int{1, 254, 1, 1, 300, 7} {
		r.add(n)
	}
	build := r.build()
	for _, way := range []struct{ size, stops int }{{1, 0}, {100, 3}, {256, 1}, {257, 0}, {math.MaxInt, 5}} {
		differences, err := build.Fold(t.Context(), way.size, way.stops)
		require.NoError(t, err)
		require.Empty(t, differences, "in batches of %d, and a fill interrupted %d times", way.size, way.stops)
	}
	require.NoError(t, build.Run(t.Context()))
	leaves := r.leaves()
	var want tlog.Tree
	for _, leaf := range leaves {
		want.Append(leaf)
	}
	var (
		size    uint64
		tiles   string
		elsehow int
	)
	require.NoError(t, r.pool.QueryRow(t.Context(), `select size,
		(select string_agg(level || '/' || index || ':' || length(hashes)/32, ' ' order by level, index) from audit_g1.tile),
		(select count(*) from audit_g1.leaf) from audit_g1.tree`).Scan(&size, &tiles, &elsehow))
	require.EqualValues(t, len(leaves), size)
	require.Equal(t, "0/0:256 0/1:256 0/2:52 1/0:2", tiles)
	require.Zero(t, elsehow, "positions suffice")
	tree, err := tlog.TreeAt(t.Context(), stored{r.pool}, size)
	require.NoError(t, err)
	require.Equal(t, want.Root(), tree.Root())
}

// stored reads the tiles of the first generation.
type stored struct{ pool *pgxpool.Pool }

func (s stored) ReadTiles(ctx context.Context, ids []tlog.TileID) ([][]byte, error) {
	all := make([][]byte, len(ids))
	for i, id := range ids {
		if err := s.pool.QueryRow(ctx, `select hashes from audit_g1.tile where level = $1 and index = $2`, int64(id.Level),
			int64(id.Index)).Scan(&all[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// A log with gaps in its positions, like EventStoreDB's, needs stored positions of its leaves.
func TestSparsePositionsOfLeavesAreStored(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	r.add(5)
	pgtest.Exec(t, r.pool, `delete from log.event where position = 3`)
	differences, err := r.build().Fold(t.Context(), 2, 1)
	require.NoError(t, err)
	require.Empty(t, differences)
	require.NoError(t, r.build().Run(t.Context()))
	list := pgtest.Value[string](t, r.pool, `select string_agg(index || '=' || position, ' ' order by index) from audit_g1.leaf`)
	require.Equal(t, "2=4 3=5", list)
}

func TestWrongTilesAreNoticed(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	r.add(5)
	require.NoError(t, r.build().Run(t.Context()))
	pgtest.Exec(t, r.pool, `update audit_g1.tile set hashes = substr(hashes, 1, 64)`)
	r.add(1)
	runner := projections.NewRunner(r.store, r.pool, slog.New(slog.DiscardHandler))
	worktest.Background(t, func(ctx context.Context) error { return runner.Run(ctx, auditproj.Tree) })
	for {
		moved := runner.Advanced()
		if s := runner.Statuses()["audit"]; s.Error != "" {
			require.Contains(t, s.Error, "the tiles do not match the tree: they have 96 bytes instead of 192")
			return
		}
		<-moved
	}
}

// post appends n events of accounts, rows and a workspace, and of streams that the map does not have.
func (r *fixture) post(random *rand.Rand, n int) {
	r.t.Helper()
	for range n {
		stream, kind, data := "note-1", "Noted", `{}`
		switch row := random.IntN(40); random.IntN(5) {
		case 0:
			stream, kind = fmt.Sprintf("karigar-%d", 1+random.IntN(9)), "KarigarOpened"
		case 1, 2: // twice for some rows: the first counts
			stream, kind, data = fmt.Sprintf("bankrow-%d", row), "BankRowAdded", fmt.Sprintf(`{"account":%d}`, 1+random.IntN(9))
		case 3:
			stream, kind = fmt.Sprintf("bankrow-%d", row), "BankRowEdited"
		case 4:
			stream, kind = "period-"+uuid.Nil.String(), "PeriodClosed"
		}
		_, err := r.store.Append(r.t.Context(), eventstore.To(stream, eventstore.Any,
			event.Proposed{ID: uuid.New(), Type: kind, Data: []byte(data), Meta: []byte(`{}`)}))
		require.NoError(r.t, err)
	}
}

// mapped returns the root of the map of the log, as an auditor makes it.
func (r *fixture) mapped() tlog.Hash {
	r.t.Helper()
	var a tlog.Accounts
	for e, err := range r.store.ReadAll(r.t.Context(), 0, eventstore.Forwards) {
		require.NoError(r.t, err)
		a.Add(tlog.ConcernOf(&e), tlog.LeafHash(e))
	}
	return a.Root()
}

func TestEntriesDoNotDependOnBatches(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	r.post(rand.New(rand.NewPCG(1, 1)), 150)
	for _, way := range []struct{ size, stops int }{{1, 0}, {7, 3}, {100, 1}, {math.MaxInt, 2}} {
		differences, err := r.build().Fold(t.Context(), way.size, way.stops)
		require.NoError(t, err)
		require.Empty(t, differences, "in batches of %d, and a fill interrupted %d times", way.size, way.stops)
	}
}

func TestCheckpointsHaveTheMapOfTheLog(t *testing.T) {
	t.Parallel()
	r, s := newSignedLog(t, 3)
	random := rand.New(rand.NewPCG(2, 2))
	require.Equal(t, (&tlog.Map{}).Root(), r.mapped())
	grow := func(n int) tlog.Checkpoint {
		r.post(random, n)
		r.grown()
		_, c, _ := r.signed(s)
		require.Equal(t, r.mapped(), c.Map)
		return c
	}
	for _, n := range []int{1, 40, 3, 25} {
		grow(n)
	}

	// Whatever was done to the stored nodes, a checkpoint has the right root.
	for _, damage := range []string{
		`delete from audit.map_node`,
		`update audit.map_node set hash = decode(repeat('ab', 32), 'hex') where path = '\x0000'`,
	} {
		r.exec(damage)
		grow(5)
	}
	r.exec(`update audit.map_node set hash = decode(repeat('ab', 32), 'hex') where path <> '\x0000'`)
	r.post(random, 30)
	r.grown()
	_, err := s.Sign(t.Context())
	require.ErrorIs(t, err, tlog.ErrMapBroken, "the next one makes it again")
	grow(1)
	grow(1)

	// A checkpoint of an earlier version has no map.
	r.exec(`update audit.checkpoint set note = regexp_replace(note, '\nbahi-map[^\n]*', '')`)
	r.exec(`update audit.map_node set hash = decode(repeat('cd', 32), 'hex')`)
	grow(2)
}
