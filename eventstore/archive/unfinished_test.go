package archive

import (
	"context"
	"iter"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore"
)

// killing is a log that copies the archive's folder before an event. The copy is the state that a kill would leave.
type killing struct {
	*text

	at       event.Position
	from, to string
	t        *testing.T
}

func (l killing) ReadAll(ctx context.Context, from event.Position, d eventstore.Direction) iter.Seq2[event.Stored, error] {
	return func(yield func(event.Stored, error) bool) {
		for e, err := range l.text.ReadAll(ctx, from, d) {
			if e.Position == l.at {
				require.NoError(l.t, os.CopyFS(l.to, os.DirFS(l.from)))
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// killedAt returns the folder of a first run that was killed before an event.
func killedAt(t *testing.T, l *text, o Options, at event.Position) string {
	t.Helper()
	from, to := filepath.Join(t.TempDir(), "archive"), filepath.Join(t.TempDir(), "archive")
	_, err := Create(t.Context(), from, killing{l, at, from, to, t}, o)
	require.NoError(t, err)
	require.NoFileExists(t, filepath.Join(from, unfinishedName))
	return to
}

func TestKilledFirstRunIsRepeated(t *testing.T) {
	t.Parallel()
	o := logOf(10).options()
	o.Files = map[string][]byte{"keys.json": []byte("{}"), "notes.txt": []byte("n")}
	put := func(names ...string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			for _, name := range names {
				require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("{"), 0o600))
			}
		}
	}
	for what, left := range map[string]struct {
		at   event.Position
		more func(t *testing.T, dir string)
	}{
		"before its first event":   {1, put()},
		"in its first segment":     {3, put()},
		"between two segments":     {5, put()},
		"in a further file":        {10, put(".keys.json-123")},
		"between its last files":   {10, put("keys.json")},
		"before its manifest":      {10, put("keys.json", "notes.txt")},
		"while that was written":   {10, put("keys.json", "notes.txt", ".manifest.json-9")},
		"before its segments were": {1, func(t *testing.T, dir string) { require.NoError(t, os.RemoveAll(filepath.Join(dir, segmentsName))) }},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dir := killedAt(t, logOf(10), o, left.at)
			left.more(t, dir)
			_, err := Open(dir)
			require.ErrorIs(t, err, errNoManifest)
			_, err = Create(t.Context(), dir, logOf(10), o)
			require.ErrorContains(t, err, "is not empty")

			l := logOf(12)
			for _, plain := range []bool{false, true} { // whatever the options of the next run
				again, fresh := filepath.Join(t.TempDir(), "again"), filepath.Join(t.TempDir(), "fresh")
				require.NoError(t, os.CopyFS(again, os.DirFS(dir)))
				o := l.options()
				o.Plain = plain
				_, err = Append(t.Context(), again, l, o)
				require.NoError(t, err)
				got, err := read(t.Context(), again)
				require.NoError(t, err)
				require.Equal(t, l.events, got)
				_, err = Create(t.Context(), fresh, l, o)
				require.NoError(t, err)
				require.Equal(t, files(t, fresh), files(t, again), "no leftovers")
			}
		})
	}
}

func TestOnlyLeftoversOfAKilledRunAreOverwritten(t *testing.T) {
	t.Parallel()
	l := logOf(5)
	whole := create(t, l)
	require.NoError(t, os.Remove(filepath.Join(whole, manifestName)))
	before := files(t, whole)
	_, err := Append(t.Context(), whole, l, l.options())
	require.EqualError(t, err, whole+" is no archive, or one that was not finished: it has no manifest.json")
	require.Equal(t, before, files(t, whole), "an archive without its manifest must not be overwritten")

	left := killedAt(t, l, l.options(), 3)
	require.NoError(t, os.WriteFile(filepath.Join(left, "letter.txt"), []byte("dear"), 0o600))
	_, err = Append(t.Context(), left, l, l.options())
	require.NoError(t, err)
	require.Equal(t, "dear", files(t, left)["letter.txt"])
}

func TestKilledLaterRunIsRepeated(t *testing.T) {
	t.Parallel()
	o := logOf(5).options()
	o.Files = map[string][]byte{"keys.json": []byte("1")}
	dir := filepath.Join(t.TempDir(), "archive")
	_, err := Create(t.Context(), dir, logOf(5), o)
	require.NoError(t, err)
	// The run was killed between its last files: a segment and a file are newer than the manifest.
	require.NoError(t, os.WriteFile(filepath.Join(dir, segmentName(3, false)), []byte("half"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "keys.json"), []byte("2"), 0o600))
	l := logOf(12)
	o.UpTo, o.Files["keys.json"] = l.head(), []byte("3")
	_, err = Append(t.Context(), dir, l, o)
	require.NoError(t, err)
	got, err := read(t.Context(), dir)
	require.NoError(t, err)
	require.Equal(t, l.events, got)
}
