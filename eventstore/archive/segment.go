package archive

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"

	"bahi/domain/event"
)

// window is the window of the compression, in bytes. It determines a reader's memory.
const window = 4 << 20

// widest is the largest window that a reader accepts, as RFC 8878 recommends (section 3.1.1.1.2). Another program may have compressed the
// text again.
const widest = 8 << 20

// segmentWriter writes one segment.
type segmentWriter struct {
	Segment

	file       *os.File
	buffered   *bufio.Writer
	compressor *zstd.Encoder // nil: the text is not compressed
	plain      hash.Hash     // hash of the text
	compressed hash.Hash     // hash of the file
}

// newSegment creates the file of the nth segment. It replaces the file of an unfinished run.
func newSegment(dir string, n int, plain bool) (*segmentWriter, error) {
	w := &segmentWriter{Segment: Segment{File: segmentName(n, plain)}, plain: sha256.New(), compressed: sha256.New()}
	path := filepath.Join(dir, filepath.FromSlash(w.File))
	err := os.Remove(filepath.Join(dir, segmentName(n, !plain)))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("begin %s: %w", w.File, err)
	}
	//nolint:gosec // G304: the operator names the folder
	if w.file, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600); err != nil {
		return nil, fmt.Errorf("begin %s: %w", w.File, err)
	}
	if plain {
		w.buffered = bufio.NewWriterSize(w.file, 1<<18)
		return w, nil
	}
	w.buffered = bufio.NewWriterSize(io.MultiWriter(w.file, w.compressed, (*count)(&w.CompressedBytes)), 1<<18)
	// One goroutine and a fixed level make the file reproducible with one version of the library.
	w.compressor, err = zstd.NewWriter(w.buffered, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedDefault),
		zstd.WithWindowSize(window), zstd.WithEncoderCRC(true))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("begin %s: %w", w.File, err), w.file.Close())
	}
	return w, nil
}

// count counts the bytes written to it.
type count int64

func (c *count) Write(text []byte) (int, error) {
	*c += count(len(text))
	return len(text), nil
}

func (w *segmentWriter) add(position event.Position, text []byte) error {
	if w.Events == 0 {
		w.FirstPosition = position
	}
	w.Events++
	w.LastPosition = position
	w.Bytes += int64(len(text))
	w.plain.Write(text)
	var out io.Writer = w.buffered
	if w.compressor != nil {
		out = w.compressor
	}
	if _, err := out.Write(text); err != nil {
		return fmt.Errorf("write %s: %w", w.File, err)
	}
	return nil
}

// finish syncs the file.
func (w *segmentWriter) finish() (Segment, error) {
	var err error
	if w.compressor != nil {
		err = w.compressor.Close()
	}
	if err = errors.Join(err, w.buffered.Flush(), w.file.Sync(), w.file.Close()); err != nil {
		return Segment{}, fmt.Errorf("write %s: %w", w.File, err)
	}
	w.SHA256 = hex.EncodeToString(w.plain.Sum(nil))
	if w.compressor != nil {
		w.CompressedSHA256 = hex.EncodeToString(w.compressed.Sum(nil))
	}
	return w.Segment, nil
}
