// Package spreadsheet reads the rows of spreadsheets: XLSX, and CSV in the encodings and with the separators of spreadsheet programs. It
// ignores file names. Memory and time are bounded, even for malicious files.
package spreadsheet

import (
	"bytes"
	"context"
	"io"
	"strings"

	"bahi/domain/fault"
)

// maxCells is the maximum number of cells of a line, as in an XLSX. A cell of one byte takes a hundred bytes of memory.
const maxCells = 16_384

// maxBlank limits the blank rows of a file: Read reads at most maxBlank rows, blank or not, for each row that the file may have.
const maxBlank = 20

var (
	// ErrFormat reports a file that is not a spreadsheet.
	ErrFormat = fault.New(fault.Malformed, "File must be CSV or Excel")

	errCells  = fault.New(fault.TooLarge, "A line of the file has too many cells: at most 16,384")
	errPacked = fault.New(fault.TooLarge, "The file is too large when it is unpacked: at most 100 MB")
)

// because returns ErrFormat with a message about the file.
func because(message string) error {
	return &fault.Error{Kind: fault.Malformed, Detail: ErrFormat.Detail, Fields: []fault.Field{{Field: "file", Message: message}}}
}

// Row is a row that is not blank.
type Row struct {
	Number int      // number in the spreadsheet, from 1
	Cells  []string // valid until the next row
	Wrong  string   // reason why the cells are unreadable; empty: readable
	wrong  []cell   // cells without a stored displayed value

	foreign []cell // amounts in another currency than rupees
	dates   []cell

	hidden        bool
	hiddenColumns []int // from 0, those with a value
}

// filled returns the number of cells up to the last one that is not empty.
func filled(cells []string) int {
	for n := len(cells); n > 0; n-- {
		if strings.TrimSpace(cells[n-1]) != "" {
			return n
		}
	}
	return 0
}

// filled returns the number of cells up to the last one that is not blank.
func (r Row) filled() int {
	n := filled(r.Cells)
	for _, c := range r.wrong {
		n = max(n, c.column+1)
	}
	return n
}

// Read calls take for each row of a file that is neither blank nor hidden, in order, up to a maximum. It returns the names of the parts
// that it did not read: hidden rows and columns, and sheets after the first one. It returns [ErrFormat] for a file that is not a
// spreadsheet, and the error of take.
func Read(ctx context.Context, file *io.SectionReader, thousands int, take func(Row) error) (unread []string, err error) {
	var hidden hidden
	count, most, shown := 0, 1000*thousands, false
	errRows := fault.Newf(fault.TooLarge, "The file has too many rows: at most %d,000", thousands)
	each := func(r Row) error {
		if r.Wrong == "" && r.filled() == 0 {
			if r.Number > maxBlank*most {
				return errRows
			}
			return ctx.Err()
		}
		if count++; count > most+1 { // including the header
			return errRows
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if hidden.add(r); r.hidden {
			return nil
		}
		shown = true
		return take(r)
	}
	head := make([]byte, 8)
	n, err := file.ReadAt(head, 0)
	if err != nil && n == 0 {
		return nil, ErrFormat
	}
	switch head = head[:n]; {
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		sheets, err := readXLSX(file, each)
		switch {
		case err != nil:
			return nil, err
		case count == 0:
			return nil, because("its first sheet has no rows")
		case !shown:
			return nil, because("its first sheet has only hidden rows")
		}
		return append(hidden.names(), sheets...), nil
	case bytes.HasPrefix(head, []byte("\xd0\xcf\x11\xe0")):
		return nil, because("an .xls file, or one with a password: save it as .xlsx")
	case bytes.HasPrefix(head, []byte("%PDF")):
		return nil, because("a PDF: save the table as .xlsx or CSV in the program that has made it")
	}
	text, err := io.ReadAll(file)
	if err != nil {
		return nil, err
	}
	return nil, readCSV(text, each)
}
