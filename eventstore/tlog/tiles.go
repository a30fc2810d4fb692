package tlog

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"

	"github.com/transparency-dev/merkle/compact"
	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
)

// The layout of C2SP tlog-tiles: a tile has up to 256 hashes, so it covers eight levels of the tree.
const (
	TileHeight   = 8
	TileWidth    = 1 << TileHeight
	MaxTileLevel = 63 / TileHeight
)

// TileID identifies a tile. Level 0 has leaf hashes; a hash at a higher level is the root of a full tile below it.
type TileID struct {
	Level uint
	Index uint64
}

// ErrIncomplete means that the tiles lack hashes of a tree of the size in question.
var ErrIncomplete = errors.New("the tree's tiles are incomplete")

// Tiles are the stored tiles of a log.
type Tiles interface {
	// ReadTiles returns the concatenated hashes of each tile, 32 bytes each. A tile may have more hashes than the tree of
	// the size in question needs. A missing tile is returned empty, without an error.
	ReadTiles(ctx context.Context, ids []TileID) ([][]byte, error)
}

// Inclusion returns the proof that the leaf at index, from 0, is in the tree of the given size (RFC 6962, section 2.1.1), from
// the leaf's sibling up. It reads the tiles that it needs at once.
func Inclusion(ctx context.Context, tiles Tiles, index, size uint64) ([]Hash, error) {
	nodes, err := proof.Inclusion(index, size)
	if err != nil {
		return nil, fmt.Errorf("prove leaf %d in %d: %w", index, size, err)
	}
	return readProof(ctx, tiles, nodes)
}

// Consistency returns the proof that the tree of size from is a prefix of the tree of size to (RFC 6962, section 2.1.2). It is empty if
// from is 0 or equals to.
func Consistency(ctx context.Context, tiles Tiles, from, to uint64) ([]Hash, error) {
	nodes, err := proof.Consistency(from, to)
	if err != nil {
		return nil, fmt.Errorf("prove that %d leads to %d: %w", from, to, err)
	}
	return readProof(ctx, tiles, nodes)
}

// TreeAt returns the tree at an earlier size.
func TreeAt(ctx context.Context, tiles Tiles, size uint64) (Tree, error) {
	hashes, err := readNodes(ctx, tiles, compact.RangeNodes(0, size, nil))
	if err != nil {
		return Tree{}, err
	}
	return NewTree(size, hashes)
}

// VerifyInclusion returns nil if the proof shows that the leaf is at index, from 0, in the tree of this size and root.
func VerifyInclusion(leaf Hash, index, size uint64, hashes []Hash, root Hash) error {
	if err := proof.VerifyInclusion(rfc6962.DefaultHasher, index, size, leaf[:], Slices(hashes), root[:]); err != nil {
		return fmt.Errorf("the proof does not show that the leaf is at index %d of %d: %w", index, size, legible(err))
	}
	return nil
}

// VerifyConsistency returns nil if the proof shows that the tree of size and root from is a prefix of the other.
func VerifyConsistency(from, to uint64, hashes []Hash, rootFrom, rootTo Hash) error {
	if from == 0 {
		if len(hashes) > 0 {
			return fmt.Errorf("the proof from the empty tree must be empty, but has %d hashes", len(hashes))
		}
		return nil
	}
	if err := proof.VerifyConsistency(rfc6962.DefaultHasher, from, to, Slices(hashes), rootFrom[:], rootTo[:]); err != nil {
		return fmt.Errorf("the proof does not show that the tree of %d leaves leads to that of %d: %w", from, to, legible(err))
	}
	return nil
}

// legible formats the roots of a mismatch in base64, as in checkpoints.
func legible(err error) error {
	if m, ok := errors.AsType[proof.RootMismatchError](err); ok {
		return fmt.Errorf("it leads to the root %s, and not to %s", base64.StdEncoding.EncodeToString(m.CalculatedRoot),
			base64.StdEncoding.EncodeToString(m.ExpectedRoot))
	}
	return err
}

func readProof(ctx context.Context, tiles Tiles, nodes proof.Nodes) ([]Hash, error) {
	hashes, err := readNodes(ctx, tiles, nodes.IDs)
	if err != nil {
		return nil, err
	}
	rehashed, err := nodes.Rehash(Slices(hashes), rfc6962.DefaultHasher.HashChildren)
	if err != nil {
		return nil, err
	}
	out := make([]Hash, len(rehashed))
	for i, h := range rehashed {
		out[i] = Hash(h)
	}
	return out, nil
}

// readNodes returns the hashes of complete nodes.
func readNodes(ctx context.Context, tiles Tiles, nodes []compact.NodeID) ([]Hash, error) {
	var ids []TileID
	for _, n := range nodes {
		if id, _, _ := place(n); !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	read, err := tiles.ReadTiles(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("read tiles of the tree: %w", err)
	}
	if len(read) != len(ids) {
		return nil, fmt.Errorf("read tiles of the tree: asked for %d, got %d", len(ids), len(read))
	}
	hashes := make([]Hash, len(nodes))
	var scratch [TileWidth]Hash
	for i, n := range nodes {
		id, from, width := place(n)
		tile := read[slices.Index(ids, id)]
		if len(tile) < (from+width)*HashSize {
			return nil, fmt.Errorf("%w: tile %d of level %d has %d hashes, and the proof needs %d", ErrIncomplete, id.Index, id.Level,
				len(tile)/HashSize, from+width)
		}
		for j := range width {
			scratch[j] = Hash(tile[(from+j)*HashSize:])
		}
		hashes[i] = perfectRoot(scratch[:width])
	}
	return hashes, nil
}

// place returns the hashes of the tile whose root is the node.
func place(n compact.NodeID) (tile TileID, from, width int) {
	above := n.Level % TileHeight
	first := n.Index << above
	return TileID{Level: n.Level / TileHeight, Index: first / TileWidth}, int(first % TileWidth), 1 << above
}

// Slices returns hashes as slices of bytes.
func Slices(hashes []Hash) [][]byte {
	out := make([][]byte, len(hashes))
	for i := range hashes {
		out[i] = hashes[i][:]
	}
	return out
}
