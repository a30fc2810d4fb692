package archive

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"bahi/domain/event"
)

// Format and Version are what a manifest says of itself. The version rises with a change that an older
// reader would misread; a new field or file that it may pass over is none.
const (
	Format  = "bahi-archive"
	Version = 1
)

const (
	manifestName = "manifest.json"
	segmentsName = "segments"
)

// Manifest says what an archive holds. Nothing protects the manifest itself: who has to know that it is the
// one that was written keeps its SHA-256, or a checkpoint of the log, elsewhere.
type Manifest struct {
	Format        string         `json:"format"`
	Version       int            `json:"version"`
	StoreID       uuid.UUID      `json:"store_id"`       // which log this is
	FirstPosition event.Position `json:"first_position"` // 1; 0 in an archive of an empty log
	LastPosition  event.Position `json:"last_position"`
	Events        uint64         `json:"events"`
	Program       string         `json:"program"`    // the version of the Bahi that wrote it, or added to it last
	WrittenAt     time.Time      `json:"written_at"` // then
	Segments      []Segment      `json:"segments"`
	Files         []File         `json:"files,omitempty"` // what else belongs to it
}

// Segment is a file with a part of the log.
type Segment struct {
	File             string         `json:"file"` // segments/00000001.ndjson.zst
	Events           uint64         `json:"events"`
	FirstPosition    event.Position `json:"first_position"`
	LastPosition     event.Position `json:"last_position"`
	Bytes            int64          `json:"bytes"` // of the text
	SHA256           string         `json:"sha256"`
	CompressedBytes  int64          `json:"compressed_bytes"` // of the file
	CompressedSHA256 string         `json:"compressed_sha256"`
}

// File is another file of the archive, such as keys.json.
type File struct {
	File   string `json:"file"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// segmentName names the nth segment, from 1.
func segmentName(n int) string { return fmt.Sprintf("%s/%08d.ndjson.zst", segmentsName, n) }

// mostManifest is more than the manifest of any log that fits on a disk, in bytes.
const mostManifest = 64 << 20

// readFile reads a file, but only one byte more than it may have: it may be somebody else's.
func readFile(files fs.FS, name string, most int64) ([]byte, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	return io.ReadAll(io.LimitReader(f, most+1))
}

var errNoManifest = errors.New("no archive, or one that was not finished: it has no " + manifestName)

func readManifest(files fs.FS) (m Manifest, err error) {
	text, err := readFile(files, manifestName, mostManifest)
	if errors.Is(err, fs.ErrNotExist) {
		return m, errNoManifest
	}
	if err != nil {
		return m, fmt.Errorf("read the archive's manifest: %w", err)
	}
	if len(text) > mostManifest {
		return m, &Broken{File: manifestName, Why: fmt.Sprintf("it is longer than %d bytes", mostManifest)}
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, &Broken{File: manifestName, Why: "it cannot be read: " + err.Error()}
	}
	if why := m.complaint(); why != "" {
		return m, &Broken{File: manifestName, Why: why}
	}
	return m, nil
}

// complaint says in what the manifest contradicts itself, if it does.
func (m Manifest) complaint() string {
	switch {
	case m.Format != Format:
		return fmt.Sprintf("its format is %q, not %q", m.Format, Format)
	case m.Version != Version:
		return fmt.Sprintf("its format has version %d; this program reads version %d", m.Version, Version)
	case m.StoreID == uuid.Nil:
		return "it does not name the log"
	}
	var last event.Position
	for i, s := range m.Segments {
		switch {
		case s.File != segmentName(i+1):
			return fmt.Sprintf("segment %d is called %q, not %s", i+1, s.File, segmentName(i+1))
		case s.FirstPosition != last+1:
			return fmt.Sprintf("%s begins at position %d, and follows position %d", s.File, s.FirstPosition, last)
		case s.LastPosition < s.FirstPosition || uint64(s.LastPosition-s.FirstPosition)+1 != s.Events:
			return fmt.Sprintf("%s has %d events from position %d to %d", s.File, s.Events, s.FirstPosition, s.LastPosition)
		case s.Bytes <= 0 || s.CompressedBytes <= 0 || !isSHA256(s.SHA256) || !isSHA256(s.CompressedSHA256):
			return s.File + " has no sizes and hashes"
		}
		last = s.LastPosition
	}
	first := min(1, last)
	if m.FirstPosition != first || m.LastPosition != last || m.Events != uint64(last) {
		return fmt.Sprintf("it counts %d events from position %d to %d, and its segments have %d from %d to %d",
			m.Events, m.FirstPosition, m.LastPosition, last, first, last)
	}
	for i, f := range m.Files {
		switch {
		case !isFileName(f.File) || slices.ContainsFunc(m.Files[:i], func(other File) bool { return other.File == f.File }):
			return fmt.Sprintf("%q cannot be the name of a further file", f.File)
		case f.Bytes < 0 || !isSHA256(f.SHA256):
			return f.File + " has no size and hash"
		}
	}
	return ""
}

func isSHA256(text string) bool {
	sum, err := hex.DecodeString(text)
	return err == nil && len(sum) == 32
}

// isFileName says whether a file may have this name beside the manifest and the segments.
func isFileName(name string) bool {
	return name == filepath.Base(name) && !strings.HasPrefix(name, ".") && name != manifestName && name != segmentsName
}

func (m Manifest) write(dir string) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return replace(dir, manifestName, append(text, '\n'))
}

// replace puts a file in the place of an older one, whole or not at all, and on the disk.
func replace(dir, name string, text []byte) error {
	path := filepath.Join(dir, name)
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // mode 0600
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", name, err), os.Remove(f.Name()))
	}
	return syncFolder(filepath.Dir(path))
}

func syncFolder(path string) error {
	d, err := os.Open(path) //nolint:gosec // G304: in the archive, whose folder the operator names
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
