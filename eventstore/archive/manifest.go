package archive

import (
	"bytes"
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

// Format and Version identify a manifest. A change that an older reader would misunderstand increases the version. New fields and files
// that it may ignore do not.
const (
	Format  = "bahi-archive"
	Version = 1
)

// dense means that positions are 1, 2, 3 …. This program reads no other logs.
const dense = "dense"

const (
	manifestName = "manifest.json"
	segmentsName = "segments"
)

// Manifest describes an archive. It does not protect itself: an auditor keeps its SHA-256, or a checkpoint of the log, elsewhere.
type Manifest struct {
	Format        string         `json:"format"`
	Version       int            `json:"version"`
	StoreID       uuid.UUID      `json:"store_id"`       // the log's id
	Positions     string         `json:"positions"`      // dense
	FirstPosition event.Position `json:"first_position"` // 0 in an archive of an empty log
	LastPosition  event.Position `json:"last_position"`
	Events        uint64         `json:"events"`
	Program       string         `json:"program"`    // version of the Bahi that last wrote the archive
	WrittenAt     time.Time      `json:"written_at"` // time of the last write
	Segments      Segments       `json:"segments"`
	Files         Files          `json:"files,omitempty"` // further files
}

// Segment is a file with a part of the log.
type Segment struct {
	File             string         `json:"file"` // segments/00000001.ndjson.zst, or without the .zst if it is not compressed
	Events           uint64         `json:"events"`
	FirstPosition    event.Position `json:"first_position"`
	LastPosition     event.Position `json:"last_position"`
	Bytes            int64          `json:"bytes"` // length of the text
	SHA256           string         `json:"sha256"`
	CompressedBytes  int64          `json:"compressed_bytes,omitempty"` // length of the file, if it is compressed
	CompressedSHA256 string         `json:"compressed_sha256,omitempty"`
}

// isCompressed reports whether the file's name is that of a compressed segment.
func (s Segment) isCompressed() bool { return strings.HasSuffix(s.File, compressedSuffix) }

// File is another file of the archive, such as keys.json.
type File struct {
	File   string `json:"file"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

const compressedSuffix = ".zst"

// Segments and Files are decoded one element at a time, up to the first invalid one: the manifest is untrusted, and a list may have
// millions of empty elements.
type (
	Segments []Segment
	Files    []File
)

// UnmarshalJSON implements [json.Unmarshaler].
func (s *Segments) UnmarshalJSON(text []byte) (err error) {
	*s, err = readList(text, func(one Segment, n int) error {
		if name := segmentName(n, !one.isCompressed()); one.File != name {
			return &CorruptError{File: manifestName, Reason: fmt.Sprintf("segment %d is called %q, not %s", n, one.File, name)}
		}
		return nil
	})
	return err
}

// maxFiles is more than any Bahi adds to an archive.
const maxFiles = 1000

// UnmarshalJSON implements [json.Unmarshaler].
func (f *Files) UnmarshalJSON(text []byte) (err error) {
	*f, err = readList(text, func(one File, n int) error {
		if n > maxFiles || !isFileName(one.File) {
			return &CorruptError{File: manifestName,
				Reason: fmt.Sprintf("%q cannot be the name of a further file, of which there are at most %d", one.File, maxFiles)}
		}
		return nil
	})
	return err
}

// readList decodes a list and checks each element with its number, from 1.
func readList[T any](text []byte, check func(one T, n int) error) (all []T, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	begin, err := d.Token()
	if err != nil || begin == nil {
		return nil, err
	}
	if begin != json.Delim('[') {
		return nil, errors.New("it is not a list")
	}
	for n := 1; d.More(); n++ {
		var one T
		if err := d.Decode(&one); err != nil {
			return nil, err
		}
		if err := check(one, n); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// segmentName returns the name of the nth segment, from 1.
func segmentName(n int, plain bool) string {
	name := fmt.Sprintf("%s/%08d.ndjson", segmentsName, n)
	if !plain {
		name += compressedSuffix
	}
	return name
}

// maxManifest is larger, in bytes, than the manifest of any log that fits on a disk.
const maxManifest = 64 << 20

// open opens a file of the archive. It refuses anything but a regular file: opening a pipe would block.
func open(files fs.FS, name string) (fs.File, error) {
	if info, err := fs.Stat(files, name); err == nil && !info.Mode().IsRegular() {
		return nil, &CorruptError{File: name, Reason: "it is not a regular file"}
	}
	return files.Open(name)
}

// readFile reads at most most+1 bytes, because the file is untrusted.
func readFile(files fs.FS, name string, most int64) ([]byte, error) {
	f, err := open(files, name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // read-only
	return io.ReadAll(io.LimitReader(f, most+1))
}

var errNoManifest = errors.New("no archive, or one that was not finished: it has no " + manifestName)

func readManifest(files fs.FS) (m Manifest, err error) {
	text, err := readFile(files, manifestName, maxManifest)
	if errors.Is(err, fs.ErrNotExist) {
		return m, errNoManifest
	}
	if err != nil {
		return m, fmt.Errorf("read the archive's manifest: %w", err)
	}
	if len(text) > maxManifest {
		return m, &CorruptError{File: manifestName, Reason: fmt.Sprintf("it is longer than %d bytes", maxManifest)}
	}
	err = json.Unmarshal(text, &m)
	if b := asBroken(err); b != nil {
		return m, b
	}
	if err != nil {
		return m, &CorruptError{File: manifestName, Reason: "invalid JSON: " + err.Error()}
	}
	if why := m.complaint(); why != "" {
		return m, &CorruptError{File: manifestName, Reason: why}
	}
	return m, nil
}

// complaint returns a contradiction in the manifest, or "" if there is none.
func (m Manifest) complaint() string {
	switch {
	case m.Format != Format:
		return fmt.Sprintf("its format is %q, not %q", m.Format, Format)
	case m.Version != Version:
		return fmt.Sprintf("its format has version %d; this program reads version %d", m.Version, Version)
	case m.StoreID == uuid.Nil:
		return "it does not name the log"
	case m.Positions != dense:
		return fmt.Sprintf("its positions are %q, and this program reads %s ones", m.Positions, dense)
	}
	var (
		first, last event.Position
		events      uint64 // at most the number of positions
	)
	for _, s := range m.Segments {
		switch {
		case s.FirstPosition != last+1:
			return fmt.Sprintf("%s begins at position %d, and follows position %d", s.File, s.FirstPosition, last)
		case !s.fits():
			return fmt.Sprintf("%s has %d events from position %d to %d", s.File, s.Events, s.FirstPosition, s.LastPosition)
		case s.Bytes <= 0 || !isSHA256(s.SHA256), s.isCompressed() && (s.CompressedBytes <= 0 || !isSHA256(s.CompressedSHA256)):
			return s.File + " has no sizes and hashes"
		case !s.isCompressed() && (s.CompressedBytes != 0 || s.CompressedSHA256 != ""):
			return s.File + " is not compressed, and has sizes and hashes as if it were"
		}
		if events == 0 {
			first = s.FirstPosition
		}
		last, events = s.LastPosition, events+s.Events
	}
	if m.FirstPosition != first || m.LastPosition != last || m.Events != events {
		return fmt.Sprintf("it counts %d events from position %d to %d, and its segments have %d from %d to %d",
			m.Events, m.FirstPosition, m.LastPosition, events, first, last)
	}
	for i, f := range m.Files {
		switch {
		case slices.ContainsFunc(m.Files[:i], func(other File) bool { return other.File == f.File }):
			return fmt.Sprintf("it has two files %q", f.File)
		case f.Bytes < 0 || !isSHA256(f.SHA256):
			return f.File + " has no size and hash"
		}
	}
	return ""
}

// fits reports whether the segment has an event at each of its positions.
func (s Segment) fits() bool {
	return s.LastPosition >= s.FirstPosition && s.Events > 0 && s.Events-1 == uint64(s.LastPosition-s.FirstPosition)
}

func isSHA256(text string) bool {
	sum, err := hex.DecodeString(text)
	return err == nil && len(sum) == 32
}

// isFileName reports whether a file beside the manifest and the segments may have this name.
func isFileName(name string) bool {
	return name == filepath.Base(name) && !strings.HasPrefix(name, ".") && name != manifestName && name != segmentsName
}

func (m Manifest) write(dir string) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return Replace(dir, manifestName, append(text, '\n'))
}

// Replace replaces a file atomically and durably.
func Replace(dir, name string, text []byte) error {
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
	return SyncFolder(filepath.Dir(path))
}

// SyncFolder flushes a folder or a file to the disk.
func SyncFolder(path string) error {
	d, err := os.Open(path) //nolint:gosec // G304: the operator names the folder
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
