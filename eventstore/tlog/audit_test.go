package tlog

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"github.com/transparency-dev/merkle/rfc6962"
	"golang.org/x/mod/sumdb/note"

	"bahi/domain/event"
)

var (
	store = uuid.MustParse("0195e8a0-7c1e-7000-8000-0000000000aa")
	began = time.Date(2026, 11, 21, 18, 0, 0, 123456000, time.UTC)
)

// logOf returns a log of n events in seven streams.
func logOf(n int) []event.Stored {
	events := make([]event.Stored, n)
	revisions := map[string]int64{}
	for i := range events {
		stream := fmt.Sprintf("bankrow-%d", i%7)
		events[i] = event.Stored{
			Position: event.Position(i + 1), Stream: stream, Revision: revisions[stream],
			ID: uuid.NewSHA1(store, fmt.Append(nil, i)), Type: "BankRowEdited",
			Data: fmt.Appendf(nil, `{"amount":%d.5,"description":"Bill %d"}`, i, i),
			Meta: fmt.Appendf(nil, `{"schema":1,"actor":"user:9","occurred_at":"2026-11-21T18:00:%02dZ"}`, i%60),
			At:   began.Add(time.Duration(i) * time.Millisecond),
		}
		revisions[stream]++
	}
	return events
}

// leavesOf returns n different hashes.
func leavesOf(n int) []Hash {
	leaves := make([]Hash, n)
	for i := range leaves {
		leaves[i] = Hash(rfc6962.DefaultHasher.HashLeaf(fmt.Append(nil, i)))
	}
	return leaves
}

// treeOf returns the tree over events.
func treeOf(events []event.Stored) (t Tree) {
	for _, e := range events {
		t.Append(LeafHash(e))
	}
	return t
}

// memory has tiles in memory and counts the reads.
type memory struct {
	tiles map[TileID][]byte
	reads int
}

func (m *memory) ReadTiles(_ context.Context, ids []TileID) ([][]byte, error) {
	m.reads++
	out := make([][]byte, len(ids))
	for i, id := range ids {
		out[i] = m.tiles[id]
	}
	return out, nil
}

func (m *memory) add(t testing.TB, pieces []Piece) {
	t.Helper()
	if m.tiles == nil {
		m.tiles = map[TileID][]byte{}
	}
	for _, p := range pieces {
		require.Len(t, m.tiles[p.Tile], p.From*HashSize)
		m.tiles[p.Tile] = append(m.tiles[p.Tile], p.Hashes...)
		require.LessOrEqual(t, len(m.tiles[p.Tile]), TileWidth*HashSize)
	}
}

// seeded is a deterministic source of keys.
type seeded byte

func (s seeded) Read(to []byte) (int, error) {
	for i := range to {
		to[i] = byte(s) + byte(i)
	}
	return len(to), nil
}

// keyOf returns the log's key for a seed.
func keyOf(t testing.TB, seed byte) Key {
	t.Helper()
	text, _, err := note.GenerateKey(seeded(seed), Origin(store))
	require.NoError(t, err)
	k, err := ParseKey(text)
	require.NoError(t, err)
	return k
}

func keysOf(t testing.TB, keys ...Key) Keys {
	t.Helper()
	text := "# public keys\n\n"
	for _, k := range keys {
		text += k.Public() + "\n"
	}
	all, err := ParseKeys(text)
	require.NoError(t, err)
	require.Equal(t, len(keys), all.Len())
	return all
}

// checkpointOf returns the checkpoint of the first n events.
func checkpointOf(events []event.Stored, n int) Checkpoint {
	t := treeOf(events[:n])
	c := Checkpoint{Origin: Origin(store), Size: uint64(n), Root: t.Root(), At: began.Add(time.Duration(n) * time.Second)}
	if n > 0 {
		c.Position = events[n-1].Position
	}
	return c
}

func sign(t testing.TB, c Checkpoint, keys ...Key) []byte {
	t.Helper()
	signed, err := c.Sign(keys...)
	require.NoError(t, err)
	return signed
}
