package tlog

import (
	"crypto/sha256"
	"fmt"
	"math/bits"
)

// Tree is the state that a Merkle tree (RFC 6962) needs to grow: the roots of its perfect subtrees, the largest first. Appending costs the
// same at any size. A copy is a snapshot; the zero value is the empty tree.
//
// It is a compact range as in transparency-dev/merkle, and tests compare the two. This one has a fixed size and does not allocate, because
// the verifier appends millions of leaves.
type Tree struct {
	size  uint64
	roots [64]Hash // the first bits.OnesCount64(size) are in use
}

// NewTree returns the tree of a size with its [Tree.Hashes].
func NewTree(size uint64, hashes []Hash) (Tree, error) {
	if want := bits.OnesCount64(size); len(hashes) != want {
		return Tree{}, fmt.Errorf("a tree of %d leaves has %d hashes, not %d", size, want, len(hashes))
	}
	t := Tree{size: size}
	copy(t.roots[:], hashes)
	return t, nil
}

// Size returns the number of leaves.
func (t *Tree) Size() uint64 { return t.size }

// Hashes returns the roots of the perfect subtrees, the largest first: one for each bit set in the size.
func (t *Tree) Hashes() []Hash {
	return append([]Hash(nil), t.roots[:bits.OnesCount64(t.size)]...)
}

// Root returns the tree's root (RFC 6962, section 2.1). The root of the empty tree is the hash of no bytes.
func (t *Tree) Root() Hash {
	n := bits.OnesCount64(t.size)
	if n == 0 {
		return sha256.Sum256(nil)
	}
	root := t.roots[n-1]
	for i := n - 2; i >= 0; i-- {
		root = hashNode(&t.roots[i], &root)
	}
	return root
}

// Append adds a leaf by its hash.
func (t *Tree) Append(leaf Hash) { t.appendPerfect(0, leaf, nil) }

// appendPerfect adds a perfect tree of 2^level leaves by its root. The size must be a multiple of 2^level. If visit is not nil,
// appendPerfect calls it with each completed node, from left to right.
func (t *Tree) appendPerfect(level uint, root Hash, visit func(level uint, index uint64, hash Hash)) {
	top := bits.OnesCount64(t.size)
	index := t.size >> level
	t.size += 1 << level
	for ; ; level, index = level+1, index>>1 {
		if visit != nil {
			visit(level, index, root)
		}
		if index&1 == 0 {
			break
		}
		top--
		root = hashNode(&t.roots[top], &root)
	}
	t.roots[top] = root
}

// Piece is an addition to a tile: hashes to append.
type Piece struct {
	Tile   TileID
	From   int // number of hashes that the tile had before
	Hashes []byte
}

// Grow appends leaves by their hashes and returns the additions to the tiles, one per tile, by level and index.
func (t *Tree) Grow(leaves []Hash) []Piece {
	var byLevel [MaxTileLevel + 1][]Piece
	for i := range leaves {
		t.appendPerfect(0, leaves[i], func(level uint, index uint64, hash Hash) {
			if level%TileHeight != 0 {
				return
			}
			tile := TileID{Level: level / TileHeight, Index: index / TileWidth}
			pieces := byLevel[tile.Level]
			if n := len(pieces); n == 0 || pieces[n-1].Tile != tile {
				pieces = append(pieces, Piece{Tile: tile, From: int(index % TileWidth)})
			}
			last := &pieces[len(pieces)-1]
			last.Hashes = append(last.Hashes, hash[:]...)
			byLevel[tile.Level] = pieces
		})
	}
	var all []Piece
	for _, pieces := range byLevel {
		all = append(all, pieces...)
	}
	return all
}

// perfectRoot returns the root of the perfect tree over hashes, whose number is a power of two. It overwrites hashes.
func perfectRoot(hashes []Hash) Hash {
	for n := len(hashes) / 2; n > 0; n /= 2 {
		for i := range n {
			hashes[i] = hashNode(&hashes[2*i], &hashes[2*i+1])
		}
	}
	return hashes[0]
}
