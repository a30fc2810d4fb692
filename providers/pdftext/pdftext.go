// Package pdftext reads the text of PDFs with poppler's pdftotext, in a jail.
package pdftext

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"bahi/domain/messaging/botsource"
	"bahi/providers/jail"
)

// limits apply to one file of at most 20 MB. A word takes about 100 bytes of output.
var limits = jail.Limits{Time: 2 * time.Minute, Memory: 1 << 30, FileSize: 64 << 20, Output: 512 << 20, Processes: 32}

const maxPage = 32 << 20 // bytes of output for one page

// Tool has the path of the program. An empty path: it is missing.
type Tool struct {
	Path string
	Env  []string // environment of a program that was unpacked, not installed
}

// Failure is the reason why a file has no text, in words for its owner.
type Failure struct{ Reason string }

// Error implements error.
func (f *Failure) Error() string { return f.Reason }

// Temporary returns false: another try would not help.
func (*Failure) Temporary() bool { return false }

// The failures.
var (
	ErrEncrypted = &Failure{"The PDF is encrypted"}
	ErrBroken    = &Failure{"The PDF cannot be read"}
	ErrLarge     = &Failure{"The PDF takes too long to read, or has too much text"}
	ErrNoTool    = &Failure{"This server has no pdftotext"}
)

// Reader reads PDFs.
type Reader struct {
	Tool func(ctx context.Context) (Tool, error)

	// Processor is the maximum processor time of the program; 0: 20 seconds.
	Processor time.Duration
}

// wait is the maximum time that a file waits for another file of the workspace. Afterwards jobs of other workspaces run first.
const wait = 100 * time.Millisecond

// Pages yields the lines of each page of a workspace's PDF, while the program continues. The cells of a line are a row of a table. An empty
// line is a gap. An error comes last. It is a [*Failure], [jail.ErrBusy], the context's, or the failure to start a program.
func (r *Reader) Pages(ctx context.Context, workspace uuid.UUID, file []byte) iter.Seq2[[][]botsource.Cell, error] {
	return func(yield func([][]botsource.Cell, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		out, ended := &output{more: make(chan struct{}, 1)}, make(chan error, 1)
		go func() { ended <- r.read(ctx, workspace, file, out) }()
		for on := true; on; {
			var err error
			select {
			case <-out.more:
			case err = <-ended:
				on = false
			}
			for _, page := range out.take() {
				if !yield(page, nil) {
					cancel()
					if on {
						<-ended //nolint:errcheck // the caller has stopped
					}
					return
				}
			}
			if err != nil {
				yield(nil, err)
			}
		}
		cancel()
	}
}

// read writes the words of a PDF with their positions, as XML.
func (r *Reader) read(ctx context.Context, workspace uuid.UUID, file []byte, to *output) (err error) {
	tool, err := r.Tool(ctx)
	if tool.Path == "" {
		return errors.Join(ErrNoTool, err)
	}
	bounds := limits
	bounds.Processor = r.Processor
	c, err := jail.Open(ctx, jail.Owner{ID: workspace, Wait: wait}, bounds)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	c.Env = tool.Env
	if err := c.Put("in.pdf", file); err != nil {
		return err
	}
	err = c.Stream(ctx, to, tool.Path, "-bbox-layout", "-enc", "UTF-8", "in.pdf", "-")
	failed, ended := errors.AsType[*jail.ExitError](err)
	switch {
	case to.failure != nil:
		return to.failure
	case ended && strings.Contains(failed.Said, "password"):
		return ErrEncrypted
	case ended:
		return ErrBroken
	case errors.Is(err, jail.ErrTime), errors.Is(err, jail.ErrOutput):
		return ErrLarge
	default:
		return err
	}
}

// output stores the pages until the consumer takes them, so that the program never waits.
type output struct {
	more chan struct{} // has a value when there are pages

	mu      sync.Mutex
	rest    []byte // bytes of the page that is not complete
	pages   [][][]botsource.Cell
	failure *Failure // failure of Write
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.rest = append(o.rest, p...)
	const end = "</page>"
	for {
		at := bytes.Index(o.rest, []byte(end))
		if at < 0 {
			break
		}
		blocks, err := blocksOf(o.rest[:at+len(end)])
		if err != nil {
			o.failure = ErrBroken
			return 0, err
		}
		o.pages, o.rest = append(o.pages, layout(blocks)), o.rest[at+len(end):]
	}
	if len(o.rest) > maxPage {
		o.failure = ErrLarge
		return 0, jail.ErrOutput
	}
	if len(o.pages) > 0 {
		select {
		case o.more <- struct{}{}:
		default:
		}
	}
	return len(p), nil
}

// take returns the pages that were not taken yet.
func (o *output) take() [][][]botsource.Cell {
	o.mu.Lock()
	defer o.mu.Unlock()
	pages := o.pages
	o.pages = nil
	return pages
}
