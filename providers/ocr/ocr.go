// Package ocr recognises the words of scanned pages with tesseract, and reads PDFs with poppler. The programs run in a jail.
package ocr

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"bahi/domain/fault"
	"bahi/domain/ledger/khatapage"
	"bahi/providers/jail"
)

// Tools are the programs. A path is empty if the program is missing.
type Tools struct {
	Tesseract                    string
	Languages                    []string // for which tesseract has data
	PDFInfo, PDFToText, PDFToPPM string
	Env                          []string
}

// Limits of a file (CONTRACT.md I16).
const (
	MaxBytes  = 15 << 20
	maxPages  = 10
	maxSide   = 20_000
	maxPixels = 100_000_000
)

// The refusals of a file.
var (
	ErrType   = fault.New(fault.Unsupported, "File must be a JPEG, PNG, WebP, TIFF or PDF")
	ErrHEIC   = fault.New(fault.Unsupported, "File must be a JPEG, PNG, WebP, TIFF or PDF; HEIC cannot be read, save the picture as JPEG")
	ErrPages  = fault.Newf(fault.TooLarge, "The file has more than %d pages", maxPages)
	ErrPixels = fault.Newf(fault.TooLarge, "The picture is too large: at most %d pixels a side and %d megapixels", maxSide,
		maxPixels/1_000_000)
	ErrDecoded = fault.Newf(fault.TooLarge, "The picture takes more than %d MB once it is decoded: save it with 8 bits a colour",
		maxDecoded>>20)
	ErrBroken    = fault.Wrong("file", "is broken and cannot be read")
	ErrEncrypted = fault.Wrong("file", "is encrypted")
	ErrSlow      = fault.Wrong("file", "takes too long or too much memory to read: a page has 20 seconds of a processor")
)

// Page is a page that was read.
type Page struct {
	khatapage.Page

	Number, Of int
	Image      []byte // PNG, grey, upright; nil where the words are the PDF's own
}

// Reader reads files. Goroutines may share it.
type Reader struct {
	// Tools returns the programs, with an error if one is missing.
	Tools func(ctx context.Context) (Tools, error)

	// Timeout is the maximum time of one run of a program; 0: a minute. Processor is the maximum of its processor time; 0: 20 seconds.
	Timeout, Processor time.Duration

	places *semaphore.Weighted
}

// New returns a reader of at most maxConcurrent concurrent pages. Each page takes a processor and a few hundred MB.
func New(tools func(ctx context.Context) (Tools, error), maxConcurrent int64) *Reader {
	return &Reader{Tools: tools, places: semaphore.NewWeighted(max(1, maxConcurrent))}
}

// Read reads an owner's file page by page. Its errors are refusals of the file, [fault.Unavailable] for missing programs and for an owner
// whose other file is being read, the context's, and those that each returns.
func (r *Reader) Read(ctx context.Context, of jail.Owner, file []byte, each func(Page) error) error {
	kind, err := Check(file)
	if err != nil {
		return err
	}
	tools, why := r.Tools(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	s := &session{Reader: r, tools: tools, why: why, each: each}
	if s.cage, err = jail.Open(ctx, of, jail.Limits{Time: r.Timeout, Processor: r.Processor}); err != nil {
		return err
	}
	s.cage.Env = append([]string{"OMP_THREAD_LIMIT=1"}, tools.Env...)
	defer s.cage.Close() //nolint:errcheck // the file was read; leftover temporary files are not its fault
	if kind == PDF {
		err = s.pdf(ctx, file)
	} else {
		err = s.pictures(ctx, kind, file)
	}
	if errors.Is(err, jail.ErrTime) || errors.Is(err, jail.ErrOutput) {
		return ErrSlow
	}
	return err
}

// Check returns the type of a file. It refuses a file by its first bytes and its size.
func Check(file []byte) (string, error) {
	kind := sniff(file)
	switch {
	case len(file) > MaxBytes:
		return "", fault.Newf(fault.TooLarge, "The file is too large: at most %d MB", MaxBytes>>20)
	case kind != "":
		return kind, nil
	case bytes.Contains(file[:min(len(file), 32)], []byte("ftyp")):
		return "", ErrHEIC
	default:
		return "", ErrType
	}
}

// The types of files.
const (
	JPEG = "image/jpeg"
	PNG  = "image/png"
	WebP = "image/webp"
	TIFF = "image/tiff"
	PDF  = "application/pdf"
)

// sniff returns the type of a file by its content, "" if it is none of these.
func sniff(file []byte) string {
	head := file[:min(len(file), 1024)]
	switch {
	case bytes.HasPrefix(head, []byte("\xff\xd8\xff")):
		return JPEG
	case bytes.HasPrefix(head, []byte("\x89PNG\r\n\x1a\n")):
		return PNG
	case len(head) >= 12 && string(head[:4]) == "RIFF" && string(head[8:12]) == "WEBP":
		return WebP
	case bytes.HasPrefix(head, []byte("II*\x00")), bytes.HasPrefix(head, []byte("MM\x00*")):
		return TIFF
	case bytes.Contains(head, []byte("%PDF-")):
		return PDF
	}
	return ""
}

// session is the reading of one file.
type session struct {
	*Reader

	tools Tools
	why   error // why tools are missing
	cage  *jail.Jail
	each  func(Page) error
}

// missing refuses a file for which a program is missing.
func (s *session) missing(what string) error {
	detail := "No text recognition engine is configured: " + what + " is missing"
	if s.why != nil {
		detail = fmt.Sprintf("No text recognition engine is configured: %s", s.why)
	}
	return fault.New(fault.Unavailable, detail)
}

// recognise passes the page of a picture to each.
func (s *session) recognise(ctx context.Context, p Page, from *scan) error {
	if s.tools.Tesseract == "" || len(s.tools.Languages) == 0 {
		return s.missing("tesseract")
	}
	if err := s.places.Acquire(ctx, 1); err != nil {
		return err
	}
	defer s.places.Release(1)
	from.straighten()
	if err := ctx.Err(); err != nil {
		return err
	}
	image, err := from.png()
	if err != nil {
		return err
	}
	if err := s.cage.Put("page.png", image); err != nil {
		return err
	}
	mode := oneBlock
	if p.Words, err = s.words(ctx, s.tools.Languages, mode); err == nil && len(p.Words) < fewWords {
		mode = oneColumn
		p.Words, err = s.words(ctx, s.tools.Languages, mode)
	}
	// If three languages compete, tesseract mistakes Indian digits for Latin letters and digits.
	if language := numerals(p.Words); err == nil && len(s.tools.Languages) > 1 && slices.Contains(s.tools.Languages, language) {
		p.Words, err = s.words(ctx, []string{language}, mode)
	}
	if err != nil {
		return err
	}
	from.markStruck(p.Words)
	from.markCut(p.Words)
	p.Width, p.Image = from.width, image
	return s.each(p)
}

// fewWords is the number of words below which a second mode is tried.
const fewWords = 5

// Tesseract's modes of page segmentation.
const (
	oneBlock  = "6"
	oneColumn = "4"
)

// words returns the words that tesseract reads on the jail's page.
func (s *session) words(ctx context.Context, languages []string, mode string) ([]khatapage.Word, error) {
	out, err := s.cage.Run(ctx, s.tools.Tesseract, "page.png", "stdout", "-l", strings.Join(languages, "+"), "--psm", mode, "tsv")
	if _, failed := errors.AsType[*jail.ExitError](err); failed {
		return nil, ErrSlow
	}
	return words(out), err
}

// manyDigits is the minimum number of digits of a script for which the page's numbers count as written in that script.
const manyDigits = 10

// numerals returns tesseract's name of the language of a page's digits, "" for ASCII digits.
func numerals(words []khatapage.Word) (language string) {
	var ascii, devanagari, gujarati int
	for _, w := range words {
		for _, c := range w.Text {
			switch {
			case c >= '0' && c <= '9':
				ascii++
			case c >= '०' && c <= '९':
				devanagari++
			case c >= '૦' && c <= '૯':
				gujarati++
			}
		}
	}
	switch most := max(devanagari, gujarati); {
	case most < manyDigits || 2*most < ascii:
		return ""
	case most == devanagari:
		return "hin"
	default:
		return "guj"
	}
}
