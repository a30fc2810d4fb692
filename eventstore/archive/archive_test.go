package archive

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
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
)

// text is a log that is all in memory.
type text struct {
	id     uuid.UUID
	events []event.Stored
	fails  error // at the end
}

func (l *text) ID() uuid.UUID { return l.id }

func (l *text) ReadAll(_ context.Context, from event.Position, _ eventstore.Direction) iter.Seq2[event.Stored, error] {
	return func(yield func(event.Stored, error) bool) {
		for _, e := range l.events[min(int(from), len(l.events)):] {
			if !yield(e, nil) {
				return
			}
		}
		if l.fails != nil {
			yield(event.Stored{}, l.fails)
		}
	}
}

func (l *text) head() event.Position { return event.Position(len(l.events)) }

var began = time.Date(2026, 11, 21, 18, 0, 0, 123456000, time.UTC)

// logOf is a log with n events in a few streams.
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

// create archives a log into a folder of its own.
func create(t testing.TB, l *text) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "archive")
	_, err := Create(t.Context(), dir, l, l.options())
	require.NoError(t, err)
	return dir
}

// read answers what an archive holds, as far as it is whole.
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

// files are an archive's, by name.
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

// unpack answers the text of a segment, as zstdcat does.
func unpack(t testing.TB, dir string, n int) string {
	t.Helper()
	packed, err := os.ReadFile(filepath.Join(dir, segmentName(n)))
	require.NoError(t, err)
	d, err := zstd.NewReader(nil)
	require.NoError(t, err)
	defer d.Close()
	plain, err := d.DecodeAll(packed, nil)
	require.NoError(t, err)
	return string(plain)
}

func TestAnArchiveHoldsTheLogAndNothingElse(t *testing.T) {
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
	require.EqualValues(t, 1, m.FirstPosition)
	require.EqualValues(t, 10, m.LastPosition)
	require.Equal(t, l.id, m.StoreID)
	require.Equal(t, []uint64{4, 4, 2}, []uint64{m.Segments[0].Events, m.Segments[1].Events, m.Segments[2].Events})
	first := unpack(t, dir, 1)
	sum := sha256.Sum256([]byte(first))
	require.Equal(t, hex.EncodeToString(sum[:]), m.Segments[0].SHA256)
	require.Equal(t, `{"position":1,"stream":"bank-0","revision":0,"id":"`+l.events[0].ID.String()+`","type":"BankRowAdded",`+
		`"recorded_at":"2026-11-21T18:00:00.123456Z","data":"{\"amount\":0.5,\"description\":\"Bill 0\"}","meta":"{\"schema\":1}"}`, strings.Split(first, "\n")[0])
	require.Equal(t, all, files(t, create(t, l)), "the same log gives the same files")
}

func TestAnEmptyLogIsAnArchiveToo(t *testing.T) {
	t.Parallel()
	dir := create(t, logOf(0))
	got, err := read(t.Context(), dir)
	require.NoError(t, err)
	require.Empty(t, got)
	l := logOf(3)
	m, err := Append(t.Context(), dir, l, l.options())
	require.NoError(t, err)
	require.EqualValues(t, 3, m.Events)
	got, err = read(t.Context(), dir)
	require.NoError(t, err)
	require.Equal(t, l.events, got)
}

// anyJSON is JSON in whichever form somebody may have appended it.
func anyJSON(t *rapid.T) []byte {
	value := rapid.OneOf(
		rapid.SampledFrom([]string{"{}", "[ ]", "null", "1.10", "-0", "1e400", `"\u0000"`, "{\n\t\"b\":1,\r\n \"b\": 2}", `"\ud800"`, "\"\u2028<&>\u007f\""}),
		rapid.Custom(func(t *rapid.T) string {
			text, _ := json.Marshal(rapid.String().Draw(t, "text"))
			return string(text)
		}),
		rapid.Custom(func(t *rapid.T) string { // a text that JSON takes as it is
			return `"` + strings.NewReplacer(`"`, "", `\`, "").Replace(rapid.StringMatching(`[^\x00-\x1f]*`).Draw(t, "plain")) + `"`
		}),
	).Draw(t, "value")
	space := rapid.SampledFrom([]string{"", " ", "\n", "\r\n\t"})
	return []byte(space.Draw(t, "before") + value + space.Draw(t, "behind"))
}

func TestEveryEventIsReadAsItWasWritten(t *testing.T) {
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
		// In one go, or in as many as somebody likes: the text is the same.
		for o.UpTo = 0; ; o.UpTo += event.Position(rapid.IntRange(1, 12).Draw(t, "more")) {
			o.UpTo = min(o.UpTo, l.head())
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

func TestAFolderThatIsNotEmptyIsLeftAlone(t *testing.T) {
	t.Parallel()
	l, dir := logOf(5), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "letter.txt"), []byte("dear"), 0o600))
	_, err := Create(t.Context(), dir, l, l.options())
	require.EqualError(t, err, "the folder "+dir+" is not empty: name another one")
	_, err = Append(t.Context(), dir, l, l.options())
	require.EqualError(t, err, dir+" is no archive, or one that was not finished: it has no manifest.json")
	require.Equal(t, map[string]string{"letter.txt": "dear"}, files(t, dir))
}

func TestAnExportThatFailsLeavesNothing(t *testing.T) {
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
	require.Equal(t, before, files(t, dir), "what was there stays")
}

func TestAnArchiveGoesOnWithItsOwnLogOnly(t *testing.T) {
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
			require.Equal(t, content, after[name], "no segment that may have been copied elsewhere is touched")
		}
	}
}

func TestFurtherFilesStayAsNewAsTheEvents(t *testing.T) {
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
	require.EqualError(t, err, "the archive is broken: keys.json: it is not what the manifest says: it was changed")
	require.NoError(t, os.Remove(filepath.Join(dir, "keys.json")))
	_, _, err = a.File("keys.json")
	require.EqualError(t, err, "the archive is broken: keys.json: it is missing")

	for _, name := range []string{"manifest.json", "segments", "../out", "a/b", ".", "", "/etc/passwd"} {
		o.Files = map[string][]byte{name: nil}
		_, err = Create(t.Context(), filepath.Join(t.TempDir(), "a"), l, o)
		require.ErrorContains(t, err, "cannot be the name of a further file", name)
	}
}

func TestTwoDoNotWriteToOneArchive(t *testing.T) {
	t.Parallel()
	l := logOf(5)
	dir := create(t, l)
	unlock, err := lock(dir)
	require.NoError(t, err)
	_, err = Append(t.Context(), dir, l, l.options())
	require.ErrorContains(t, err, "somebody else writes to the archive")
	unlock()
	_, err = Append(t.Context(), dir, l, l.options())
	require.NoError(t, err)
}

// forge packs another text as a segment; with its hashes in the manifest if honest is false, as somebody does
// who hopes that only hashes are looked at.
func forge(t testing.TB, dir string, n int, plain string, honest bool) {
	t.Helper()
	var packed bytes.Buffer
	e, err := zstd.NewWriter(&packed)
	require.NoError(t, err)
	_, err = e.Write([]byte(plain))
	require.NoError(t, err)
	require.NoError(t, e.Close())
	require.NoError(t, os.WriteFile(filepath.Join(dir, segmentName(n)), packed.Bytes(), 0o600))
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

// rewrite changes the manifest, whatever it then says.
func rewrite(t testing.TB, dir string, change func(*Manifest)) {
	t.Helper()
	path := filepath.Join(dir, manifestName)
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	var m Manifest
	require.NoError(t, json.Unmarshal(content, &m))
	change(&m)
	content, err = json.Marshal(m)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, content, 0o600))
}

func TestWhatWasDoneToAnArchiveIsFoundAndNamed(t *testing.T) {
	t.Parallel()
	lines := func(change func(lines []string) []string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			all := strings.SplitAfter(unpack(t, dir, 2), "\n")
			forge(t, dir, 2, strings.Join(change(all[:len(all)-1]), ""), false)
		}
	}
	line := func(change func(string) string) func(t *testing.T, dir string) {
		return lines(func(all []string) []string { all[1] = change(all[1]); return all })
	}
	segment := func(change func(content []byte) []byte) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			path := filepath.Join(dir, segmentName(2))
			content, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path, change(content), 0o600))
		}
	}
	manifest := func(change func(*Manifest)) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) { rewrite(t, dir, change) }
	}
	const at = "segments/00000002.ndjson.zst"
	for what, c := range map[string]struct {
		tamper func(t *testing.T, dir string)
		found  string
	}{
		"a payload": {
			func(t *testing.T, dir string) {
				forge(t, dir, 2, strings.Replace(unpack(t, dir, 2), "Bill 5", "Bill 9", 1), true)
			}, at + ": its text is not what the manifest says"},
		"the file, not its text": {func(t *testing.T, dir string) {
			forge(t, dir, 2, unpack(t, dir, 2), true)
			segment(func(c []byte) []byte { return append(c, 0) })(t, dir)
		}, at + ": "},
		"a bit of the file":       {segment(func(c []byte) []byte { c[len(c)/2] ^= 4; return c }), at},
		"a file that was cut off": {segment(func(c []byte) []byte { return c[:len(c)-7] }), at + ": it was cut off"},
		"an empty file":           {segment(func([]byte) []byte { return nil }), at + ": it was cut off"},
		"bytes behind the end":    {segment(func(c []byte) []byte { return append(c, c...) }), at + ": it has more than 4 lines"},
		"a missing segment":       {func(t *testing.T, dir string) { require.NoError(t, os.Remove(filepath.Join(dir, at))) }, at + ": it is missing"},
		"another segment's file": {func(t *testing.T, dir string) {
			require.NoError(t, os.Rename(filepath.Join(dir, segmentName(1)), filepath.Join(dir, at)))
		}, "segments/00000001.ndjson.zst: it is missing"},
		"two lines change places":   {lines(func(all []string) []string { all[1], all[2] = all[2], all[1]; return all }), at + ", line 2 (position 6): it has position 7, and follows position 5"},
		"a line twice":              {lines(func(all []string) []string { return slices.Insert(all[:3], 1, all[1]) }), at + ", line 3 (position 7): it has position 6, and follows position 6"},
		"a line too few":            {lines(func(all []string) []string { return all[:3] }), at + ", line 4 (position 8): the text ends here, and ought to have 4 lines"},
		"a line too many":           {lines(func(all []string) []string { return append(all, all[3]) }), at + ": it has more than 4 lines"},
		"half a line":               {lines(func(all []string) []string { all[3] = all[3][:20]; return all }), at + ", line 4 (position 8): the text ends here"},
		"no line break at the end":  {lines(func(all []string) []string { all[3] = strings.TrimSuffix(all[3], "\n"); return all }), at + ", line 4 (position 8): the text ends here"},
		"an earlier time":           {line(func(l string) string { return strings.Replace(l, "2026-11", "2025-11", 1) }), at + ", line 2 (position 6): it was recorded at 2025-11-21T18:00:00.123461Z, before the event before it"},
		"another form of the time":  {line(func(l string) string { return strings.Replace(l, "461Z", "461+00:00", 1) }), at + ", line 2 (position 6): recorded_at"},
		"no JSON":                   {line(func(string) string { return "{\n" }), at + ", line 2 (position 6): it is not JSON of an event"},
		"white space":               {line(func(l string) string { return " " + l }), at + ", line 2 (position 6): it is not written in the one form"},
		"a field of its own":        {line(func(l string) string { return strings.Replace(l, `{"pos`, `{"new":1,"pos`, 1) }), at + ", line 2 (position 6): it is not written in the one form"},
		"a field twice":             {line(func(l string) string { return strings.Replace(l, `,"meta"`, `,"data":"{}","meta"`, 1) }), at + ", line 2 (position 6): it is not written in the one form"},
		"a needless escape":         {line(func(l string) string { return strings.Replace(l, `Bill`, `\u0042ill`, 1) }), at + ", line 2 (position 6): it is not written in the one form"},
		"a payload that is no JSON": {line(func(l string) string { return strings.Replace(l, `"{\"schema`, `"\"schema`, 1) }), at + ", line 2 (position 6): data or meta does not hold JSON"},
		"no stream":                 {line(func(l string) string { return strings.Replace(l, `"bank-2"`, `""`, 1) }), at + ", line 2 (position 6): stream, type, id or revision is missing"},
		"no manifest":               {func(t *testing.T, dir string) { require.NoError(t, os.Remove(filepath.Join(dir, manifestName))) }, "is no archive, or one that was not finished"},
		"half a manifest":           {func(t *testing.T, dir string) { require.NoError(t, os.Truncate(filepath.Join(dir, manifestName), 99)) }, "manifest.json: it cannot be read"},
		"another format":            {manifest(func(m *Manifest) { m.Format = "zip" }), `manifest.json: its format is "zip"`},
		"a later version":           {manifest(func(m *Manifest) { m.Version = 2 }), "manifest.json: its format has version 2; this program reads version 1"},
		"no name of the log":        {manifest(func(m *Manifest) { m.StoreID = uuid.Nil }), "manifest.json: it does not name the log"},
		"the last segment left out": {manifest(func(m *Manifest) { m.Segments = m.Segments[:2] }), "manifest.json: it counts 10 events from position 1 to 10, and its segments have 8 from 1 to 8"},
		"the first one left out":    {manifest(func(m *Manifest) { m.Segments = m.Segments[1:] }), `manifest.json: segment 1 is called "segments/00000002.ndjson.zst"`},
		"a segment elsewhere":       {manifest(func(m *Manifest) { m.Segments[1].File = "../../secret" }), `manifest.json: segment 2 is called "../../secret"`},
		"a gap":                     {manifest(func(m *Manifest) { m.Segments[1].FirstPosition = 6 }), "manifest.json: segments/00000002.ndjson.zst begins at position 6, and follows position 4"},
		"another count":             {manifest(func(m *Manifest) { m.Segments[1].Events = 5 }), "manifest.json: segments/00000002.ndjson.zst has 5 events from position 5 to 8"},
		"another sum":               {manifest(func(m *Manifest) { m.Events = 11 }), "manifest.json: it counts 11 events"},
		"no hash":                   {manifest(func(m *Manifest) { m.Segments[1].SHA256 = "" }), "manifest.json: segments/00000002.ndjson.zst has no sizes and hashes"},
		"another hash":              {manifest(func(m *Manifest) { m.Segments[1].SHA256 = m.Segments[0].SHA256 }), at + ": its text is not what the manifest says"},
		"another file's hash":       {manifest(func(m *Manifest) { m.Segments[1].CompressedSHA256 = m.Segments[0].SHA256 }), at + ": the text is right, but not its file"},
		"more bytes":                {manifest(func(m *Manifest) { m.Segments[1].Bytes++ }), at + ": its text is not what the manifest says"},
		"fewer bytes":               {manifest(func(m *Manifest) { m.Segments[1].Bytes-- }), at + ": its text is not what the manifest says"},
		"a file's name":             {manifest(func(m *Manifest) { m.Files = []File{{File: "../x"}} }), `manifest.json: "../x" cannot be the name`},
		"a file without a hash":     {manifest(func(m *Manifest) { m.Files = []File{{File: "keys.json"}} }), `manifest.json: keys.json has no size and hash`},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dir := create(t, logOf(10))
			c.tamper(t, dir)
			got, err := read(t.Context(), dir)
			require.ErrorContains(t, err, c.found)
			require.LessOrEqual(t, len(got), 8, "nothing is read behind it")
		})
	}
}

func TestReadingEndsWhenNobodyWantsMore(t *testing.T) {
	t.Parallel()
	dir := create(t, logOf(10))
	a, err := Open(dir)
	require.NoError(t, err)
	n := 0
	for _, err := range a.Events(t.Context()) {
		require.NoError(t, err)
		if n++; n == 6 {
			break
		}
	}
	require.Equal(t, 6, n)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = read(ctx, dir)
	require.ErrorIs(t, err, context.Canceled)
}

// FuzzLine holds that whatever is taken for a line is written again as it was.
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
		again, err := appendLine(nil, e)
		require.NoError(t, err)
		require.Equal(t, string(l)+"\n", string(again))
	})
}
