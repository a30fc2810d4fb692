package auditproj_test

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/postgres"
	"bahi/eventstore/tlog"
	"bahi/internal/test/pgtest"
	"bahi/migrations"
	"bahi/projections"
	"bahi/projections/auditproj"
)

// rig is a log with its tree.
type rig struct {
	t     *testing.T
	url   string
	pool  *pgxpool.Pool
	store *postgres.Store
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, url: pgtest.Template(t, "migrated", migrations.Up)}
	var err error
	r.pool, err = pgxpool.New(t.Context(), r.url)
	require.NoError(t, err)
	t.Cleanup(r.pool.Close)
	r.store, err = postgres.Open(t.Context(), r.pool, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(r.store.Close)
	return r
}

// add appends n events of an unknown type to one stream.
func (r *rig) add(n int) {
	r.t.Helper()
	events := make([]event.Proposed, n)
	for i := range events {
		events[i] = event.Proposed{ID: uuid.New(), Type: "Noted", Data: fmt.Appendf(nil, `{"n": %d}`, i), Meta: []byte(`{}`)}
	}
	_, err := r.store.Append(r.t.Context(), eventstore.To("note-"+uuid.NewString(), eventstore.NoStream, events...))
	require.NoError(r.t, err)
}

// leaves returns the hashes of the log's events.
func (r *rig) leaves() (hashes []tlog.Hash) {
	r.t.Helper()
	for e, err := range r.store.ReadAll(r.t.Context(), 0, eventstore.Forwards) {
		require.NoError(r.t, err)
		hashes = append(hashes, tlog.LeafHash(e))
	}
	return hashes
}

func (r *rig) build() projections.Build {
	return projections.Build{Store: r.store, Config: r.pool.Config().ConnConfig.Copy(), Projection: auditproj.Tree,
		Log: slog.New(slog.DiscardHandler)}
}

func TestTablesHaveTheTreeOfTheLog(t *testing.T) {
	t.Parallel()
	r := newRig(t)
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
	r := newRig(t)
	r.add(5)
	_, err := r.pool.Exec(t.Context(), `delete from log.event where position = 3`)
	require.NoError(t, err)
	differences, err := r.build().Fold(t.Context(), 2, 1)
	require.NoError(t, err)
	require.Empty(t, differences)
	require.NoError(t, r.build().Run(t.Context()))
	var list string
	require.NoError(t, r.pool.QueryRow(t.Context(),
		`select string_agg(index || '=' || position, ' ' order by index) from audit_g1.leaf`).Scan(&list))
	require.Equal(t, "2=4 3=5", list)
}

func TestWrongTilesAreNoticed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.add(5)
	require.NoError(t, r.build().Run(t.Context()))
	_, err := r.pool.Exec(t.Context(), `update audit_g1.tile set hashes = substr(hashes, 1, 64)`)
	require.NoError(t, err)
	r.add(1)
	ctx, stop := context.WithCancel(t.Context())
	runner, done := projections.NewRunner(r.store, r.pool, slog.New(slog.DiscardHandler)), make(chan error, 1)
	go func() { done <- runner.Run(ctx, auditproj.Tree) }()
	defer func() {
		stop()
		require.NoError(t, <-done)
	}()
	for {
		moved := runner.Advanced()
		if s := runner.Statuses()["audit"]; s.Error != "" {
			require.Contains(t, s.Error, "the tiles do not match the tree: they have 96 bytes instead of 192")
			return
		}
		<-moved
	}
}
