// Package pdftext reads the text of PDFs with poppler's pdftotext, in a jail.
package pdftext

import (
	"bytes"
	"context"
	"errors"
	"strings"
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

// Read passes the lines of each page of a workspace's PDF to each, while the program continues. The cells of a line are a row of a table.
// An empty line is a gap. An error is a [*Failure], [jail.ErrBusy], the context's, that of each, or the failure to start a program.
func (r *Reader) Read(ctx context.Context, workspace uuid.UUID, file []byte, each func(page [][]botsource.Cell) error) (err error) {
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
	to := &output{each: each}
	err = c.Stream(ctx, to, tool.Path, "-bbox-layout", "-enc", "UTF-8", "in.pdf", "-")
	failed, ended := errors.AsType[*jail.ExitError](err)
	switch {
	case to.err != nil:
		return to.err
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

// output passes the pages on.
type output struct {
	each func(page [][]botsource.Cell) error
	rest []byte // bytes of the page that is not complete
	err  error  // error of Write
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.rest = append(o.rest, p...)
	const end = "</page>"
	for {
		at := bytes.Index(o.rest, []byte(end))
		if at < 0 {
			break
		}
		blocks, err := blocksOf(o.rest[:at+len(end)])
		if err != nil {
			o.err = ErrBroken
		} else {
			o.err = o.each(layout(blocks))
		}
		if o.err != nil {
			return 0, o.err
		}
		o.rest = o.rest[at+len(end):]
	}
	if len(o.rest) > maxPage {
		o.err = ErrLarge
		return 0, o.err
	}
	return len(p), nil
}
