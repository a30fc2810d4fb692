package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bahi/internal/test/worktest"

	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
)

// forge replaces the text of a segment. Unless honest, it also corrects the hashes in the manifest, as a careful forger does.
func forge(t testing.TB, dir string, n int, plain string, honest bool) {
	t.Helper()
	var packed bytes.Buffer
	e, err := zstd.NewWriter(&packed)
	require.NoError(t, err)
	_, err = e.Write([]byte(plain))
	require.NoError(t, err)
	require.NoError(t, e.Close())
	require.NoError(t, os.WriteFile(filepath.Join(dir, segmentName(n, false)), packed.Bytes(), 0o600))
	rewrite(t, dir, func(m *Manifest) {
		s := &m.Segments[n-1]
		sum := sha256.Sum256(packed.Bytes())
		s.CompressedBytes, s.CompressedSHA256 = int64(packed.Len()), hex.EncodeToString(sum[:])
		if !honest {
			sum = sha256.Sum256([]byte(plain))
			s.Bytes, s.SHA256 = int64(len(plain)), hex.EncodeToString(sum[:])
		}
	})
}

// rewrite changes the manifest. The result may be invalid.
func rewrite(t testing.TB, dir string, change func(*Manifest)) {
	t.Helper()
	path := filepath.Join(dir, manifestName)
	content := worktest.File(t, path)
	var m Manifest
	require.NoError(t, json.Unmarshal(content, &m))
	change(&m)
	content, err := json.Marshal(m)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, content, 0o600))
}

// lines changes the lines of the second segment, and the manifest with them.
func lines(change func(lines []string) []string) func(t *testing.T, dir string) {
	return func(t *testing.T, dir string) {
		all := strings.SplitAfter(unpack(t, dir, 2), "\n")
		forge(t, dir, 2, strings.Join(change(all[:len(all)-1]), ""), false)
	}
}

// manifest changes only the manifest.
func manifest(change func(*Manifest)) func(t *testing.T, dir string) {
	return func(t *testing.T, dir string) { rewrite(t, dir, change) }
}

func TestFaultsOfAnArchiveAreNamed(t *testing.T) {
	t.Parallel()
	line := func(change func(string) string) func(t *testing.T, dir string) {
		return lines(func(all []string) []string { all[1] = change(all[1]); return all })
	}
	segment := func(change func(content []byte) []byte) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			path := filepath.Join(dir, segmentName(2, false))
			content := worktest.File(t, path)
			require.NoError(t, os.WriteFile(path, change(content), 0o600))
		}
	}
	const at = "segments/00000002.ndjson.zst"
	plain := func(change func(string) string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			require.NoError(t, os.RemoveAll(dir))
			l := logOf(10)
			o := l.options()
			o.Plain = true
			_, err := Create(t.Context(), dir, l, o)
			require.NoError(t, err)
			path := filepath.Join(dir, segmentName(2, true))
			content := worktest.File(t, path)
			require.NoError(t, os.WriteFile(path, []byte(change(string(content))), 0o600))
		}
	}
	for what, c := range map[string]struct {
		tamper func(t *testing.T, dir string)
		found  string
	}{
		"a payload": {
			func(t *testing.T, dir string) {
				forge(t, dir, 2, strings.Replace(unpack(t, dir, 2), "Bill 5", "Bill 9", 1), true)
			}, at + ": its text differs from the manifest"},
		"a payload in a plain segment": {plain(func(c string) string { return strings.Replace(c, "Bill 5", "Bill 9", 1) }),
			"segments/00000002.ndjson: its text differs from the manifest"},
		"a plain segment called compressed": {manifest(func(m *Manifest) { m.Segments[1].File = segmentName(2, true) }), "manifest.json: " +
			"segments/00000002.ndjson is not compressed, and has sizes and hashes as if it were"},
		"the file, not its text": {func(t *testing.T, dir string) {
			forge(t, dir, 2, unpack(t, dir, 2), true)
			segment(func(c []byte) []byte { return append(c, 0) })(t, dir)
		}, at + ": "},
		"a bit of the file":       {segment(func(c []byte) []byte { c[len(c)/2] ^= 4; return c }), at},
		"a file that was cut off": {segment(func(c []byte) []byte { return c[:len(c)-7] }), at + ", line 1 (event 5): the file was cut off"},
		"bytes behind the end":    {segment(func(c []byte) []byte { return append(c, c...) }), at + ": it has more than 4 lines"},
		"a missing segment": {func(t *testing.T, dir string) { require.NoError(t, os.Remove(filepath.Join(dir, at))) },
			at + ": it is missing"},
		"two lines change places": {lines(func(all []string) []string { all[1], all[2] = all[2], all[1]; return all }),
			at + ", line 2 (event 6): it has position 7, and follows position 5"},
		"a line too few": {lines(func(all []string) []string { return all[:3] }),
			at + ", line 4 (event 8): the text ends here, and ought to have 4 lines"},
		"an earlier time": {line(func(l string) string { return strings.Replace(l, "2026-11", "2025-11", 1) }),
			at + ", line 2 (event 6): it was recorded at 2025-11-21T18:00:00.123461Z, before the previous event"},
		"another form of the time": {line(func(l string) string { return strings.Replace(l, "461Z", "461+00:00", 1) }),
			at + ", line 2 (event 6): recorded_at"},
		"no JSON": {line(func(string) string { return "{\n" }), at + ", line 2 (event 6): it is not JSON of an event"},
		"white space": {line(func(l string) string { return " " + l }),
			at + ", line 2 (event 6): it is not in the canonical form"},
		"a field twice": {line(func(l string) string { return strings.Replace(l, `,"meta"`, `,"data":"{}","meta"`, 1) }),
			at + ", line 2 (event 6): it is not in the canonical form"},
		"a payload that is no JSON": {line(func(l string) string { return strings.Replace(l, `"{\"schema`, `"\"schema`, 1) }),
			at + ", line 2 (event 6): data or meta does not hold JSON"},
		"no stream": {line(func(l string) string { return strings.Replace(l, `"bank-2"`, `""`, 1) }),
			at + ", line 2 (event 6): stream, type, id or revision is missing"},
		"no manifest": {func(t *testing.T, dir string) { require.NoError(t, os.Remove(filepath.Join(dir, manifestName))) },
			"is no archive, or one that was not finished"},
		"half a manifest": {func(t *testing.T, dir string) { require.NoError(t, os.Truncate(filepath.Join(dir, manifestName), 99)) },
			"manifest.json: invalid JSON"},
		"another format": {manifest(func(m *Manifest) { m.Format = "zip" }), `manifest.json: its format is "zip"`},
		"a later version": {manifest(func(m *Manifest) { m.Version = 2 }),
			"manifest.json: its format has version 2; this program reads version 1"},
		"positions with gaps": {manifest(func(m *Manifest) { m.Positions = "sparse" }),
			`manifest.json: its positions are "sparse", and this program reads dense ones`},
		"no name of the log": {manifest(func(m *Manifest) { m.StoreID = uuid.Nil }), "manifest.json: it does not name the log"},
		"the last segment left out": {manifest(func(m *Manifest) { m.Segments = m.Segments[:2] }), "manifest.json: it counts 10 events from " +
			"position 1 to 10, and its segments have 8 from 1 to 8"},
		"the first one left out": {manifest(func(m *Manifest) { m.Segments = m.Segments[1:] }),
			`manifest.json: segment 1 is called "segments/00000002.ndjson.zst"`},
		"a segment elsewhere": {manifest(func(m *Manifest) { m.Segments[1].File = "../../secret" }),
			`manifest.json: segment 2 is called "../../secret"`},
		"a gap": {manifest(func(m *Manifest) { m.Segments[1].FirstPosition = 6 }), "manifest.json: " +
			"segments/00000002.ndjson.zst begins at position 6, and follows position 4"},
		"another count": {manifest(func(m *Manifest) { m.Segments[1].Events = 5 }),
			"manifest.json: segments/00000002.ndjson.zst has 5 events from position 5 to 8"},
		"no hash": {manifest(func(m *Manifest) { m.Segments[1].SHA256 = "" }),
			"manifest.json: segments/00000002.ndjson.zst has no sizes and hashes"},
		"another hash": {manifest(func(m *Manifest) { m.Segments[1].SHA256 = m.Segments[0].SHA256 }),
			at + ": its text differs from the manifest"},
		"another file's hash": {manifest(func(m *Manifest) { m.Segments[1].CompressedSHA256 = m.Segments[0].SHA256 }),
			at + ": the text is right, but not its file"},
		"more bytes":    {manifest(func(m *Manifest) { m.Segments[1].Bytes++ }), at + ": its text differs from the manifest"},
		"a file's name": {manifest(func(m *Manifest) { m.Files = []File{{File: "../x"}} }), `manifest.json: "../x" cannot be the name`},
		"a file without a hash": {manifest(func(m *Manifest) { m.Files = []File{{File: "keys.json"}} }),
			`manifest.json: keys.json has no size and hash`},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dir := create(t, logOf(10))
			c.tamper(t, dir)
			got, err := read(t.Context(), dir)
			require.ErrorContains(t, err, c.found)
			require.LessOrEqual(t, len(got), 8, "nothing is read after the fault")
		})
	}
}
