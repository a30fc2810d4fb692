// Package pdftext reads the text of PDFs with poppler's pdftotext, in a cage.
package pdftext

import (
	"context"
	"errors"
	"strings"
	"time"

	"bahi/providers/cage"
)

// limits bound one file of at most 20 MB.
var limits = cage.Limits{Time: 2 * time.Minute, Memory: 1 << 30, FileSize: 64 << 20, Output: 32 << 20, Processes: 32}

// Tool is where the program is. An empty path: it is missing.
type Tool struct {
	Path string
	Env  []string // of a program that was unpacked, not installed
}

// Failure is why a file has no text, in words for its owner.
type Failure struct{ Why string }

// Error implements error.
func (f *Failure) Error() string { return f.Why }

// Temporary reports that another try would not help.
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
}

// Text returns the text of a PDF, with a form feed between its pages. Its error is a [*Failure], the context's, or that of a program that cannot be
// started.
func (r *Reader) Text(ctx context.Context, file []byte) (text string, err error) {
	tool, err := r.Tool(ctx)
	if tool.Path == "" {
		return "", errors.Join(ErrNoTool, err)
	}
	c, err := cage.Open(limits)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	c.Env = tool.Env
	if err := c.Put("in.pdf", file); err != nil {
		return "", err
	}
	out, err := c.Run(ctx, tool.Path, "-enc", "UTF-8", "in.pdf", "-")
	failed, ended := errors.AsType[*cage.Failed](err)
	switch {
	case ended && strings.Contains(failed.Said, "password"):
		return "", ErrEncrypted
	case ended:
		return "", ErrBroken
	case errors.Is(err, cage.ErrTime), errors.Is(err, cage.ErrOutput):
		return "", ErrLarge
	case err != nil:
		return "", err
	}
	return strings.ToValidUTF8(string(out), "\ufffd"), nil
}
