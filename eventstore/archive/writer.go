package archive

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/uuid"

	"bahi/domain/event"
	"bahi/eventstore"
)

// Limits of a segment, in events and in bytes of text.
const (
	SegmentEvents = 100_000
	SegmentBytes  = 64 << 20
)

// Log is the log to archive.
type Log interface {
	ID() uuid.UUID
	ReadAll(ctx context.Context, from event.Position, direction eventstore.Direction) iter.Seq2[event.Stored, error]
}

// Options has the options of a write.
type Options struct {
	UpTo  event.Position    // the last position to archive, which the log must have
	Files map[string][]byte // further files by name
	Plain bool              // do not compress segments

	Program string    // version of the program
	At      time.Time // the current time

	Checkpoints [][]byte // all signed checkpoints of the log, for Append too; those beyond UpTo are skipped
	PublicKeys  []string // public keys of the checkpoints

	SegmentEvents uint64 // 0: [SegmentEvents]
	SegmentBytes  int64  // 0: [SegmentBytes]

	Progress func(done, total event.Position) // in positions; may be nil
}

// Create writes a log into a folder. It creates a missing folder and refuses one with files. Its memory does not grow with the log. On an
// error it removes its files. A folder left by a killed run has no manifest and is no archive; [Append] completes it.
func Create(ctx context.Context, dir string, log Log, o Options) (Manifest, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return Manifest{}, fmt.Errorf("read the archive's folder: %w", err)
	}
	if len(entries) > 0 {
		return Manifest{}, fmt.Errorf("the folder %s is not empty: name another one", dir)
	}
	return begin(ctx, dir, log, o)
}

// begin writes a log into a folder without an archive.
func begin(ctx context.Context, dir string, log Log, o Options) (Manifest, error) {
	o, err := o.withCheckpoints(log.ID())
	if err != nil {
		return Manifest{}, err
	}
	return write(ctx, dir, log, Manifest{Format: Format, Version: Version, StoreID: log.ID()}, o)
}

// Append adds the later events of the log to an archive, in new segments. Existing files do not change. It refuses an archive whose last
// event differs from the log's at that position, and returns the difference. It fills an empty or missing folder like [Create], and
// completes that of a killed first run.
//
// If the archive has further files, the caller must give all of them again, because they must be as new as the events.
func Append(ctx context.Context, dir string, log Log, o Options) (Manifest, error) {
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) == 0 || errors.Is(err, os.ErrNotExist) {
		return Create(ctx, dir, log, o)
	}
	a, err := Open(dir)
	if errors.Is(err, errNoManifest) && isUnfinished(dir) {
		return begin(ctx, dir, log, o)
	}
	if err != nil {
		return Manifest{}, err
	}
	if err := a.continues(ctx, log, o); err != nil {
		return Manifest{}, err
	}
	if o, err = o.withCheckpoints(log.ID()); err != nil {
		return Manifest{}, err
	}
	for _, f := range a.Files {
		if _, again := o.Files[f.File]; !again {
			return Manifest{}, fmt.Errorf("the archive has %s, which would be older than its events: write that file again as well", f.File)
		}
	}
	return write(ctx, dir, log, a.Manifest, o)
}

// continues returns nil if the archive is the beginning of the log, else the difference.
func (a *Archive) continues(ctx context.Context, log Log, o Options) error {
	switch {
	case a.StoreID != log.ID():
		return fmt.Errorf("the archive is of the log %s, and this is the log %s", a.StoreID, log.ID())
	case o.UpTo < a.LastPosition:
		return fmt.Errorf("the archive goes up to position %d, and the log ends at %d: it lost its tail", a.LastPosition, o.UpTo)
	case a.LastPosition == 0:
		return nil
	}
	last, err := a.last(ctx)
	if err != nil {
		return err
	}
	for e, err := range log.ReadAll(ctx, a.LastPosition-1, eventstore.Forwards) {
		if err != nil {
			return fmt.Errorf("read position %d of the log, at which the archive ends: %w", a.LastPosition, err)
		}
		if e.Position != a.LastPosition {
			break
		}
		inLog, err := appendLine(nil, e)
		if err != nil {
			return err
		}
		inArchive, err := appendLine(nil, last)
		if err != nil {
			return err
		}
		if !bytes.Equal(inLog, inArchive) {
			return fmt.Errorf("the log is not the one that the archive was made of: at position %d the archive has %s %s@%d (id %s), and the log "+
				"has %s %s@%d (id %s)",
				last.Position, last.Type, last.Stream, last.Revision, last.ID, e.Type, e.Stream, e.Revision, e.ID)
		}
		return nil
	}
	return fmt.Errorf("the archive goes up to position %d, and the log has no event there", a.LastPosition)
}

// write writes the events after the manifest's last position, and at the end the new manifest.
func write(ctx context.Context, dir string, log Log, m Manifest, o Options) (_ Manifest, err error) {
	o.SegmentEvents = cmp.Or(o.SegmentEvents, SegmentEvents)
	o.SegmentBytes = cmp.Or(o.SegmentBytes, SegmentBytes)
	for name := range o.Files {
		if !isFileName(name) {
			return m, fmt.Errorf("%q cannot be the name of a further file", name)
		}
	}
	w := &writer{dir: dir, options: o, manifest: m}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return m, fmt.Errorf("create the archive's folder: %w", err)
	}
	if err := w.makeFolder(dir); err != nil {
		return m, err
	}
	unlock, err := lock(dir)
	if err != nil {
		return m, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.undo())
		}
		unlock()
	}()
	if m.Positions == "" {
		if err := w.markUnfinished(); err != nil {
			return m, fmt.Errorf("begin the archive: %w", err)
		}
	}
	if err := w.makeFolder(filepath.Join(dir, segmentsName)); err != nil {
		return m, err
	}
	if err := w.events(ctx, log); err != nil {
		return m, err
	}
	if err := SyncFolder(filepath.Join(dir, segmentsName)); err != nil {
		return m, fmt.Errorf("sync the archive: %w", err)
	}
	return w.finish()
}

// writer is one run over the log.
type writer struct {
	dir      string
	options  Options
	manifest Manifest
	made     []string // files to remove after an error, the oldest first
	segment  *segmentWriter
	text     []byte // text of the current line
}

// makeFolder creates a folder, which may exist.
func (w *writer) makeFolder(dir string) error {
	err := os.Mkdir(dir, 0o700)
	switch {
	case err == nil:
		w.made = append(w.made, dir)
		return nil
	case errors.Is(err, os.ErrExist):
		return nil
	default:
		return fmt.Errorf("create the archive's folder: %w", err)
	}
}

// undo removes what this run has created.
func (w *writer) undo() (err error) {
	if w.segment != nil {
		_ = w.segment.file.Close() // it is removed
	}
	for _, path := range slices.Backward(w.made) {
		if failed := os.Remove(path); !errors.Is(failed, os.ErrNotExist) {
			err = errors.Join(err, failed)
		}
	}
	return err
}

// events writes the segments.
func (w *writer) events(ctx context.Context, log Log) error {
	for e, err := range log.ReadAll(ctx, w.manifest.LastPosition, eventstore.Forwards) {
		switch {
		case err != nil:
			return fmt.Errorf("read the log: %w", err)
		case e.Position > w.options.UpTo:
			return w.endSegment()
		case e.Position != w.manifest.LastPosition+1:
			return fmt.Errorf("the log goes from position %d to %d, and positions are 1, 2, 3 …: an event is missing", w.manifest.LastPosition,
				e.Position)
		}
		if err := w.add(e); err != nil {
			return err
		}
		if w.options.Progress != nil {
			w.options.Progress(e.Position, w.options.UpTo)
		}
	}
	if w.manifest.LastPosition < w.options.UpTo {
		return fmt.Errorf("the log ends at position %d, before %d", w.manifest.LastPosition, w.options.UpTo)
	}
	return w.endSegment()
}

func (w *writer) add(e event.Stored) (err error) {
	if w.text, err = appendLine(w.text[:0], e); err != nil {
		return err
	}
	if s := w.segment; s != nil && (s.Events == w.options.SegmentEvents || s.Bytes+int64(len(w.text)) > w.options.SegmentBytes) {
		if err := w.endSegment(); err != nil {
			return err
		}
	}
	if w.segment == nil {
		if w.segment, err = newSegment(w.dir, len(w.manifest.Segments)+1, w.options.Plain); err != nil {
			return err
		}
		w.made = append(w.made, w.segment.file.Name())
	}
	if w.manifest.Events++; w.manifest.Events == 1 {
		w.manifest.FirstPosition = e.Position
	}
	w.manifest.LastPosition = e.Position
	return w.segment.add(e.Position, w.text)
}

func (w *writer) endSegment() error {
	if w.segment == nil {
		return nil
	}
	s, err := w.segment.finish()
	w.segment = nil
	w.manifest.Segments = append(w.manifest.Segments, s)
	return err
}

// finish writes the further files and the manifest.
func (w *writer) finish() (Manifest, error) {
	m := w.manifest
	m.Positions = dense
	m.Program, m.WrittenAt = w.options.Program, w.options.At.UTC()
	m.Files = nil
	for _, name := range slices.Sorted(maps.Keys(w.options.Files)) {
		text := w.options.Files[name]
		if _, err := os.Lstat(filepath.Join(w.dir, name)); errors.Is(err, os.ErrNotExist) {
			w.made = append(w.made, filepath.Join(w.dir, name))
		}
		if err := Replace(w.dir, name, text); err != nil {
			return m, err
		}
		sum := sha256.Sum256(text)
		m.Files = append(m.Files, File{File: name, Bytes: int64(len(text)), SHA256: hex.EncodeToString(sum[:])})
	}
	if err := m.write(w.dir); err != nil {
		return m, err
	}
	_ = os.Remove(filepath.Join(w.dir, unfinishedName)) // meaningless next to a manifest
	return m, nil
}
