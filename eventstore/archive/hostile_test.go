package archive

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"bahi/eventstore/tlog"
	"bahi/internal/test/worktest"
)

func TestManifestIsReadUpToTheFirstInvalidElement(t *testing.T) {
	t.Parallel()
	for _, list := range []string{"segments", "files"} {
		for _, one := range []string{`{},`, `null,`, `7,`, `{"file":"x"},`, `[],`} {
			text := `{"format":"bahi-archive","version":1,"store_id":"0195e8a0-7c1e-7000-8000-0000000000aa","` + list + `":[` +
				strings.TrimSuffix(strings.Repeat(one, 1000), ",") + `]}`
			_, err := openFS(fstest.MapFS{manifestName: {Data: []byte(text)}})
			require.ErrorContains(t, err, "the archive is broken: manifest.json", one)
		}
	}
	looked := 0
	_, err := readList([]byte("["+strings.Repeat("{},", 1000)+"{}]"), func(Segment, int) error { looked++; return io.EOF })
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, 1, looked)
	var many []string
	for i := range maxFiles + 1 {
		many = append(many, fmt.Sprintf(`{"file":"f%d","bytes":0,"sha256":"%064d"}`, i, 0))
	}
	text := `{"format":"bahi-archive","version":1,"store_id":"0195e8a0-7c1e-7000-8000-0000000000aa","files":[` + strings.Join(many, ",") + `]}`
	_, err = openFS(fstest.MapFS{manifestName: {Data: []byte(text)}})
	require.ErrorContains(t, err, `"f1000" cannot be the name of a further file, of which there are at most 1000`)
}

// zeros is a text of zeros with the hash sum.
func zeros(n int64) (sum string) {
	h := sha256.New()
	_, _ = io.CopyN(h, zero{}, n)
	return hex.EncodeToString(h.Sum(nil))
}

type zero struct{}

func (zero) Read(to []byte) (int, error) { clear(to); return len(to), nil }

func TestHugeCheckpointsAreNotRead(t *testing.T) {
	t.Parallel()
	l := logOf(3)
	dir := create(t, l)
	const big = maxSigned + 1
	rewrite(t, dir, func(m *Manifest) {
		m.Files = Files{{File: CheckpointsFile, Bytes: big, SHA256: zeros(big)}}
	})
	var zipped bytes.Buffer
	z := zip.NewWriter(&zipped)
	for name, content := range files(t, dir) {
		w, err := z.Create(name)
		require.NoError(t, err)
		_, err = io.WriteString(w, content)
		require.NoError(t, err)
	}
	w, err := z.Create(CheckpointsFile)
	require.NoError(t, err)
	_, err = io.CopyN(w, zero{}, big)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	require.Less(t, zipped.Len(), 1<<20)
	a, err := OpenPacked(bytes.NewReader(zipped.Bytes()), int64(zipped.Len()))
	require.NoError(t, err)
	r, err := a.Verify(t.Context(), tlog.Keys{}, kept(t, l, keyOf(t, l, 1), 3), nil)
	require.NoError(t, err)
	require.Equal(t, tlog.Tampered, r.Verdict())
	require.Contains(t, r.Finding.Reason, "checkpoints.txt: it is longer than")
	require.EqualValues(t, 3, r.Proven, "the log is compared with kept checkpoints nevertheless")
}

// packed returns a folder in a tar file, and in a zip file below a folder, with further empty members.
func packed(t *testing.T, dir string, also ...string) (tarred, zipped []byte) {
	t.Helper()
	var tars, zips bytes.Buffer
	tw, zw := tar.NewWriter(&tars), zip.NewWriter(&zips)
	put := func(name, content string) {
		require.NoError(t, tw.WriteHeader(&tar.Header{Name: name, Size: int64(len(content)), Mode: 0o600}))
		_, err := io.WriteString(tw, content)
		require.NoError(t, err)
		w, err := zw.Create("march/" + name)
		require.NoError(t, err)
		_, err = io.WriteString(w, content)
		require.NoError(t, err)
	}
	for name, content := range files(t, dir) {
		put(name, content)
	}
	for _, name := range also {
		put(name, "")
	}
	require.NoError(t, tw.Close())
	require.NoError(t, zw.Close())
	return tars.Bytes(), zips.Bytes()
}

func TestAmbiguousTarOrZipFileIsRefused(t *testing.T) {
	t.Parallel()
	dir := create(t, logOf(10))
	for _, twice := range []string{segmentName(2, false), "./" + segmentName(2, false), "segments/../manifest.json",
		`segments\00000001.ndjson.zst`, "../march/manifest.json"} {
		tarred, zipped := packed(t, dir, twice)
		_, err := OpenPacked(bytes.NewReader(zipped), int64(len(zipped)))
		require.ErrorContains(t, err, "is in it twice", twice)
		if !strings.ContainsAny(twice, `\`) && !strings.HasPrefix(twice, "../") {
			_, err = OpenPacked(bytes.NewReader(tarred), int64(len(tarred)))
			require.ErrorContains(t, err, "is in it twice", twice)
		}
	}
	tarred, zipped := packed(t, dir, "segments/", "segments/")
	for _, text := range [][]byte{tarred, zipped} {
		_, err := OpenPacked(bytes.NewReader(text), int64(len(text)))
		require.NoError(t, err, "folders may be in it twice")
	}
	require.True(t, sparse(&tar.Header{PAXRecords: map[string]string{"GNU.sparse.major": "1"}}))
}

// The result must state what was verified.
func TestFilesWithSeveralArchivesAreRefused(t *testing.T) {
	t.Parallel()
	all := fstest.MapFS{}
	put := func(folder string, dir string) {
		for name, content := range files(t, dir) {
			all[path.Join(folder, name)] = &fstest.MapFile{Data: []byte(content)}
		}
	}
	put("auditor/books", create(t, logOf(10)))
	open := func() (*Archive, error) { return OpenAmong(all, slices.Collect(maps.Keys(all))) }
	a, err := open()
	require.NoError(t, err)
	require.EqualValues(t, 10, a.Manifest.Events)

	put("auditor/books/old", create(t, logOf(5)))
	a, err = open()
	require.NoError(t, err, "a folder inside an archive is not a second archive")
	require.EqualValues(t, 10, a.Manifest.Events)

	put("auditor/forged", create(t, logOf(7)))
	_, err = open()
	require.EqualError(t, err, `it has several archives, such as "auditor/books" and "auditor/forged": verify them one by one`)

	put(".", create(t, logOf(3)))
	a, err = open()
	require.NoError(t, err)
	require.EqualValues(t, 3, a.Manifest.Events)
}

// docs/archive-format.md shows how to read all segments with zstdcat. That must not read more than was verified.
func TestUnlistedSegmentsAreReported(t *testing.T) {
	t.Parallel()
	l := logOf(10)
	dir := create(t, l)
	verify := func(a *Archive, err error) []string {
		require.NoError(t, err)
		r, err := a.Verify(t.Context(), tlog.Keys{}, kept(t, l, keyOf(t, l, 1), 10), nil)
		require.NoError(t, err)
		require.Equal(t, tlog.Verified, r.Verdict())
		return r.Sentences()[1:]
	}
	require.Empty(t, verify(Open(dir)))
	require.NoError(t, os.WriteFile(filepath.Join(dir, segmentsName, "00000000.ndjson.zst"), nil, 0o600))
	const told = "Not verified, and no part of the log: 1 file among the segments, which the manifest does not list. The first is " +
		"segments/00000000.ndjson.zst."
	require.Equal(t, []string{told}, verify(Open(dir)))
	tarred, _ := packed(t, dir)
	require.Equal(t, []string{told}, verify(OpenPacked(bytes.NewReader(tarred), int64(len(tarred)))))
}

// A forger who also changes the archive's checkpoints must not keep the verifier from naming the bad event.
func TestWrongCheckpointsDoNotHideTheBadEvent(t *testing.T) {
	t.Parallel()
	l := logOf(10)
	key := keyOf(t, l, 1)
	forged := logOf(10)
	forged.events[5].Revision = 7
	o := forged.options()
	o.Checkpoints, o.PublicKeys = forged.checkpoints(t, key, 4, 10), []string{key.Public()}
	dir := createWith(t, forged, o)
	path := filepath.Join(dir, CheckpointsFile)
	text := worktest.File(t, path)
	text = bytes.Replace(text, []byte("time 2026"), []byte("time 2025"), 1)
	require.NoError(t, os.WriteFile(path, text, 0o600))
	rewrite(t, dir, func(m *Manifest) {
		sum := sha256.Sum256(text)
		for i := range m.Files {
			if m.Files[i].File == CheckpointsFile {
				m.Files[i].SHA256 = hex.EncodeToString(sum[:])
			}
		}
	})
	r := verified(t, dir, trust(t, key), kept(t, l, key, 10))
	require.Equal(t, tlog.Tampered, r.Verdict())
	require.Contains(t, r.Finding.String(), "The first bad event is one of the events 4 to 6")
	require.Contains(t, r.Finding.Reason, "The archive is broken: checkpoints.txt")
}

func TestRepackedFileIsNotABadEvent(t *testing.T) {
	t.Parallel()
	l := logOf(10)
	key := keyOf(t, l, 1)
	dir := create(t, l)
	rewrite(t, dir, func(m *Manifest) { m.Segments[2].CompressedSHA256 = strings.Repeat("0", 64) })
	r := verified(t, dir, trust(t, key), kept(t, l, key, 10))
	require.Equal(t, tlog.Tampered, r.Verdict())
	require.EqualValues(t, 10, r.Proven)
	require.Zero(t, r.Finding.First)
	require.True(t, strings.HasPrefix(r.Finding.String(), "The archive is broken: segments/00000003.ndjson.zst: the text is right, but not "+
		"its file"), r.Finding.String())
}

func TestConfirmedEventsBeforeABadFileAreNotDoubted(t *testing.T) {
	t.Parallel()
	l := logOf(10)
	key := keyOf(t, l, 1)
	dir := create(t, l)
	require.NoError(t, os.Remove(filepath.Join(dir, segmentName(2, false))))
	a, err := Open(dir)
	require.NoError(t, err)
	for size, found := range map[int]string{
		4: "The first bad event is one of the events 5 to 8. The archive is broken: segments/00000002.ndjson.zst: it is missing.",
		3: "The first bad event is one of the events 5 to 8. Earlier ones may be bad too: no checkpoint confirms the events 4 to 4. The " +
			"archive is broken: ",
	} {
		r, err := a.Verify(t.Context(), trust(t, key), kept(t, l, key, size), nil)
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(r.Finding.String(), found), r.Finding.String())
	}
}
