package tlog

import (
	"encoding/json"
	"math"
	"math/bits"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"github.com/transparency-dev/merkle/compact"
	"github.com/transparency-dev/merkle/rfc6962"
	"github.com/transparency-dev/merkle/testonly"
	"pgregory.net/rapid"

	"bahi/domain/event"
)

func TestTreeHasTheRootsOfThePublishedVectors(t *testing.T) {
	t.Parallel()
	var tree Tree
	for size, root := range testonly.RootHashes() {
		require.EqualValues(t, size, tree.Size())
		require.Equal(t, Hash(root), tree.Root(), "size %d", size)
		if size < len(testonly.LeafInputs()) {
			leaf := Hash(rfc6962.DefaultHasher.HashLeaf(testonly.LeafInputs()[size]))
			require.Equal(t, Hash(testonly.NodeHashes()[0][size]), leaf)
			tree.Append(leaf)
		}
	}
}

// A tree equals the compact range of transparency-dev/merkle, whatever the steps of its growth.
func TestTreeEqualsTheLibrarysCompactRange(t *testing.T) {
	t.Parallel()
	factory := &compact.RangeFactory{Hash: rfc6962.DefaultHasher.HashChildren}
	rapid.Check(t, func(t *rapid.T) {
		leaves := leavesOf(rapid.IntRange(0, 1500).Draw(t, "leaves"))
		var tree Tree
		want := factory.NewEmptyRange(0)
		for from := 0; from < len(leaves); {
			to := min(len(leaves), from+rapid.IntRange(1, 600).Draw(t, "batch"))
			for _, leaf := range leaves[from:to] {
				require.NoError(t, want.Append(leaf[:], nil))
			}
			switch rapid.IntRange(0, 2).Draw(t, "how") {
			case 0:
				tree.Grow(leaves[from:to])
			case 1:
				for _, leaf := range leaves[from:to] {
					tree.Append(leaf)
				}
			case 2:
				for at := from; at < to; { // the largest perfect tree that fits
					level := uint(bits.TrailingZeros64(uint64(at | 1<<12)))
					for 1<<level > to-at {
						level--
					}
					tree.appendPerfect(level, perfectRoot(slices.Clone(leaves[at:at+1<<level])), nil)
					at += 1 << level
				}
			}
			from = to
			again, err := NewTree(tree.Size(), tree.Hashes())
			require.NoError(t, err)
			require.Equal(t, tree.Root(), again.Root())
			tree = again
		}
		require.Equal(t, want.End(), tree.Size())
		require.Len(t, tree.Hashes(), len(want.Hashes()))
		for i, h := range want.Hashes() {
			require.Equal(t, Hash(h), tree.Hashes()[i])
		}
		if root, err := want.GetRootHash(nil); root != nil {
			require.NoError(t, err)
			require.Equal(t, Hash(root), tree.Root())
		}
	})
}

func TestTreeRefusesHashesOfAnotherSize(t *testing.T) {
	t.Parallel()
	_, err := NewTree(5, leavesOf(3))
	require.EqualError(t, err, "a tree of 5 leaves has 2 hashes, not 3")
}

// Proofs at random indexes and sizes, from tiles written in random pieces, hold for their claim and for nothing else.
func TestProofsFromTilesHold(t *testing.T) {
	t.Parallel()
	const most = 70_000          // three levels of tiles
	leaves := leavesOf(most + 1) // the last one is in no tree
	rapid.Check(t, func(rt *rapid.T) {
		size := rapid.OneOf(rapid.IntRange(1, 5000), rapid.IntRange(1, 600),
			rapid.SampledFrom([]int{255, 256, 257, 511, 512, 513, 768, 65535, 65536, 65537, most})).Draw(rt, "leaves")
		tiles := &memory{}
		var tree Tree
		roots := map[uint64]Hash{}
		for from := 0; from < size; {
			to := min(size, from+rapid.IntRange(1, 30_000).Draw(rt, "batch"))
			tiles.add(t, tree.Grow(leaves[from:to]))
			roots[tree.Size()] = tree.Root()
			from = to
		}
		index := rapid.Uint64Range(0, uint64(size-1)).Draw(rt, "index")
		older := rapid.Uint64Range(index+1, uint64(size)).Draw(rt, "older")
		at, err := TreeAt(t.Context(), tiles, older)
		require.NoError(rt, err)
		if known, ok := roots[older]; ok {
			require.Equal(rt, known, at.Root())
		}
		tiles.reads = 0
		hashes, err := Inclusion(t.Context(), tiles, index, older)
		require.NoError(rt, err)
		require.LessOrEqual(rt, tiles.reads, 1)
		require.NoError(rt, VerifyInclusion(leaves[index], index, older, hashes, at.Root()))
		require.Error(rt, VerifyInclusion(leaves[most], index, older, hashes, at.Root()))
		require.Error(rt, VerifyInclusion(leaves[index], index, older, append(hashes, Hash{}), at.Root()))

		hashes, err = Consistency(t.Context(), tiles, older, uint64(size))
		require.NoError(rt, err)
		require.NoError(rt, VerifyConsistency(older, uint64(size), hashes, at.Root(), tree.Root()))
		if older < uint64(size) {
			require.Error(rt, VerifyConsistency(older, uint64(size), hashes, tree.Root(), tree.Root()))
			require.Error(rt, VerifyConsistency(older, uint64(size), hashes, at.Root(), at.Root()))
		}
	})
}

func TestImpossibleProofsFail(t *testing.T) {
	t.Parallel()
	tiles, tree := &memory{}, Tree{}
	tiles.add(t, tree.Grow(leavesOf(300)))
	_, err := Inclusion(t.Context(), tiles, 300, 300)
	require.ErrorContains(t, err, "prove leaf 300 in 300")
	_, err = Consistency(t.Context(), tiles, 5, 4)
	require.ErrorContains(t, err, "prove that 5 leads to 4")
	_, err = Inclusion(t.Context(), tiles, 300, 400)
	require.ErrorContains(t, err, "tile 1 of level 0 has 44 hashes, and the proof needs")
	delete(tiles.tiles, TileID{Level: 0, Index: 0})
	_, err = Inclusion(t.Context(), tiles, 3, 300)
	require.ErrorContains(t, err, "tile 0 of level 0 has 0 hashes, and the proof needs")

	hashes, err := Consistency(t.Context(), tiles, 0, 300)
	require.NoError(t, err)
	require.Empty(t, hashes)
	require.NoError(t, VerifyConsistency(0, 300, nil, Hash{}, tree.Root()))
	require.Error(t, VerifyConsistency(0, 300, []Hash{{}}, Hash{}, tree.Root()))
}

func anyEvent(t *rapid.T) event.Stored {
	bytes := rapid.SliceOfN(rapid.Byte(), 0, 300)
	return event.Stored{
		Position: event.Position(rapid.Uint64().Draw(t, "position")), Stream: rapid.String().Draw(t, "stream"),
		Revision: rapid.Int64Range(0, math.MaxInt64).Draw(t, "revision"),
		ID:       uuid.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id")), Type: rapid.String().Draw(t, "type"),
		At:   time.UnixMicro(rapid.Int64Range(-1<<50, 1<<60).Draw(t, "at")).UTC(),
		Meta: bytes.Draw(t, "meta"), Data: bytes.Draw(t, "data"),
	}
}

func TestLeafRoundTrips(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		e := anyEvent(t)
		leaf := appendLeaf(nil, e)
		got, err := parseLeaf(leaf)
		require.NoError(t, err)
		require.Equal(t, e, got)
		require.Equal(t, Hash(rfc6962.DefaultHasher.HashLeaf(leaf)), LeafHash(e))
		_, err = parseLeaf(append(leaf, 0))
		require.Error(t, err)
		_, err = parseLeaf(leaf[:rapid.IntRange(0, len(leaf)-1).Draw(t, "cut")])
		require.Error(t, err)
	})
}

// Only equal events have equal leaves: no byte can move from one field to the next.
func TestDifferentEventsHaveDifferentLeaves(t *testing.T) {
	t.Parallel()
	e := logOf(1)[0]
	seen := map[string]string{string(appendLeaf(nil, e)): "the event"}
	for part, change := range map[string]func(*event.Stored){
		"position": func(e *event.Stored) { e.Position++ }, "stream": func(e *event.Stored) { e.Stream += "B" },
		"revision": func(e *event.Stored) { e.Revision++ },
		"id":       func(e *event.Stored) { e.ID[15]++ }, "type": func(e *event.Stored) { e.Type = e.Type[1:] },
		"at":   func(e *event.Stored) { e.At = e.At.Add(time.Microsecond) },
		"meta": func(e *event.Stored) { e.Meta, e.Data = append(e.Meta, e.Data[0]), e.Data[1:] },
		"data": func(e *event.Stored) { e.Data = append([]byte(" "), e.Data...) },
	} {
		changed := logOf(1)[0]
		change(&changed)
		leaf := string(appendLeaf(nil, changed))
		require.NotContains(t, seen, leaf, part)
		seen[leaf] = part
	}
}

func FuzzLeaf(f *testing.F) {
	for _, e := range logOf(3) {
		f.Add(appendLeaf(nil, e))
	}
	f.Fuzz(func(t *testing.T, leaf []byte) {
		e, err := parseLeaf(leaf)
		if err != nil {
			return
		}
		require.Equal(t, leaf, appendLeaf(nil, e))
	})
}

// Other verifiers decode the whole object into a map.
func TestTheAccountOfARowIsThatOfTheDecodedObject(t *testing.T) {
	for _, object := range []string{
		`{"account":7}`, `{"account": 7 }`, `{"account":7,"Account":8}`, `{"Account":8}`, `{"account":7,"account":8}`, `{"acc\u006funt":7}`,
		`{"a":{"account":1},"account":7,"b":[{"account":2}]}`, `{"account":"7"}`, `{"account":{"account":7}}`, `{"account":null}`, `{}`, ``,
		`null`, `7`, `[{"account":7}]`, `{"account":7`, `{"account":7}x`, `{"account":7}{}`, `{"account":7},`, `{"account":07}`, `{"account":7,}`,
		`{"account" 7}`, "{\"account\":7,\"\xff\":1}", "{\"\xff\":1,\"account\":7}", ` {"account":7} `, `{"account":7e0}`,
	} {
		var members map[string]json.RawMessage
		if json.Unmarshal([]byte(object), &members) != nil {
			members = nil
		}
		require.Equal(t, string(members["account"]), accountOf([]byte(object)), object)
	}
}
