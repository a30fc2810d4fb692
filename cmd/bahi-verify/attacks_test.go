//go:build !js

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"bahi/eventstore/archive"
	"bahi/internal/test/audittest"
	"bahi/internal/test/worktest"
)

// asDocumented compares the verifier's output for an attack with a cell of the attack's row in docs/audit-format.md: the output
// must contain the pieces of the cell in order.
func asDocumented(t *testing.T, attack string, column int, said string) {
	t.Helper()
	text := worktest.File(t, filepath.Join("..", "..", "docs", "audit-format.md"))
	_, row, found := strings.Cut(string(text), "\n| "+attack+" | ")
	require.True(t, found, "no row %q", attack)
	row, _, _ = strings.Cut(row, " |\n")
	rest, cells := said, strings.Split(row, " | ")
	for piece := range strings.SplitSeq(strings.TrimPrefix(cells[column-1], "… "), " … ") {
		_, behind, says := strings.Cut(rest, piece)
		require.True(t, says, "%s: %q is not, or not in this place, in:\n%s", attack, piece, said)
		rest = behind
	}
}

func TestChangedArchiveIsFound(t *testing.T) {
	t.Parallel()
	l := audittest.New(t, 300)
	kept := audittest.File(t, "kept.txt", l.Checkpoint(t, 300))
	const segment = "segments/00000001.ndjson.zst"
	file := func(name string, change func([]byte) []byte) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			text := worktest.File(t, filepath.Join(dir, name))
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), change(text), 0o600))
		}
	}
	hashed := func(name string, change func([]byte) []byte) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			text := change(unpacked(t, filepath.Join(dir, name)))
			packed := text
			if name == segment {
				e, err := zstd.NewWriter(nil)
				require.NoError(t, err)
				packed = e.EncodeAll(text, nil)
			}
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), packed, 0o600))
			manifest(t, dir, func(m *archive.Manifest) {
				s := &m.Segments[0]
				if name == segment {
					s.Bytes, s.SHA256, s.CompressedBytes, s.CompressedSHA256 = int64(len(text)), sum(text), int64(len(packed)), sum(packed)
				}
				for i := range m.Files {
					if m.Files[i].File == name {
						m.Files[i].Bytes, m.Files[i].SHA256 = int64(len(text)), sum(text)
					}
				}
			})
		}
	}
	for attack, do := range map[string]func(t *testing.T, dir string){
		"a byte of a segment's file": file(segment, func(text []byte) []byte { text[len(text)/2] ^= 1; return text }),
		"a segment's file cut off":   file(segment, func(text []byte) []byte { return text[:len(text)/2] }),
		"a segment's file removed":   func(t *testing.T, dir string) { require.NoError(t, os.Remove(filepath.Join(dir, segment))) },
		"a payload, and the hashes in the manifest": hashed(segment, func(text []byte) []byte {
			return bytes.Replace(text, []byte(`:149.5`), []byte(`:149.6`), 1)
		}),
		"a line twice, and the hashes in the manifest": hashed(segment, func(text []byte) []byte {
			lines := bytes.SplitAfter(text, []byte("\n"))
			return bytes.Join(slices.Insert(lines[:299], 150, lines[149]), nil)
		}),
		"two events swapped in the file, and the hashes in the manifest": hashed(segment, func(text []byte) []byte {
			lines := bytes.SplitAfter(text, []byte("\n"))
			first, second := fmt.Appendf(nil, `"position":%d`, l.Events[149].Position), fmt.Appendf(nil, `"position":%d`, l.Events[151].Position)
			lines[149], lines[151] = bytes.Replace(lines[151], second, first, 1), bytes.Replace(lines[149], first, second, 1)
			return bytes.Join(lines, nil)
		}),
		"a checkpoint's text": hashed(archive.CheckpointsFile, func(text []byte) []byte {
			return bytes.Replace(text, []byte("\nposition "), []byte("\nposition 1"), 1)
		}),
		"a number in the manifest": func(t *testing.T, dir string) { manifest(t, dir, func(m *archive.Manifest) { m.Events-- }) },
	} {
		t.Run(attack, func(t *testing.T) {
			t.Parallel()
			dir := l.Archive(t, l.Checkpoint(t, 300))
			do(t, dir)
			out, problems, status := verifyBy(t, "archive", dir, "--checkpoint", kept)
			require.Equal(t, 1, status, out+problems)
			asDocumented(t, attack, 1, out+problems)
		})
	}
}

func unpacked(t *testing.T, path string) []byte {
	t.Helper()
	text := worktest.File(t, path)
	if filepath.Ext(path) != ".zst" {
		return text
	}
	d, err := zstd.NewReader(nil)
	require.NoError(t, err)
	defer d.Close()
	text, err = d.DecodeAll(text, nil)
	require.NoError(t, err)
	return text
}

func sum(text []byte) string {
	hash := sha256.Sum256(text)
	return hex.EncodeToString(hash[:])
}

func manifest(t *testing.T, dir string, change func(*archive.Manifest)) {
	t.Helper()
	path := filepath.Join(dir, "manifest.json")
	text := worktest.File(t, path)
	var m archive.Manifest
	require.NoError(t, json.Unmarshal(text, &m))
	change(&m)
	text, err := json.Marshal(m)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, text, 0o600))
}
