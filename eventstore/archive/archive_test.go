package archive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/internal/test/worktest"
)

// text is a log in memory.
type text struct {
	id     uuid.UUID
	events []event.Stored
	fails  error // at the end
}

func (l *text) ID() uuid.UUID { return l.id }

func (l *text) ReadAll(_ context.Context, from event.Position, _ eventstore.Direction) iter.Seq2[event.Stored, error] {
	return func(yield func(event.Stored, error) bool) {
		for _, e := range l.events {
			if e.Position > from && !yield(e, nil) {
				return
			}
		}
		if l.fails != nil {
			yield(event.Stored{}, l.fails)
		}
	}
}

func (l *text) head() event.Position {
	if len(l.events) == 0 {
		return 0
	}
	return l.events[len(l.events)-1].Position
}

var began = time.Date(2026, 11, 21, 18, 0, 0, 123456000, time.UTC)

// logOf returns a log of n events in a few streams.
func logOf(n int) *text {
	l := &text{id: uuid.MustParse("0195e8a0-7c1e-7000-8000-0000000000aa")}
	revisions := map[string]int64{}
	for i := range n {
		stream := fmt.Sprintf("bank-%d", i%3)
		l.events = append(l.events, event.Stored{
			Position: event.Position(i + 1), Stream: stream, Revision: revisions[stream],
			ID: uuid.NewSHA1(l.id, []byte{byte(i), byte(i >> 8)}), Type: "BankRowAdded",
			Data: fmt.Appendf(nil, `{"amount":%d.5,"description":"Bill %d"}`, i, i), Meta: []byte(`{"schema":1}`),
			At: began.Add(time.Duration(i) * time.Microsecond),
		})
		revisions[stream]++
	}
	return l
}

var options = Options{Program: "v0-test", At: began, SegmentEvents: 4}

func (l *text) options() Options {
	o := options
	o.UpTo = l.head()
	return o
}

// create archives a log into a new folder.
func create(t testing.TB, l *text) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "audit", "archive")
	_, err := Create(t.Context(), dir, l, l.options())
	require.NoError(t, err)
	return dir
}

func createWith(t testing.TB, l *text, o Options) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "archive")
	_, err := Create(t.Context(), dir, l, o)
	require.NoError(t, err)
	return dir
}

// read returns the events of an archive.
func read(ctx context.Context, dir string) (events []event.Stored, err error) {
	a, err := Open(dir)
	if err != nil {
		return nil, err
	}
	for e, err := range a.Events(ctx) {
		if err != nil {
			return events, err
		}
		events = append(events, e)
	}
	return events, nil
}

// files returns an archive's files by name.
func files(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		all[strings.TrimPrefix(path, dir+"/")] = string(content)
		return err
	}))
	return all
}

// unpack returns the text of a segment, like zstdcat.
func unpack(t testing.TB, dir string, n int) string {
	t.Helper()
	packed := worktest.File(t, filepath.Join(dir, segmentName(n, false)))
	d, err := zstd.NewReader(nil)
	require.NoError(t, err)
	defer d.Close()
	plain, err := d.DecodeAll(packed, nil)
	require.NoError(t, err)
	return string(plain)
}

func TestArchiveHasTheLog(t *testing.T) {
	t.Parallel()
	l := logOf(10)
	dir := create(t, l)
	got, err := read(t.Context(), dir)
	require.NoError(t, err)
	require.Equal(t, l.events, got)
	all := files(t, dir)
	require.Len(t, all, 4)
	var m Manifest
	require.NoError(t, json.Unmarshal([]byte(all[manifestName]), &m))
	require.EqualValues(t, 10, m.Events)
	require.Equal(t, dense, m.Positions)
	require.EqualValues(t, 1, m.FirstPosition)
	require.EqualValues(t, 10, m.LastPosition)
	require.Equal(t, l.id, m.StoreID)
	require.Equal(t, []uint64{4, 4, 2}, []uint64{m.Segments[0].Events, m.Segments[1].Events, m.Segments[2].Events})
	first := unpack(t, dir, 1)
	sum := sha256.Sum256([]byte(first))
	require.Equal(t, hex.EncodeToString(sum[:]), m.Segments[0].SHA256)
	require.Equal(t, `{"position":1,"stream":"bank-0","revision":0,"id":"`+l.events[0].ID.String()+`","type":"BankRowAdded",`+
		`"recorded_at":"2026-11-21T18:00:00.123456Z","data":"{\"amount\":0.5,\"description\":\"Bill 0\"}","meta":"{\"schema\":1}"}`,
		strings.Split(first, "\n")[0])
	require.Equal(t, all, files(t, create(t, l)), "the same log gives the same files")
}

func TestPlainArchiveHasTheSameText(t *testing.T) {
	t.Parallel()
	l, dir := logOf(10), filepath.Join(t.TempDir(), "plain")
	o := l.options()
	o.Plain = true
	m, err := Create(t.Context(), dir, l, o)
	require.NoError(t, err)
	packed, plain := create(t, l), files(t, dir)
	for i, s := range m.Segments {
		require.Equal(t, unpack(t, packed, i+1), plain[s.File])
	}
	require.NotContains(t, plain[manifestName], "compressed")
	// zstdcat would also read what a killed run left in the other form.
	left := filepath.Join(dir, segmentName(4, false))
	require.NoError(t, os.WriteFile(left, []byte("half"), 0o600))
	l = logOf(12)
	o.UpTo = l.head()
	_, err = Append(t.Context(), dir, l, o)
	require.NoError(t, err)
	require.NoFileExists(t, left)
}

// anyJSON generates JSON in any form.
func anyJSON(t *rapid.T) []byte {
	value := rapid.OneOf(
		rapid.SampledFrom([]string{"{}", "[ ]", "null", "1.10", "-0", "1e400", `"\u0000"`, "{\n\t\"b\":1,\r\n \"b\": 2}", `"\ud800"`,
			"\"\u2028<&>\u007f\""}),
		rapid.Custom(func(t *rapid.T) string {
			text, _ := json.Marshal(rapid.String().Draw(t, "text"))
			return string(text)
		}),
		rapid.Custom(func(t *rapid.T) string { // JSON accepts it unescaped
			return `"` + strings.NewReplacer(`"`, "", `\`, "").Replace(rapid.StringMatching(`[^\x00-\x1f]*`).Draw(t, "plain")) + `"`
		}),
	).Draw(t, "value")
	space := rapid.SampledFrom([]string{"", " ", "\n", "\r\n\t"})
	return []byte(space.Draw(t, "before") + value + space.Draw(t, "behind"))
}

func TestEventsRoundTrip(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	var n int
	rapid.Check(t, func(t *rapid.T) {
		l := logOf(rapid.IntRange(0, 12).Draw(t, "events"))
		for i := range l.events {
			e := &l.events[i]
			e.Stream = "x" + rapid.String().Draw(t, "stream")
			e.Type = "X" + rapid.String().Draw(t, "type")
			e.Data, e.Meta = anyJSON(t), anyJSON(t)
		}
		o := l.options()
		o.SegmentEvents = rapid.Uint64Range(1, 5).Draw(t, "segment events")
		o.SegmentBytes = rapid.Int64Range(1, 2000).Draw(t, "segment bytes")
		n++
		dir := filepath.Join(folder, strconv.Itoa(n))
		// The number of runs does not change the text.
		for some := 0; ; some += rapid.IntRange(1, 12).Draw(t, "more") {
			o.UpTo = 0
			if some = min(some, len(l.events)); some > 0 {
				o.UpTo = l.events[some-1].Position
			}
			o.Plain = rapid.Bool().Draw(t, "plain")
			_, err := Append(t.Context(), dir, l, o)
			require.NoError(t, err)
			if o.UpTo == l.head() {
				break
			}
		}
		got, err := read(t.Context(), dir)
		require.NoError(t, err)
		require.Len(t, got, len(l.events))
		for i := range got {
			require.Equal(t, l.events[i], got[i])
		}
	})
}

func TestNonEmptyFolderIsRefused(t *testing.T) {
	t.Parallel()
	l, dir := logOf(5), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "letter.txt"), []byte("dear"), 0o600))
	_, err := Create(t.Context(), dir, l, l.options())
	require.EqualError(t, err, "the folder "+dir+" is not empty: name another one")
	_, err = Append(t.Context(), dir, l, l.options())
	require.EqualError(t, err, dir+" is no archive, or one that was not finished: it has no manifest.json")
	require.Equal(t, map[string]string{"letter.txt": "dear"}, files(t, dir))
}

func TestFailedExportLeavesNothing(t *testing.T) {
	t.Parallel()
	l := logOf(6)
	l.fails = errors.New("the log went away")
	dir := filepath.Join(t.TempDir(), "archive")
	o := l.options()
	o.UpTo = 7
	o.Files = map[string][]byte{"keys.json": []byte("{}")}
	_, err := Create(t.Context(), dir, l, o)
	require.ErrorContains(t, err, "the log went away")
	require.NoDirExists(t, dir)

	l.fails = nil
	_, err = Create(t.Context(), dir, l, o)
	require.EqualError(t, err, "the log ends at position 6, before 7")
	require.NoDirExists(t, dir)

	_, err = Create(t.Context(), dir, l, l.options())
	require.NoError(t, err)
	before := files(t, dir)
	l.events, l.fails = logOf(9).events, errors.New("the log went away")
	o.UpTo = 10
	_, err = Append(t.Context(), dir, l, o)
	require.ErrorContains(t, err, "the log went away")
	require.Equal(t, before, files(t, dir), "existing files must not change")
}

func TestArchiveGrowsOnlyWithItsLog(t *testing.T) {
	t.Parallel()
	l := logOf(10)
	dir := create(t, l)
	before := files(t, dir)
	refused := func(l *text, why string) {
		t.Helper()
		_, err := Append(t.Context(), dir, l, l.options())
		require.ErrorContains(t, err, why)
		require.Equal(t, before, files(t, dir))
	}
	refused(&text{id: uuid.New(), events: l.events}, "the archive is of the log "+l.id.String()+", and this is the log")
	refused(logOf(9), "the archive goes up to position 10, and the log ends at 9: it lost its tail")
	other := logOf(12)
	other.events[9].Data = []byte(`{"amount":0}`)
	refused(other, "the log is not the one that the archive was made of: at position 10 the archive has BankRowAdded bank-0@3")

	longer := logOf(15)
	_, err := Append(t.Context(), dir, longer, longer.options())
	require.NoError(t, err)
	got, err := read(t.Context(), dir)
	require.NoError(t, err)
	require.Equal(t, longer.events, got)
	after := files(t, dir)
	for name, content := range before {
		if name != manifestName {
			require.Equal(t, content, after[name], "existing segments must not change")
		}
	}
}

func TestFurtherFilesMustBeGivenAgain(t *testing.T) {
	t.Parallel()
	l, dir := logOf(5), filepath.Join(t.TempDir(), "archive")
	o := l.options()
	o.Files = map[string][]byte{"keys.json": []byte(`{"keys":1}`)}
	_, err := Create(t.Context(), dir, l, o)
	require.NoError(t, err)
	a, err := Open(dir)
	require.NoError(t, err)
	content, found, err := a.File("keys.json")
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, `{"keys":1}`, string(content))
	_, found, err = a.File("checkpoints.txt")
	require.NoError(t, err)
	require.False(t, found)

	l = logOf(7)
	_, err = Append(t.Context(), dir, l, l.options())
	require.ErrorContains(t, err, "the archive has keys.json, which would be older than its events")
	o = l.options()
	o.Files = map[string][]byte{"keys.json": []byte(`{"keys":2}`), "checkpoints.txt": []byte("c")}
	_, err = Append(t.Context(), dir, l, o)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "keys.json"), []byte(`{"keys":3}`), 0o600))
	a, err = Open(dir)
	require.NoError(t, err)
	_, _, err = a.File("keys.json")
	require.EqualError(t, err, "the archive is broken: keys.json: it differs from the manifest: it was changed")
	require.NoError(t, os.Remove(filepath.Join(dir, "keys.json")))
	_, _, err = a.File("keys.json")
	require.EqualError(t, err, "the archive is broken: keys.json: it is missing")

	for _, name := range []string{"manifest.json", "segments", "../out", "a/b", ".", "", "/etc/passwd"} {
		o.Files = map[string][]byte{name: nil}
		_, err = Create(t.Context(), filepath.Join(t.TempDir(), "a"), l, o)
		require.ErrorContains(t, err, "cannot be the name of a further file", name)
	}
}

func TestArchiveIsLockedForWriting(t *testing.T) {
	t.Parallel()
	l := logOf(5)
	dir := create(t, l)
	unlock, err := lock(dir)
	require.NoError(t, err)
	_, err = Append(t.Context(), dir, l, l.options())
	require.ErrorContains(t, err, "another process writes to the archive")
	unlock()
	_, err = Append(t.Context(), dir, l, l.options())
	require.NoError(t, err)
}

// FuzzLine checks that every accepted line is canonical.
func FuzzLine(f *testing.F) {
	for _, e := range logOf(3).events {
		l, err := appendLine(nil, e)
		require.NoError(f, err)
		f.Add(l[:len(l)-1])
	}
	f.Add([]byte(`{"position":1}`))
	f.Fuzz(func(t *testing.T, l []byte) {
		e, err := parseLine(l)
		if err != nil {
			return
		}
		require.True(t, json.Valid(e.Data) && json.Valid(e.Meta))
		again, err := appendLine(nil, e)
		require.NoError(t, err)
		require.Equal(t, string(l)+"\n", string(again))
	})
}
