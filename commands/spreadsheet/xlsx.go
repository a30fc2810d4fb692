package spreadsheet

import (
	"archive/zip"
	"bufio"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/xuri/excelize/v2"
)

const (
	maxUnpacked = 100 << 20 // bytes of all files in an XLSX
	maxInMemory = 16 << 20  // bytes of a sheet, or of its texts; larger ones are in a temporary file
	maxFiles    = 1000      // in an XLSX
	maxMerged   = 100_000   // merged cells of a sheet
	maxSheets   = 100       // sheets that are listed as unread
)

var errXLSX = because("it cannot be read as .xlsx")

// readXLSX reads the rows of the first visible sheet, and returns the names of the other visible sheets with values. Formulas have the
// values that were saved with the file.
func readXLSX(file *io.SectionReader, take func(Row) error) (unread []string, err error) {
	merged, err := unpacks(file)
	if err != nil {
		return nil, err
	}
	taking := false
	defer func() { // the library may panic on malformed input
		if taking {
			return
		}
		if r := recover(); r != nil {
			err = errXLSX
		}
	}()
	book, err := excelize.OpenReader(file, excelize.Options{UnzipSizeLimit: maxUnpacked, UnzipXMLSizeLimit: maxInMemory, RawCellValue: true})
	if err != nil {
		return nil, errXLSX
	}
	defer book.Close() //nolint:errcheck // temporary files
	sheets := slices.DeleteFunc(book.GetSheetList(), func(name string) bool {
		shown, err := book.GetSheetVisible(name)
		return err != nil || !shown
	})
	if len(sheets) == 0 {
		return nil, errXLSX
	}
	others, err := openCells(file, book, sheets[0], merged)
	if err != nil {
		return nil, errXLSX
	}
	defer others.part.Close() //nolint:errcheck // in memory
	unread = slices.DeleteFunc(sheets[1:min(len(sheets), maxSheets)], func(name string) bool { return isBlank(book, name) })
	for i, name := range unread {
		unread[i] = "sheet " + strconv.Quote(name)
	}
	rows, err := book.Rows(sheets[0])
	if err != nil {
		return nil, errXLSX
	}
	defer rows.Close() //nolint:errcheck // temporary files
	for number := 1; rows.Next(); number++ {
		cells, err := rows.Columns()
		if err != nil {
			return nil, errXLSX
		}
		r := Row{Number: number, Cells: cells}
		shown, err := others.read(number)
		if err != nil {
			return nil, errXLSX
		}
		for _, c := range shown {
			r.set(c)
		}
		others.merge(&r)
		others.hide(&r)
		taking = true
		if err := take(r); err != nil {
			return nil, err
		}
		taking = false
	}
	if rows.Error() != nil {
		return nil, errXLSX
	}
	return unread, nil
}

// isBlank reports whether a sheet has no values.
func isBlank(book *excelize.File, sheet string) bool {
	rows, err := book.Rows(sheet)
	if err != nil {
		return true
	}
	defer rows.Close() //nolint:errcheck // temporary files
	for rows.Next() {
		if cells, err := rows.Columns(); err != nil || filled(cells) > 0 {
			return err != nil
		}
	}
	return true
}

// unpacks returns the ranges of merged cells by part. It refuses an archive that is not an XLSX, or is too large when it is unpacked.
func unpacks(file *io.SectionReader) (merged map[string][]string, err error) {
	archive, err := zip.NewReader(file, file.Size())
	if err != nil {
		return nil, errXLSX
	}
	if len(archive.File) > maxFiles {
		return nil, errPacked
	}
	var total uint64
	sheets, open := false, false
	for _, f := range archive.File {
		if total += f.UncompressedSize64; f.UncompressedSize64 > maxUnpacked || total > maxUnpacked {
			return nil, errPacked
		}
		sheets, open = sheets || f.Name == "xl/workbook.xml", open || f.Name == "content.xml"
	}
	switch {
	case open:
		return nil, because("an .ods file: save it as .xlsx")
	case !sheets:
		return nil, because("an archive, but no .xlsx")
	}
	merged = map[string][]string{}
	for _, f := range archive.File {
		switch merged[f.Name], err = whole(f); {
		case errors.Is(err, errMade):
			return nil, errXLSX
		case err != nil:
			return nil, because("it is damaged: a part of it cannot be unpacked")
		}
	}
	return merged, nil
}

// whole returns the ranges of merged cells of a part of an archive. It returns an error if the part is damaged or truncated, or would use
// much memory. The library ignores such damage and returns the rows before it.
func whole(f *zip.File) (merged []string, err error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close() //nolint:errcheck // in memory
	m := &meter{Reader: bufio.NewReader(r)}
	if err := m.nest(); errors.Is(err, errMade) || err != nil && strings.HasPrefix(f.Name, "xl/worksheets/") {
		return nil, err
	}
	_, err = io.Copy(io.Discard, io.LimitReader(m.Reader, maxUnpacked))
	return m.merged, err
}

const (
	maxDepth = 1000    // of nested elements
	maxTag   = 1 << 20 // bytes of a tag
)

// errMade refuses XML that would use much memory: for each open element and attribute, the decoder uses ten times its bytes.
var errMade = errors.New("the XML is nested too deep, a tag is too long, or too many cells are merged")

// meter reads XML as the library does, and stores only the ranges of merged cells.
type meter struct {
	*bufio.Reader

	last   byte
	tag    int // bytes since the tag's start; 0: in a text
	merged []string
}

// ReadByte implements [io.ByteReader], so that a decoder does not read ahead.
func (m *meter) ReadByte() (c byte, err error) {
	if m.last, err = m.Reader.ReadByte(); m.last == '<' && m.tag == 0 || m.tag > 0 {
		if m.tag++; m.tag > maxTag {
			return 0, errMade
		}
	}
	return m.last, err
}

// nest returns an error for XML that is malformed, truncated, or would use much memory.
func (m *meter) nest() error {
	d := xml.NewDecoder(m)
	d.CharsetReader = func(_ string, text io.Reader) (io.Reader, error) { return text, nil }
	for depth := 0; ; {
		token, err := d.RawToken() // unlike Token, it has no list of open elements
		switch t := token.(type) {
		case xml.StartElement:
			if depth++; t.Name.Local == "mergeCell" {
				m.merged = append(m.merged, attribute(t, "ref"))
			}
		case xml.EndElement:
			depth--
		}
		if m.tag = 0; m.last == '<' { // the next token's first byte has ended a text
			m.tag = 1
		}
		switch {
		case depth > maxDepth, len(m.merged) > maxMerged:
			return errMade
		case errors.Is(err, io.EOF) && depth == 0:
			return nil
		case err != nil:
			return err
		}
	}
}

// Template returns an empty spreadsheet with a row of names.
func Template(w io.Writer, names []string) error {
	book := excelize.NewFile()
	defer book.Close() //nolint:errcheck // nothing is in temporary files
	sheet := book.GetSheetName(0)
	if err := book.SetSheetRow(sheet, "A1", &names); err != nil {
		return fmt.Errorf("draw a template: %w", err)
	}
	if err := book.Write(w); err != nil {
		return fmt.Errorf("send a template: %w", err)
	}
	return nil
}
