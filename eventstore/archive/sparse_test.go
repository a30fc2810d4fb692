package archive

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore/audit"
)

// gaps is a log of n events with positions far apart.
func gaps(n int) *text { return logOf(n).sparse(977) }

func TestSparseLogIsArchived(t *testing.T) {
	t.Parallel()
	l, dir := gaps(0), filepath.Join(t.TempDir(), "archive")
	grow := func(n int) Manifest {
		t.Helper()
		l.events = gaps(n).events
		m, err := Append(t.Context(), dir, l, l.options())
		require.NoError(t, err)
		got, err := read(t.Context(), dir)
		require.NoError(t, err)
		require.Len(t, got, n)
		require.Equal(t, append([]event.Stored(nil), l.events...), got)
		return m
	}
	require.Equal(t, Dense, grow(0).Positions, "unknown yet")
	grow(6)
	before := files(t, dir)
	m := grow(10)
	require.Equal(t, []any{Sparse, event.Position(977), event.Position(9770), uint64(10)}, []any{m.Positions, m.FirstPosition, m.LastPosition, m.Events})
	require.Equal(t, []event.Position{977, 4 * 977, 5 * 977, 6 * 977, 7 * 977, 9770}, []event.Position{
		m.Segments[0].FirstPosition, m.Segments[0].LastPosition, m.Segments[1].FirstPosition, m.Segments[1].LastPosition, m.Segments[2].FirstPosition, m.Segments[2].LastPosition,
	})
	for name, content := range before {
		if name != manifestName {
			require.Equal(t, content, files(t, dir)[name])
		}
	}

	grown := files(t, dir)
	refused := func(o Options, why string) {
		t.Helper()
		_, err := Append(t.Context(), dir, l, o)
		require.EqualError(t, err, why)
		require.Equal(t, grown, files(t, dir))
	}
	o := l.options()
	o.Sparse = false
	refused(o, "the archive's positions have gaps, and those of this log have none")
	l.events = slices.Concat(l.events[:9], []event.Stored{{Position: 9771, Stream: "bank-0", At: time.Now()}})
	refused(l.options(), "the archive goes up to position 9770, and the log has no event there")
	_, err := Create(t.Context(), filepath.Join(t.TempDir(), "other"), l, o)
	require.EqualError(t, err, "the log goes from position 0 to 977, and its positions have no gap: an event is missing")
	l.events = slices.Concat(l.events, l.events[8:])
	_, err = Create(t.Context(), filepath.Join(t.TempDir(), "other"), l, Options{UpTo: 9771, Sparse: true})
	require.EqualError(t, err, "the log goes from position 9771 to 8793, and positions rise")
}

// A gateway serves a dense log over the protocol of sparse ones, until another program writes an event that is not part of the log.
func TestFirstGapMakesAnArchiveSparse(t *testing.T) {
	t.Parallel()
	l, dir := logOf(6), filepath.Join(t.TempDir(), "archive")
	l.gaps = true
	m, err := Create(t.Context(), dir, l, l.options())
	require.NoError(t, err)
	require.Equal(t, Dense, m.Positions)
	l.events = slices.Delete(logOf(9).events, 6, 7)
	m, err = Append(t.Context(), dir, l, l.options())
	require.NoError(t, err)
	require.Equal(t, Sparse, m.Positions)
	got, err := read(t.Context(), dir)
	require.NoError(t, err)
	require.Equal(t, l.events, got)
}

// EventStoreDB accepts any bytes from anybody, and its clock is the leader's.
func TestForeignEventsAreArchivedAsText(t *testing.T) {
	t.Parallel()
	l := gaps(5)
	l.events[2].Data, l.events[2].Meta, l.events[3].At = []byte("no JSON\x00"), []byte{}, began.Add(-time.Hour)
	got, err := read(t.Context(), create(t, l))
	require.NoError(t, err)
	require.Equal(t, l.events, got)
	l.events[2].Data = []byte{0xff}
	_, err = Create(t.Context(), filepath.Join(t.TempDir(), "archive"), l, l.options())
	require.EqualError(t, err, "position 2931: its data is not text in UTF-8")
}

func TestFaultsOfASparseArchiveAreNamed(t *testing.T) {
	t.Parallel()
	const at = "segments/00000002.ndjson.zst"
	moved := func(line int, from, to string) func(t *testing.T, dir string) {
		return lines(func(all []string) []string {
			all[line] = strings.Replace(all[line], `{"position":`+from, `{"position":`+to, 1)
			return all
		})
	}
	for what, c := range map[string]struct {
		tamper func(t *testing.T, dir string)
		found  string
	}{
		"two lines change places":       {lines(func(all []string) []string { all[1], all[2] = all[2], all[1]; return all }), at + ", line 3 (event 7): it has position 5862, and follows position 6839"},
		"a line twice":                  {lines(func(all []string) []string { return slices.Insert(all[:3], 1, all[1]) }), at + ", line 3 (event 7): it has position 5862, and follows position 5862"},
		"a line too few":                {lines(func(all []string) []string { return all[:3] }), at + ", line 4 (event 8): the text ends here, and ought to have 4 lines"},
		"a segment that begins later":   {moved(0, "4885", "4886"), at + ", line 1 (event 5): it has position 4886, and by the manifest the segment goes from position 4885 to 7816"},
		"a segment that ends earlier":   {moved(3, "7816", "7815"), at + ", line 4 (event 8): it has position 7815, and by the manifest the segment goes from position 4885 to 7816"},
		"one that ends before the last": {moved(2, "6839", "7816"), at + ", line 4 (event 8): it has position 7816, and follows position 7816"},
		"gaps that are denied":          {manifest(func(m *Manifest) { m.Positions = Dense }), "manifest.json: segments/00000001.ndjson.zst begins at position 977, and follows position 0"},
		"the last segment left out":     {manifest(func(m *Manifest) { m.Segments = m.Segments[:2] }), "manifest.json: it counts 10 events from position 977 to 9770, and its segments have 8 from 977 to 7816"},
		"segments that overlap":         {manifest(func(m *Manifest) { m.Segments[1].FirstPosition = 3908 }), "manifest.json: " + at + " begins at position 3908, and follows position 3908"},
		"more events than positions":    {manifest(func(m *Manifest) { m.Segments[1].Events = 2933 }), "manifest.json: " + at + " has 2933 events from position 4885 to 7816"},
		"more than can be counted":      {manifest(func(m *Manifest) { m.Segments[1].Events = 1<<64 - 1 }), "manifest.json: " + at + " has 18446744073709551615 events"},
		"no events":                     {manifest(func(m *Manifest) { m.Segments[1].Events = 0 }), "manifest.json: " + at + " has 0 events from position 4885 to 7816"},
		"one event at two positions":    {manifest(func(m *Manifest) { m.Segments[1].Events = 1 }), "manifest.json: " + at + " has 1 events from position 4885 to 7816"},
		"a segment that goes backwards": {manifest(func(m *Manifest) { m.Segments[1].LastPosition = 4884 }), "manifest.json: " + at + " has 4 events from position 4885 to 4884"},
		"another first position":        {manifest(func(m *Manifest) { m.FirstPosition = 1 }), "manifest.json: it counts 10 events from position 1 to 9770"},
		"an event more than there is":   {manifest(func(m *Manifest) { m.Segments[1].Events, m.Events = 5, 11 }), at + ", line 5 (event 9): the text ends here, and ought to have 5 lines"},
		"a position before the first":   {manifest(func(m *Manifest) { m.Segments[0].FirstPosition = 0 }), "manifest.json: segments/00000001.ndjson.zst begins at position 0, and follows position 0"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dir := create(t, gaps(10))
			c.tamper(t, dir)
			got, err := read(t.Context(), dir)
			require.ErrorContains(t, err, c.found)
			require.LessOrEqual(t, len(got), 8, "nothing is read after the fault")
		})
	}
}

// A forger who removes an event from the archive of a dense log may declare it sparse. A checkpoint shows that it is dense.
func TestCheckpointRefutesADeclarationOfGaps(t *testing.T) {
	t.Parallel()
	l := logOf(20)
	key := keyOf(t, l, 1)
	claimed := func(number int) *Archive {
		forged := &text{id: l.id, events: slices.Delete(slices.Clone(l.events), number-1, number), gaps: true}
		a, err := Open(create(t, forged))
		require.NoError(t, err)
		require.Equal(t, Sparse, a.Positions)
		return a
	}
	verify := func(number int, kept []audit.Kept) audit.Result {
		t.Helper()
		r, err := claimed(number).Verify(t.Context(), trust(t, key), kept, nil)
		require.NoError(t, err)
		return r
	}
	for _, number := range []int{1, 10, 19} {
		r := verify(number, kept(t, l, key, 20))
		require.Equal(t, audit.Tampered, r.Verdict())
		require.Equal(t, []uint64{uint64(number), uint64(number)}, []uint64{r.Finding.First, r.Finding.Last}, r.Finding.String())
		require.Contains(t, r.Finding.Why, "The log has no position")
	}
	// Without a checkpoint, a stream shows a gap in its middle, and the verdict says that nothing shows the loss of its newest event.
	r := verify(10, nil)
	require.Equal(t, audit.Tampered, r.Verdict())
	require.Contains(t, r.Finding.Why, "Stream bank-0 has no revision 3")
	r = verify(19, nil)
	require.Equal(t, audit.Undecided, r.Verdict())
	require.Contains(t, strings.Join(r.Sentences(), " "), "the removal of a stream's newest events leaves no trace")
}

func TestFaultsOfASparseArchiveAreCountedByEvents(t *testing.T) {
	t.Parallel()
	l := gaps(20)
	key := keyOf(t, l, 1)
	a := archived(t, l, key, 6, 20)
	segment := filepath.Join("segments", "00000003.ndjson.zst")
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, a.files))
	require.NoError(t, os.Remove(filepath.Join(dir, segment)))
	damaged, err := Open(dir)
	require.NoError(t, err)
	r, err := damaged.Verify(t.Context(), trust(t, key), nil, nil)
	require.NoError(t, err)
	require.Equal(t, []uint64{6, 9, 12}, []uint64{r.Proven, r.Finding.First, r.Finding.Last}, r.Finding.String())

	o := l.options()
	o.UpTo, o.Checkpoints, o.PublicKeys = l.events[11].Position, l.checkpoints(t, key, 6, 12, 13), []string{key.Public()}
	dir = filepath.Join(t.TempDir(), "archive")
	_, err = Create(t.Context(), dir, l, o)
	require.NoError(t, err)
	a, err = Open(dir)
	require.NoError(t, err)
	own, err := a.Checkpoints(trust(t, key))
	require.NoError(t, err)
	require.Len(t, own, 2, "a checkpoint newer than the events is skipped")
}
