package archive

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"golang.org/x/mod/sumdb/note"

	"bahi/domain/event"
	"bahi/eventstore/tlog"
	"bahi/internal/test/worktest"
)

// seeded is a deterministic source of keys.
type seeded byte

func (s seeded) Read(to []byte) (int, error) {
	for i := range to {
		to[i] = byte(s) + byte(i)
	}
	return len(to), nil
}

func keyOf(t testing.TB, l *text, seed byte) tlog.Key {
	t.Helper()
	private, _, err := note.GenerateKey(seeded(seed), tlog.Origin(l.id))
	require.NoError(t, err)
	k, err := tlog.ParseKey(private)
	require.NoError(t, err)
	return k
}

func trust(t testing.TB, keys ...tlog.Key) tlog.Keys {
	t.Helper()
	var lines []string
	for _, k := range keys {
		lines = append(lines, k.Public())
	}
	all, err := tlog.ParseKeys(strings.Join(lines, "\n"))
	require.NoError(t, err)
	return all
}

// checkpoints returns signed checkpoints of a log at some sizes.
func (l *text) checkpoints(t testing.TB, key tlog.Key, sizes ...int) (signed [][]byte) {
	t.Helper()
	for _, n := range sizes {
		var tree tlog.Tree
		for _, e := range l.events[:n] {
			tree.Append(tlog.LeafHash(e))
		}
		c := tlog.Checkpoint{Origin: tlog.Origin(l.id), Size: tree.Size(), Root: tree.Root(), At: began.Add(time.Hour),
			Position: l.events[n-1].Position}
		text, err := c.Sign(key)
		require.NoError(t, err)
		signed = append(signed, text)
	}
	return signed
}

func kept(t testing.TB, l *text, key tlog.Key, size int) []tlog.RetainedCheckpoint {
	t.Helper()
	kept, err := trust(t, key).Collect(tlog.Origin(l.id), "kept.txt", l.checkpoints(t, key, size)[0])
	require.NoError(t, err)
	return kept
}

func verified(t testing.TB, dir string, keys tlog.Keys, kept []tlog.RetainedCheckpoint) tlog.Result {
	t.Helper()
	a, err := Open(dir)
	require.NoError(t, err)
	r, err := a.Verify(t.Context(), keys, kept, nil)
	require.NoError(t, err)
	return r
}

func TestDamageIsFoundNextToForgery(t *testing.T) {
	t.Parallel()
	l := logOf(20)
	key := keyOf(t, l, 1)
	dirOf := func() string {
		o := l.options()
		o.Checkpoints, o.PublicKeys = l.checkpoints(t, key, 4, 20), []string{key.Public()}
		dir := createWith(t, l, o)
		return dir
	}
	verify := func(dir string) *tlog.Finding {
		r := verified(t, dir, trust(t, key), nil)
		require.Equal(t, tlog.Tampered, r.Verdict())
		return r.Finding
	}
	dir := dirOf()
	forge(t, dir, 2, strings.Replace(unpack(t, dir, 2), "Bill 5", "Bill 9", 1), true)
	f := verify(dir)
	require.Equal(t, []uint64{5, 8}, []uint64{f.First, f.Last})
	require.Contains(t, f.Reason, "The archive is broken: segments/00000002.ndjson.zst: its text differs from the manifest")

	dir = dirOf()
	forge(t, dir, 1, strings.Replace(unpack(t, dir, 1), `{"position":3`, `{"position":4`, 1), false)
	require.EqualValues(t, 3, verify(dir).Last)

	for _, name := range []string{CheckpointsFile, PublicKeysFile} {
		dir = dirOf()
		require.NoError(t, os.Remove(filepath.Join(dir, name)))
		require.Contains(t, verify(dir).Reason, name+": it is missing")
	}
}

// repack replaces the text of a segment, and leaves the manifest unchanged.
func repack(t *testing.T, dir string, plain bool, level zstd.EncoderLevel, change func(string) string) {
	t.Helper()
	content := []byte(change(unpackOr(t, dir, 2, plain)))
	if !plain {
		e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(level), zstd.WithEncoderCRC(false), zstd.WithWindowSize(widest))
		require.NoError(t, err)
		content = e.EncodeAll(content, nil)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, segmentName(2, plain)), content, 0o600))
}

// unpackOr returns the text of a segment.
func unpackOr(t *testing.T, dir string, n int, plain bool) string {
	t.Helper()
	if !plain {
		return unpack(t, dir, n)
	}
	return string(worktest.File(t, filepath.Join(dir, segmentName(n, true))))
}

func TestChangedEventIsNamedInAnyPacking(t *testing.T) {
	t.Parallel()
	l := logOf(20)
	key := keyOf(t, l, 1)
	for what, change := range map[string]func(string) string{
		"its payload":   func(c string) string { return strings.Replace(c, "Bill 5", "Bill 9", 1) },
		"a longer one":  func(c string) string { return strings.Replace(c, "Bill 5", "Bill 5555", 1) },
		"a shorter one": func(c string) string { return strings.Replace(c, "Bill 5", "", 1) },
		"its position":  func(c string) string { return strings.Replace(c, `{"position":6`, `{"position":9`, 1) },
		"its form":      func(c string) string { return strings.Replace(c, `{"position":6`, `{"position": 6`, 1) },
		"it is gone":    func(c string) string { return strings.SplitAfterN(c, "\n", 2)[0] },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			find := func(plain bool, level zstd.EncoderLevel) []uint64 {
				o := l.options()
				o.Plain, o.Checkpoints, o.PublicKeys = plain, l.checkpoints(t, key, 5, 6, 20), []string{key.Public()}
				dir := createWith(t, l, o)
				repack(t, dir, plain, level, change)
				r := verified(t, dir, trust(t, key), nil)
				require.Equal(t, tlog.Tampered, r.Verdict())
				return []uint64{r.Finding.First, r.Finding.Last}
			}
			want := find(true, 0)
			require.Equal(t, []uint64{6, 6}, want)
			for _, level := range []zstd.EncoderLevel{zstd.SpeedFastest, zstd.SpeedBestCompression} {
				require.Equal(t, want, find(false, level), "%s", level)
			}
		})
	}
}

func TestCheckpointsMustBeTheLogs(t *testing.T) {
	t.Parallel()
	l, other := logOf(10), logOf(10)
	other.id = uuid.New()
	o := l.options()
	o.PublicKeys = []string{keyOf(t, l, 1).Public(), keyOf(t, other, 1).Public()}
	for _, signed := range [][][]byte{other.checkpoints(t, keyOf(t, other, 1), 5), l.checkpoints(t, keyOf(t, l, 2), 5), {[]byte("x")}} {
		o.Checkpoints = signed
		_, err := Create(t.Context(), filepath.Join(t.TempDir(), "a"), l, o)
		require.ErrorContains(t, err, "checkpoint 1 for the archive")
	}
	o.UpTo, o.Checkpoints = 6, l.checkpoints(t, keyOf(t, l, 1), 5, 6, 7)
	dir := filepath.Join(t.TempDir(), "a")
	_, err := Create(t.Context(), dir, l, o)
	require.NoError(t, err)
	a, err := Open(dir)
	require.NoError(t, err)
	own, err := a.Checkpoints(trust(t, keyOf(t, l, 1)))
	require.NoError(t, err)
	require.Len(t, own, 2, "a checkpoint newer than the events is skipped")
	require.Equal(t, tlog.SignedByKey, own[0].Trust)

	o = l.options()
	_, err = Append(t.Context(), dir, l, o)
	require.ErrorContains(t, err, "the archive has checkpoint-keys.txt, which would be older than its events")
	o.Checkpoints, o.PublicKeys = l.checkpoints(t, keyOf(t, l, 1), 5, 6, 7), []string{keyOf(t, l, 1).Public()}
	_, err = Append(t.Context(), dir, l, o)
	require.NoError(t, err)
	a, err = Open(dir)
	require.NoError(t, err)
	own, err = a.Checkpoints(tlog.Keys{})
	require.NoError(t, err)
	require.Len(t, own, 3)
	require.Equal(t, tlog.Untrusted, own[0].Trust)
}

func TestArchiveIsReadFromAZipOrTarFile(t *testing.T) {
	t.Parallel()
	l := logOf(10)
	tarred, zipped := packed(t, create(t, l))
	for _, packed := range [][]byte{zipped, tarred} {
		a, err := OpenPacked(bytes.NewReader(packed), int64(len(packed)))
		require.NoError(t, err)
		var got []event.Stored
		for e, err := range a.Events(t.Context()) {
			require.NoError(t, err)
			got = append(got, e)
		}
		require.Equal(t, l.events, got)
		for _, cut := range []int{0, 1, 2, 100, len(packed) / 2} {
			if a, err := OpenPacked(bytes.NewReader(packed[:cut]), int64(cut)); err == nil {
				_, err = a.Verify(t.Context(), tlog.Keys{}, nil, nil)
				require.NoError(t, err)
			}
		}
	}
	var empty bytes.Buffer
	require.NoError(t, tar.NewWriter(&empty).Close())
	_, err := OpenPacked(bytes.NewReader(empty.Bytes()), int64(empty.Len()))
	require.EqualError(t, err, "it is no archive, or one that was not finished: it has no manifest.json")
	_, err = OpenPacked(strings.NewReader("\x1f\x8b\x08, as of a .tar.gz"), 20)
	require.EqualError(t, err, "it is compressed by gzip: gunzip makes a tar file of it, which can be read")
	_, err = OpenPacked(strings.NewReader("PK, but no zip"), 14)
	require.ErrorContains(t, err, "it is no archive in a zip or tar file")
}
