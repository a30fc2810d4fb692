// Package auditproj stores the Merkle tree over the log in tables, and signs it. Package eventstore/tlog defines leaves,
// trees, checkpoints and proofs.
package auditproj

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"bahi/domain/event"
	"bahi/eventstore/tlog"
	"bahi/projections"
)

//go:embed tree.sql
var treeDDL string

// gather is the maximum delay of an event's leaf. Readers do not wait for leaves, and checkpoints are signed once a second. Under load, an
// entry of the map is written once per delay instead of once per event.
const gather = 500 * time.Millisecond

// Tree is the projection: a leaf for every event of any type, and the entries of the map of accounts.
var Tree = projections.Define("audit", 3, treeDDL, projections.Raw(grow)).WithBatchDelay(gather)

// grow appends the events' leaves to the tree and to the map entries of the events.
func grow(ctx context.Context, b *projections.Batch, events []event.Stored) error {
	tree, known := b.FoldState.(tlog.Tree)
	if !known {
		var err error
		if tree, err = readTree(ctx, b.Tx); err != nil {
			return err
		}
	}
	var (
		leaves = make([]tlog.Hash, len(events))
		hasher tlog.Hasher
		sparse struct{ index, position []int64 }
		batch  pgx.Batch
	)
	for i := range events {
		leaves[i] = hasher.Leaf(events[i])
		if index := tree.Size() + uint64(i); uint64(events[i].Position) != index+1 {
			sparse.index, sparse.position = append(sparse.index, int64(index)), append(sparse.position, int64(events[i].Position))
		}
	}
	if err := growEntries(ctx, b.Tx, &batch, events, leaves); err != nil {
		return err
	}
	queueTiles(&batch, tree.Grow(leaves))
	if len(sparse.index) > 0 {
		batch.Queue(`insert into leaf (index, position) select * from unnest($1::bigint[], $2::bigint[])`, sparse.index, sparse.position)
	}
	batch.Queue(`
		insert into tree (size, hashes) values ($1, $2)
		on conflict (only_row) do update set size = excluded.size, hashes = excluded.hashes`, int64(tree.Size()), joined(tree.Hashes()))
	if err := b.Tx.SendBatch(ctx, &batch).Close(); err != nil {
		return fmt.Errorf("grow the tree to %d leaves: %w", tree.Size(), err)
	}
	b.FoldState = tree
	return nil
}

// queueTiles queues the additions to the tiles, and checks each tile's resulting size.
func queueTiles(batch *pgx.Batch, pieces []tlog.Piece) {
	var (
		levels, indexes []int64
		hashes          [][]byte
		want, got       int
	)
	for _, p := range pieces {
		levels, indexes, hashes = append(levels, int64(p.Tile.Level)), append(indexes, int64(p.Tile.Index)), append(hashes, p.Hashes)
		want += p.From*tlog.HashSize + len(p.Hashes)
	}
	batch.Queue(`
		insert into tile as t (level, index, hashes) select * from unnest($1::bigint[], $2::bigint[], $3::bytea[])
		on conflict (level, index) do update set hashes = t.hashes || excluded.hashes
		returning length(hashes)`, levels, indexes, hashes).Query(func(rows pgx.Rows) error {
		var length int
		_, err := pgx.ForEachRow(rows, []any{&length}, func() error { got += length; return nil })
		if err == nil && got != want {
			err = fmt.Errorf("the tiles do not match the tree: they have %d bytes instead of %d", got, want)
		}
		return err
	})
}

// readTree reads the tree from the tables.
func readTree(ctx context.Context, tx pgx.Tx) (tlog.Tree, error) {
	var (
		size   int64
		hashes []byte
	)
	err := tx.QueryRow(ctx, `select size, hashes from tree`).Scan(&size, &hashes)
	if errors.Is(err, pgx.ErrNoRows) {
		return tlog.Tree{}, nil
	}
	if err != nil {
		return tlog.Tree{}, fmt.Errorf("read the tree: %w", err)
	}
	return tlog.NewTree(uint64(size), split(hashes))
}

func joined(hashes []tlog.Hash) []byte {
	out := make([]byte, 0, len(hashes)*tlog.HashSize)
	for _, h := range hashes {
		out = append(out, h[:]...)
	}
	return out
}

func split(text []byte) []tlog.Hash {
	hashes := make([]tlog.Hash, 0, len(text)/tlog.HashSize)
	for ; len(text) >= tlog.HashSize; text = text[tlog.HashSize:] {
		hashes = append(hashes, tlog.Hash(text))
	}
	return hashes
}
