// Package audit reads the log for auditors: its events, its Merkle tree, its checkpoints and the trail of the books.
package auditview

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"bahi/domain/event"
	"bahi/eventstore/tlog"
)

// Tree reads the live tables of the projection audit. A tile only grows, so bytes that were read stay right even if another
// generation becomes live meanwhile.
type Tree struct {
	DB      *pgxpool.Pool
	Version int // of the projection
}

// ReadTiles implements eventstore/tlog's Tiles.
func (t *Tree) ReadTiles(ctx context.Context, ids []tlog.TileID) (tiles [][]byte, err error) {
	levels, indexes := make([]int64, len(ids)), make([]int64, len(ids))
	for i, id := range ids {
		levels[i], indexes[i] = int64(id.Level), int64(id.Index)
	}
	err = t.read(ctx, `select coalesce(t.hashes, '') from unnest($1::bigint[], $2::bigint[]) with ordinality asked (level, index, nth)
		left join %s.tile t on t.level = asked.level and t.index = asked.index order by nth`, func(rows pgx.Rows) error {
		tiles, err = pgx.CollectRows(rows, pgx.RowTo[[]byte])
		return err
	}, levels, indexes)
	return tiles, err
}

// Size returns the number of events in the tree, 0 before the first.
func (t *Tree) Size(ctx context.Context) (size uint64, err error) {
	err = t.read(ctx, `select size from %s.tree`, first(&size))
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return size, err
}

// Position returns the position in the log of the leaf at an index, from 0.
func (t *Tree) Position(ctx context.Context, index uint64) (event.Position, error) {
	var at uint64
	err := t.read(ctx, `select coalesce((select position from %s.leaf where index = $1), $1 + 1)`, first(&at), int64(index))
	return event.Position(at), err
}

// Index returns the index, from 0, of the leaf of the event at a position; false if the tree has no such leaf.
func (t *Tree) Index(ctx context.Context, at event.Position) (index uint64, found bool, err error) {
	if at == 0 {
		return 0, false, nil
	}
	var known int64
	err = t.read(ctx, `select coalesce((select index from %[1]s.leaf where position = $1),
		case when $1 <= (select size from %[1]s.tree) and not exists (select from %[1]s.leaf where index = $1 - 1) then $1 - 1 end, -1)`,
		first(&known), int64(at))
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return uint64(max(known, 0)), known >= 0, err
}

func first[T any](into *T) func(pgx.Rows) error {
	return func(rows pgx.Rows) (err error) {
		*into, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
		return err
	}
}

// read fills in the schema of the live generation. It tries again if that schema is gone.
func (t *Tree) read(ctx context.Context, sql string, collect func(pgx.Rows) error, args ...any) error {
	for tries := 0; ; tries++ {
		var generation int
		err := t.DB.QueryRow(ctx, `select generation from projection.generation where live and name = 'audit' and version = $1`,
			t.Version).Scan(&generation)
		if err != nil {
			return fmt.Errorf("find the tree's tables: %w", err)
		}
		rows, _ := t.DB.Query(ctx, fmt.Sprintf(sql, fmt.Sprintf("audit_g%d", generation)), args...)
		err = collect(rows)
		if server, gone := errors.AsType[*pgconn.PgError](err); gone && (server.Code == "42P01" || server.Code == "3F000") && tries < 3 {
			continue
		}
		return err
	}
}
