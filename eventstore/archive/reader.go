package archive

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"iter"
	"os"

	"github.com/klauspost/compress/zstd"

	"bahi/domain/event"
)

// longestLine is longer than the line of any event that the log accepts.
const longestLine = 64 << 20

// CorruptError reports a fault of an archive.
type CorruptError struct {
	File   string // in the archive
	Line   uint64 // line of the file's text, from 1; 0: the whole file
	Event  uint64 // number of the event in the archive, from 1
	Reason string
}

func (b *CorruptError) Error() string {
	where := b.File
	if b.Line > 0 {
		where += fmt.Sprintf(", line %d (event %d)", b.Line, b.Event)
	}
	return fmt.Sprintf("the archive is broken: %s: %s", where, b.Reason)
}

// Archive is an archive for reading.
type Archive struct {
	Manifest

	files fs.FS
}

// Open reads the manifest of the archive in a folder. It returns a [CorruptError] if the manifest contradicts itself.
func Open(dir string) (*Archive, error) {
	a, err := openFS(os.DirFS(dir))
	if errors.Is(err, errNoManifest) {
		return nil, fmt.Errorf("%s is %w", dir, err)
	}
	return a, err
}

// openFS is [Open] for other file systems, such as a zip file.
func openFS(files fs.FS) (*Archive, error) {
	m, err := readManifest(files)
	if err != nil {
		return nil, err
	}
	return &Archive{Manifest: m, files: files}, nil
}

// Events yields the archive's events in order. It ends with a [CorruptError] at an invalid line, at a position or a time out of order, or
// at a difference from the manifest. Only an end without an error shows that all events match the manifest.
func (a *Archive) Events(ctx context.Context) iter.Seq2[event.Stored, error] {
	return func(yield func(event.Stored, error) bool) {
		var (
			last   event.Stored
			before uint64
		)
		for _, s := range a.Segments {
			r := &segmentReader{Segment: s, before: before, last: last}
			goOn, err := r.read(ctx, a.files, yield)
			if err != nil {
				yield(event.Stored{}, err)
			}
			if err != nil || !goOn {
				return
			}
			last, before = r.last, before+s.Events
		}
	}
}

// last returns the archive's last event.
func (a *Archive) last(ctx context.Context) (event.Stored, error) {
	s := a.Segments[len(a.Segments)-1]
	r := &segmentReader{Segment: s, before: a.Manifest.Events - s.Events, last: event.Stored{Position: s.FirstPosition - 1}}
	_, err := r.read(ctx, a.files, func(event.Stored, error) bool { return true })
	return r.last, err
}

// File returns one of the further files. It returns a [CorruptError] if the file differs from the manifest.
func (a *Archive) File(name string) (text []byte, found bool, err error) {
	for _, f := range a.Files {
		if f.File != name {
			continue
		}
		text, err := readFile(a.files, name, f.Bytes)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, true, &CorruptError{File: name, Reason: "it is missing"}
		}
		if err != nil {
			return nil, true, fmt.Errorf("read %s: %w", name, err)
		}
		if sum := sha256.Sum256(text); int64(len(text)) != f.Bytes || hex.EncodeToString(sum[:]) != f.SHA256 {
			return nil, true, &CorruptError{File: name, Reason: "it differs from the manifest: it was changed"}
		}
		return text, true, nil
	}
	return nil, false, nil
}

// segmentReader reads one segment.
type segmentReader struct {
	Segment

	before uint64       // number of events in the previous segments
	last   event.Stored // the previous event
	lines  uint64
	size   int64 // size of the file
}

func (r *segmentReader) broken(format string, args ...any) error {
	return &CorruptError{File: r.File, Reason: fmt.Sprintf(format, args...)}
}

func (r *segmentReader) brokenLine(format string, args ...any) error {
	return &CorruptError{File: r.File, Line: r.lines, Event: r.before + r.lines, Reason: fmt.Sprintf(format, args...)}
}

// read yields the segment's events. goOn is false after an error, or if yield returned false.
func (r *segmentReader) read(ctx context.Context, files fs.FS, yield func(event.Stored, error) bool) (goOn bool, err error) {
	file, err := open(files, r.File)
	if errors.Is(err, fs.ErrNotExist) {
		return false, r.broken("it is missing")
	}
	if err != nil {
		return false, fmt.Errorf("read %s: %w", r.File, err)
	}
	defer file.Close() //nolint:errcheck // read-only
	info, err := file.Stat()
	if err != nil {
		return false, fmt.Errorf("read %s: %w", r.File, err)
	}
	r.size = info.Size()
	var bytes count
	compressed, plain := sha256.New(), sha256.New()
	var raw io.Reader = bufio.NewReaderSize(file, 1<<18)
	text := raw
	if r.isCompressed() {
		raw = io.TeeReader(raw, compressed)
		unpacked, err := zstd.NewReader(raw, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(widest))
		if err != nil {
			return false, fmt.Errorf("read %s: %w", r.File, err)
		}
		defer unpacked.Close()
		text = unpacked
	}
	if goOn, err := r.readLines(ctx, io.TeeReader(io.LimitReader(text, r.Bytes+1), io.MultiWriter(plain, &bytes)), yield); err != nil ||
		!goOn {
		return false, err
	}
	if _, err := io.Copy(io.Discard, raw); err != nil {
		return false, fmt.Errorf("read %s: %w", r.File, err)
	}
	return true, r.compare(int64(bytes), r.size, plain, compressed)
}

// ended returns the reason why the text has too few lines.
func (r *segmentReader) ended() string {
	if r.size < r.CompressedBytes {
		return fmt.Sprintf("the file was cut off: it has %d bytes, and had %d", r.size, r.CompressedBytes)
	}
	return fmt.Sprintf("the text ends here, and ought to have %d lines", r.Events)
}

// readLines yields an event for each line.
func (r *segmentReader) readLines(ctx context.Context, text io.Reader, yield func(event.Stored, error) bool) (goOn bool, err error) {
	lines := bufio.NewReaderSize(text, 1<<18)
	for r.lines < r.Events {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		r.lines++
		l, err := readLine(lines)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return false, r.brokenLine("%s", r.ended())
		}
		if err != nil {
			return false, r.brokenLine("it cannot be read: %s", err)
		}
		e, err := parseLine(l)
		switch {
		case err != nil:
			return false, r.brokenLine("%s", err)
		case e.Position != r.last.Position+1:
			return false, r.brokenLine("it has position %d, and follows position %d", e.Position, r.last.Position)
		case r.lines == 1 && e.Position != r.FirstPosition, r.lines == r.Events && e.Position != r.LastPosition:
			return false, r.brokenLine("it has position %d, and by the manifest the segment goes from position %d to %d", e.Position,
				r.FirstPosition, r.LastPosition)
		case e.At.Before(r.last.At):
			return false, r.brokenLine("it was recorded at %s, before the previous event", e.At.Format(moment))
		}
		r.last = e
		if !yield(e, nil) {
			return false, nil
		}
	}
	if more, err := lines.Peek(1); len(more) > 0 {
		return false, r.broken("it has more than %d lines", r.Events)
	} else if !errors.Is(err, io.EOF) {
		return false, r.broken("its end cannot be read: %s", err)
	}
	return true, nil
}

// readLine returns a line without its line break. A missing line break is an error. The next call overwrites the line.
func readLine(from *bufio.Reader) ([]byte, error) {
	text, err := from.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		whole := append([]byte(nil), text...)
		for errors.Is(err, bufio.ErrBufferFull) && len(whole) <= longestLine {
			text, err = from.ReadSlice('\n')
			whole = append(whole, text...)
		}
		text = whole
	}
	switch {
	case err != nil && errors.Is(err, io.EOF) && len(text) > 0:
		return nil, io.ErrUnexpectedEOF
	case err != nil:
		return nil, err
	}
	return text[:len(text)-1], nil
}

// compare compares the sizes and hashes that were read with those in the manifest.
func (r *segmentReader) compare(bytes, size int64, plain, compressed hash.Hash) error {
	if got := hex.EncodeToString(plain.Sum(nil)); bytes != r.Bytes || got != r.SHA256 {
		return r.broken("its text differs from the manifest: %d bytes with the SHA-256 %s, and not %d with %s", bytes, got, r.Bytes, r.SHA256)
	}
	if !r.isCompressed() {
		return nil
	}
	if got := hex.EncodeToString(compressed.Sum(nil)); size != r.CompressedBytes || got != r.CompressedSHA256 {
		return r.broken("the text is right, but not its file: %d bytes with the SHA-256 %s, and not %d with %s", size, got, r.CompressedBytes,
			r.CompressedSHA256)
	}
	return nil
}
