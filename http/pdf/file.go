package pdf

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/zlib"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
)

// file writes a PDF. It writes the content of a page when the page ends; at the end it copies the objects that pages share
// from a document by gofpdf. So a document of any length takes the memory of a page.
type file struct {
	w       *bufio.Writer
	at      int64
	offsets []int64 // offsets of the objects, from number 1 on; 0: unused
	err     error
	deflate *zlib.Writer
	packed  bytes.Buffer
}

func newFile(w io.Writer) *file {
	f := &file{w: bufio.NewWriter(w)}
	f.deflate, _ = zlib.NewWriterLevel(&f.packed, zlib.BestSpeed) // NewWriterLevel fails only for unknown levels
	f.printf("%%PDF-1.3\n")
	return f
}

func (f *file) printf(format string, args ...any) { f.write(fmt.Appendf(nil, format, args...)) }

func (f *file) write(text []byte) {
	n, err := f.w.Write(text)
	f.at += int64(n)
	f.err = cmp.Or(f.err, err)
}

// begin begins the object with the next number.
func (f *file) begin() {
	f.offsets = append(f.offsets, f.at)
	f.printf("%d 0 obj\n", len(f.offsets))
}

// content writes the content of a page, or one part of it.
func (f *file) content(drawn []byte) {
	f.packed.Reset()
	f.deflate.Reset(&f.packed)
	_, _ = f.deflate.Write(drawn) // a buffer never fails
	_ = f.deflate.Close()
	f.begin()
	f.printf("<</Filter /FlateDecode /Length %d>>\nstream\n", f.packed.Len())
	f.write(f.packed.Bytes())
	f.printf("\nendstream\nendobj\n")
}

// These are gofpdf's object numbers in every document: the root of the pages, their resources, and the first page with its content.
const (
	rootOfPages = iota + 1
	resources
	firstPage
	firstContent
)

// finish writes the pages, each with two contents, and the objects of shared.
func (f *file) finish(shared []byte, pages int) error {
	theirs := len(f.offsets) + pages // number of objects before the objects of shared
	for n := range pages {
		f.begin()
		f.printf("<</Type /Page\n/Parent %d 0 R\n/Resources %d 0 R\n/Contents [%d 0 R %d 0 R]>>\nendobj\n", theirs+rootOfPages, theirs+resources,
			n+1, n+1+pages)
	}
	objects, err := objectsOf(shared)
	if err != nil {
		return err
	}
	for i, object := range objects {
		switch i + 1 {
		case rootOfPages:
			f.begin()
			f.printf("<</Type /Pages\n/MediaBox [0 0 %.2f %.2f]\n/Count %d\n/Kids [", pageWidth, pageHeight, pages)
			for n := range pages {
				f.printf("%d 0 R ", theirs-pages+n+1)
			}
			f.printf("]>>\nendobj\n")
		case firstPage, firstContent:
			f.offsets = append(f.offsets, 0)
		default:
			f.offsets = append(f.offsets, f.at)
			f.write(renumbered(object, theirs))
		}
	}
	table := f.at
	f.printf("xref\n0 %d\n0000000000 65535 f \n", len(f.offsets)+1)
	for _, at := range f.offsets {
		kind := 'n'
		if at == 0 {
			kind = 'f'
		}
		f.printf("%010d 00000 %c \n", at, kind)
	}
	last := len(f.offsets) // gofpdf's last objects are the description and the catalogue
	f.printf("trailer\n<<\n/Size %d\n/Root %d 0 R\n/Info %d 0 R\n>>\nstartxref\n%d\n%%%%EOF\n", last+1, last, last-1, table)
	if f.err == nil {
		f.err = f.w.Flush()
	}
	return f.err
}

var (
	tableAt   = regexp.MustCompile(`startxref\n(\d+)\n%%EOF\n$`)
	inTable   = regexp.MustCompile(`(?m)^(\d{10}) 00000 n $`)
	reference = regexp.MustCompile(`\b(\d+) 0 (R|obj)\b`)
)

// objectsOf returns the objects of a document by gofpdf, by their numbers from 1 on.
func objectsOf(document []byte) ([][]byte, error) {
	found := tableAt.FindSubmatch(document)
	if found == nil {
		return nil, fmt.Errorf("gofpdf wrote no table of objects")
	}
	end := number(found[1])
	var offsets []int
	for _, line := range inTable.FindAllSubmatch(document[end:], -1) {
		offsets = append(offsets, number(line[1]))
	}
	ends := append(slices.Sorted(slices.Values(offsets)), end)
	objects := make([][]byte, len(offsets))
	for i, at := range offsets {
		next, _ := slices.BinarySearch(ends, at+1)
		objects[i] = document[at:ends[next]]
	}
	return objects, nil
}

// renumbered adds by to an object's number and to the numbers in its references.
func renumbered(object []byte, by int) []byte {
	head, stream, has := bytes.Cut(object, []byte("stream\n"))
	head = reference.ReplaceAllFunc(head, func(found []byte) []byte {
		digits, rest, _ := bytes.Cut(found, []byte(" "))
		return fmt.Appendf(nil, "%d %s", number(digits)+by, rest)
	})
	if has {
		head = slices.Concat(head, []byte("stream\n"), stream)
	}
	return head
}

// number returns the value of digits that a pattern matched.
func number(digits []byte) int {
	n, _ := strconv.Atoi(string(digits))
	return n
}
