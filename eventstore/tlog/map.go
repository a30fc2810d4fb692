package tlog

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

// The prefixes that distinguish the map's leaves and nodes from each other and from those of the log's tree.
const (
	mapLeafPrefix = 2
	mapNodePrefix = 3
)

// mapLabel is the beginning of each text that is hashed to a key of the map.
const mapLabel = "bahi-map/v1\n"

// ErrMapBroken reports that stored nodes of a map do not lead to its root.
var ErrMapBroken = errors.New("the map's nodes do not lead to its root")

// MapKey returns the key of an entry in the map, see [Concern].
func MapKey(entry string) Hash { return sha256.Sum256([]byte(mapLabel + entry)) }

// mapValue returns an entry's value in the map: a hash of the number of its events and the root of their leaves.
func mapValue(size uint64, root Hash) Hash {
	return sha256.Sum256(append(binary.BigEndian.AppendUint64(nil, size), root[:]...))
}

// Map is a sparse Merkle tree over keys of 256 bits; docs/audit-format.md specifies it. The zero Map is empty. A partly loaded Map has only
// the paths of the loaded keys.
type Map struct{ root *mapNode }

// mapNode is a leaf, which has a key, or a node with two subtrees. An empty subtree is nil.
type mapNode struct {
	hash        Hash
	leaf        bool
	key, value  Hash
	left, right *mapNode
	stub        bool // the subtrees are not loaded
	changed     bool // differs from the stored node; hash is not set
}

// MapNode is a stored node.
type MapNode struct {
	Path []byte // its depth in 2 bytes, then as many bits
	Leaf bool
	Key  Hash // key of a leaf
	Hash Hash // hash of a node, or value of a leaf
}

// MapNodes reads stored nodes. It omits missing ones.
type MapNodes func(ctx context.Context, paths [][]byte) ([]MapNode, error)

// side reports whether a key is on the right of a node at a depth.
func (h Hash) side(depth int) bool { return h[depth/8]>>(7-depth%8)&1 == 1 }

// pathOf returns the path of the node at a depth that leads to a key.
func pathOf(key Hash, depth int) []byte {
	path := binary.BigEndian.AppendUint16(nil, uint16(depth))
	path = append(path, key[:(depth+7)/8]...)
	if depth%8 > 0 {
		path[len(path)-1] &= 0xff << (8 - depth%8)
	}
	return path
}

func mapLeafHash(key, value *Hash) Hash {
	return sha256.Sum256(append(append([]byte{mapLeafPrefix}, key[:]...), value[:]...))
}

func mapNodeHash(left, right *Hash) Hash {
	return sha256.Sum256(append(append([]byte{mapNodePrefix}, left[:]...), right[:]...))
}

// Set gives a key a value. The key's path must be loaded.
func (m *Map) Set(key, value Hash) {
	m.root = m.root.set(0, &mapNode{leaf: true, key: key, value: value, changed: true})
}

func (n *mapNode) set(depth int, leaf *mapNode) *mapNode {
	switch {
	case n == nil:
		return leaf
	case n.leaf && n.key == leaf.key:
		leaf.changed = n.changed || n.value != leaf.value
		leaf.hash = n.hash
		return leaf
	case n.leaf: // the leaf moves down
		n.changed = true
		n = (&mapNode{}).set(depth, n)
	case n.stub:
		panic("the path of a map's key is not loaded")
	}
	n.changed = true
	if leaf.key.side(depth) {
		n.right = n.right.set(depth+1, leaf)
	} else {
		n.left = n.left.set(depth+1, leaf)
	}
	return n
}

// hashed returns the hash of a subtree; zeros for an empty one.
func (n *mapNode) hashed() Hash {
	switch {
	case n == nil:
		return Hash{}
	case !n.changed:
	case n.leaf:
		n.hash = mapLeafHash(&n.key, &n.value)
	default:
		left, right := n.left.hashed(), n.right.hashed()
		n.hash = mapNodeHash(&left, &right)
	}
	return n.hash
}

// Root returns the map's root. That of an empty map is the hash of no bytes.
func (m *Map) Root() Hash {
	if m.root == nil {
		return sha256.Sum256(nil)
	}
	return m.root.hashed()
}

// Settle returns the nodes that changed since the last call, and the root.
func (m *Map) Settle() (changed []MapNode, root Hash) {
	root = m.Root()
	var at Hash
	m.root.settle(0, &at, &changed)
	return changed, root
}

func (n *mapNode) settle(depth int, at *Hash, changed *[]MapNode) {
	if n == nil || !n.changed {
		return
	}
	n.hashed()
	n.changed = false
	if n.leaf {
		*changed = append(*changed, MapNode{Path: pathOf(*at, depth), Leaf: true, Key: n.key, Hash: n.value})
		return
	}
	*changed = append(*changed, MapNode{Path: pathOf(*at, depth), Hash: n.hash})
	n.left.settle(depth+1, at, changed)
	at[depth/8] |= 1 << (7 - depth%8)
	n.right.settle(depth+1, at, changed)
	at[depth/8] &^= 1 << (7 - depth%8)
}

// LoadMap returns the stored map of a root with the paths of some keys. It returns [ErrMapBroken] if they do not lead to the root.
func LoadMap(ctx context.Context, read MapNodes, root Hash, keys []Hash) (*Map, error) {
	type place struct {
		at    **mapNode
		depth int
		under Hash
		keys  []Hash
	}
	m := &Map{}
	level := []place{{at: &m.root, keys: keys}}
	var parents []*mapNode
	for len(level) > 0 {
		paths := make([][]byte, len(level))
		for i, p := range level {
			paths[i] = pathOf(p.under, p.depth)
		}
		found, err := read(ctx, paths)
		if err != nil {
			return nil, fmt.Errorf("read nodes of the map: %w", err)
		}
		stored := make(map[string]*mapNode, len(found))
		for _, f := range found {
			n := &mapNode{hash: f.Hash, leaf: f.Leaf, key: f.Key, value: f.Hash, stub: !f.Leaf}
			if n.leaf {
				n.hash = mapLeafHash(&n.key, &n.value)
			}
			stored[string(f.Path)] = n
		}
		var next []place
		var inner []*mapNode
		for i, p := range level {
			n := stored[string(paths[i])]
			*p.at = n
			if n == nil || n.leaf || len(p.keys) == 0 || p.depth == 8*HashSize {
				continue
			}
			n.stub = false
			left, right := place{at: &n.left, depth: p.depth + 1, under: p.under}, place{at: &n.right, depth: p.depth + 1, under: p.under}
			right.under[p.depth/8] |= 1 << (7 - p.depth%8)
			for _, k := range p.keys {
				if k.side(p.depth) {
					right.keys = append(right.keys, k)
				} else {
					left.keys = append(left.keys, k)
				}
			}
			next, inner = append(next, left, right), append(inner, n)
		}
		for _, n := range parents {
			left, right := n.left.hashed(), n.right.hashed()
			if mapNodeHash(&left, &right) != n.hash {
				return nil, ErrMapBroken
			}
		}
		level, parents = next, inner
	}
	if m.Root() != root {
		return nil, ErrMapBroken
	}
	return m, nil
}

// MapPath is the proof of a key's value in a map, or that the map lacks the key.
type MapPath struct {
	Hashes []Hash `json:"path"` // hashes of the other subtrees, from the deepest up; zeros for an empty one
	// Other is for a key that the map lacks: the key and the value of the leaf at the path's end; nil: the path ends at an empty
	// subtree.
	Other *[2]Hash `json:"other,omitempty"`
}

// Path returns the path of a loaded key.
func (m *Map) Path(key Hash) (p MapPath) {
	n := m.root
	p.Hashes = []Hash{}
	for depth := 0; n != nil && !n.leaf; depth++ {
		next, other := n.left, n.right
		if key.side(depth) {
			next, other = other, next
		}
		p.Hashes = append([]Hash{other.hashed()}, p.Hashes...)
		n = next
	}
	if n != nil && n.key != key {
		p.Other = &[2]Hash{n.key, n.value}
	}
	return p
}

// Verify returns nil if the path shows that the map with this root has the value for the key, or lacks the key if value is nil.
func (p MapPath) Verify(key Hash, value *Hash, root Hash) error {
	depth := len(p.Hashes)
	var hash Hash
	switch {
	case depth > 8*HashSize:
		return fmt.Errorf("the path has %d hashes", depth)
	case value != nil:
		hash = mapLeafHash(&key, value)
	case p.Other != nil:
		if other := p.Other[0]; other == key || !bytes.Equal(pathOf(other, depth), pathOf(key, depth)) {
			return errors.New("the path ends at a leaf that does not show that the key is not in the map")
		}
		hash = mapLeafHash(&p.Other[0], &p.Other[1])
	}
	for _, other := range p.Hashes {
		depth--
		if key.side(depth) {
			hash = mapNodeHash(&other, &hash)
		} else {
			hash = mapNodeHash(&hash, &other)
		}
	}
	if len(p.Hashes) == 0 && hash == (Hash{}) {
		hash = sha256.Sum256(nil)
	}
	if hash != root {
		return fmt.Errorf("the path leads to the root %s, and not to %s", hash, root)
	}
	return nil
}

// Compact is the state of an entry's own tree, with one hash for each bit set in its size.
type Compact struct {
	Size   uint64
	Hashes []Hash
}

// Append adds a leaf by its hash.
func (c *Compact) Append(leaf Hash) {
	for n := c.Size; n&1 == 1; n >>= 1 {
		last := len(c.Hashes) - 1
		leaf = hashNode(&c.Hashes[last], &leaf)
		c.Hashes = c.Hashes[:last]
	}
	c.Hashes = append(c.Hashes, leaf)
	c.Size++
}

// Value returns the entry's value in the map.
func (c *Compact) Value() Hash {
	t := Tree{size: c.Size}
	copy(t.roots[:bits.OnesCount64(c.Size)], c.Hashes)
	return mapValue(c.Size, t.Root())
}
