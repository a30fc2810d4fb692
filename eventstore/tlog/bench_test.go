package tlog

import (
	"context"
	"crypto/sha256"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
)

// benchmarked returns a log of n events of a ledger's usual sizes, with their leaves.
func benchmarked(n int) (events []event.Stored, leaves [][]byte, bytes int64) {
	events = logOf(n)
	for i := range events {
		events[i].Meta = []byte(`{"schema":1,"workspace":"0195e8a0-7c1e-7000-8000-0000000000aa",` +
			`"actor":"user:0195e8a0-7c1e-7000-8000-0000000000bb","occurred_at":"2026-11-21T18:00:00.123456Z","request_id":"01J9ZQ7W7T4V"}`)
		events[i].Data = []byte(`{"account":12,"date":"2026-11-21","in":[{"amount":1250.5,"description":"Received against bill 104"}],"out":[]}`)
		leaves = append(leaves, AppendLeaf(nil, events[i]))
		bytes += int64(len(leaves[i]))
	}
	return events, leaves, bytes
}

// BenchmarkSHA256 is the lower bound of BenchmarkVerify: it hashes the same bytes once, on one processor.
func BenchmarkSHA256(b *testing.B) {
	const n = 200_000
	_, leaves, bytes := benchmarked(n)
	b.SetBytes(bytes)
	for b.Loop() {
		for _, leaf := range leaves {
			sha256.Sum256(leaf)
		}
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkVerify compares a log in memory with a checkpoint.
func BenchmarkVerify(b *testing.B) {
	const n = 200_000
	events, _, bytes := benchmarked(n)
	kept := keptAt(events, n/2, n)
	b.SetBytes(bytes)
	b.ReportAllocs()
	for b.Loop() {
		r, err := Verify(b.Context(), each(events, nil), Evidence{Kept: kept})
		if err != nil || r.Finding != nil || r.Proven != n {
			b.Fatal(r, err)
		}
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// tileFiles reads tiles from one file per level.
type tileFiles struct{ levels []*os.File }

func (f tileFiles) ReadTiles(_ context.Context, ids []TileID) ([][]byte, error) {
	out := make([][]byte, len(ids))
	for i, id := range ids {
		out[i] = make([]byte, TileWidth*HashSize)
		n, err := f.levels[id.Level].ReadAt(out[i], int64(id.Index)*TileWidth*HashSize)
		if out[i] = out[i][:n]; n == 0 {
			return nil, err
		}
	}
	return out, nil
}

// BenchmarkProofOf10M proves one of ten million events, from tiles in files.
func BenchmarkProofOf10M(b *testing.B) {
	const n = 10_000_000
	var tree Tree
	tiles := tileFiles{}
	for level := range 3 {
		f, err := os.Create(b.TempDir() + "/" + string(rune('0'+level)))
		require.NoError(b, err)
		b.Cleanup(func() { f.Close() })
		tiles.levels = append(tiles.levels, f)
	}
	leaves := make([]Hash, 1<<16)
	for from := 0; from < n; from += len(leaves) {
		leaves = leaves[:min(len(leaves), n-from)]
		for i := range leaves {
			leaves[i] = Hash{byte(from + i), byte((from + i) >> 8), byte((from + i) >> 16)}
		}
		for _, p := range tree.Grow(leaves) {
			_, err := tiles.levels[p.Tile.Level].WriteAt(p.Hashes, (int64(p.Tile.Index)*TileWidth+int64(p.From))*HashSize)
			require.NoError(b, err)
		}
	}
	root := tree.Root()
	var index uint64
	for b.Loop() {
		index = (index + 7_654_321) % n
		hashes, err := Inclusion(b.Context(), tiles, index, n)
		if err != nil {
			b.Fatal(err)
		}
		leaf := Hash{byte(index), byte(index >> 8), byte(index >> 16)}
		if err := VerifyInclusion(leaf, index, n, hashes, root); err != nil {
			b.Fatal(err)
		}
	}
}
