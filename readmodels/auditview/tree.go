// Package auditview reads the log for auditors: its events, its Merkle tree, its checkpoints and the trail of the books.
package auditview

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"bahi/domain/event"
	"bahi/eventstore/tlog"
	"bahi/readmodels"
)

// Tree reads the live tables of the projection audit. A tile only grows, so bytes that were read stay valid when another generation becomes
// live.
type Tree struct {
	Reader *readmodels.Reader
}

// ReadTiles implements eventstore/tlog's Tiles.
func (t *Tree) ReadTiles(ctx context.Context, ids []tlog.TileID) (tiles [][]byte, err error) {
	levels, indexes := make([]int64, len(ids)), make([]int64, len(ids))
	for i, id := range ids {
		levels[i], indexes[i] = int64(id.Level), int64(id.Index)
	}
	return readmodels.Rows(ctx, t.Reader.From(new(readmodels.At).AsKnownAt(0), "audit"), pgx.RowTo[[]byte], `
		select coalesce(t.hashes, '') from unnest($1::bigint[], $2::bigint[]) with ordinality asked (level, index, nth)
		left join audit.tile t on t.level = asked.level and t.index = asked.index order by nth`, levels, indexes)
}

// Size returns the number of events in the tree. It is 0 for an empty tree and before its tables are built.
func (t *Tree) Size(ctx context.Context) (size uint64, err error) {
	found, err := t.number(ctx, `select coalesce((select size from audit.tree), 0)`)
	if errors.Is(err, readmodels.ErrNotBuilt) {
		return 0, nil
	}
	return uint64(found), err
}

// Entries returns the number of events in the tree, and the entries of the map with an event after a position, by name.
// It reads both in one snapshot.
func (t *Tree) Entries(ctx context.Context, after event.Position) (size uint64, entries map[string]tlog.Compact, err error) {
	entries = map[string]tlog.Compact{}
	at := new(readmodels.At).AsKnownAt(0)
	_, err = readmodels.Rows(ctx, t.Reader.From(at, "audit"), func(row pgx.CollectableRow) (none struct{}, err error) {
		var total int64
		var name *string
		var leaves *int64
		var hashes []byte
		if err := row.Scan(&total, &name, &leaves, &hashes); err != nil {
			return none, err
		}
		if size = uint64(total); name != nil {
			entries[*name] = tlog.Compact{Size: uint64(*leaves), Hashes: split(hashes)}
		}
		return none, nil
	}, `select t.size, e.entry, e.size, e.hashes from audit.tree t left join audit.entry e
		on e.span >= $1::bigint >> 13 and e.changed > $1`, int64(after))
	if errors.Is(err, readmodels.ErrNotBuilt) {
		return 0, nil, nil
	}
	return size, entries, err
}

// MapNodes reads the stored nodes of the map.
func (*Tree) MapNodes(tx pgx.Tx) tlog.MapNodes {
	return func(ctx context.Context, paths [][]byte) ([]tlog.MapNode, error) {
		rows, _ := tx.Query(ctx, `select path, key, hash from audit.map_node where path = any($1)`, paths)
		return pgx.CollectRows(rows, func(row pgx.CollectableRow) (n tlog.MapNode, err error) {
			var key, hash []byte
			if err = row.Scan(&n.Path, &key, &hash); err != nil {
				return n, err
			}
			if n.Leaf = key != nil; n.Leaf {
				copy(n.Key[:], key)
			}
			copy(n.Hash[:], hash)
			return n, nil
		})
	}
}

// split splits concatenated hashes.
func split(text []byte) (hashes []tlog.Hash) {
	for ; len(text) >= tlog.HashSize; text = text[tlog.HashSize:] {
		hashes = append(hashes, tlog.Hash(text))
	}
	return hashes
}

// Position returns the position in the log of the leaf at an index, from 0.
func (t *Tree) Position(ctx context.Context, index uint64) (event.Position, error) {
	found, err := t.number(ctx, `select coalesce((select position from audit.leaf where index = $1), $1 + 1)`, int64(index))
	return event.Position(found), err
}

// Index returns the index, from 0, of the leaf of the event at a position; false if the tree has no such leaf.
func (t *Tree) Index(ctx context.Context, at event.Position) (index uint64, found bool, err error) {
	if at == 0 {
		return 0, false, nil
	}
	known, err := t.number(ctx, `select coalesce((select index from audit.leaf where position = $1),
		case when $1 <= (select size from audit.tree) and not exists (select from audit.leaf where index = $1 - 1) then $1 - 1 end, -1)`,
		int64(at))
	if errors.Is(err, readmodels.ErrNotBuilt) {
		return 0, false, nil
	}
	return uint64(max(known, 0)), known >= 0 && err == nil, err
}

// At returns the tree over the events up to a position. It waits until the tree has them.
func (t *Tree) At(ctx context.Context, at event.Position) (tlog.Tree, error) {
	index, err := readmodels.Complete(func(seen *readmodels.At) (int64, error) {
		return readmodels.Row(ctx, t.Reader.From(seen.After(at), "audit"), nil, pgx.RowTo[int64],
			`select coalesce((select index from audit.leaf where position = $1), $1 - 1)`, int64(at))
	})
	if err != nil {
		return tlog.Tree{}, err
	}
	return tlog.TreeAt(ctx, t, uint64(index+1))
}

func (t *Tree) number(ctx context.Context, sql string, args ...any) (int64, error) {
	return readmodels.Row(ctx, t.Reader.From(new(readmodels.At).AsKnownAt(0), "audit"), nil, pgx.RowTo[int64], sql, args...)
}
