package spreadsheet

import (
	"archive/zip"
	"bufio"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/xuri/excelize/v2"
)

const (
	maxUnpacked = 100 << 20 // bytes of all files in an XLSX
	maxInMemory = 16 << 20  // bytes of a sheet, or of its texts; larger ones are in a temporary file
	maxFiles    = 1000      // in an XLSX
)

var errXLSX = because("it cannot be read as .xlsx")

// readXLSX reads the rows of the first visible sheet. Formulas have the values that were saved with the file.
func readXLSX(file *io.SectionReader, take func(Row) error) (err error) {
	if err := unpacks(file); err != nil {
		return err
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
		return errXLSX
	}
	defer book.Close() //nolint:errcheck // temporary files
	sheets := slices.DeleteFunc(book.GetSheetList(), func(name string) bool {
		shown, err := book.GetSheetVisible(name)
		return err != nil || !shown
	})
	if len(sheets) == 0 {
		return errXLSX
	}
	others, err := openCells(file, book, sheets[0])
	if err != nil {
		return errXLSX
	}
	defer others.part.Close() //nolint:errcheck // in memory
	rows, err := book.Rows(sheets[0])
	if err != nil {
		return errXLSX
	}
	defer rows.Close() //nolint:errcheck // temporary files
	for number := 1; rows.Next(); number++ {
		cells, err := rows.Columns()
		if err != nil {
			return errXLSX
		}
		r := Row{Number: number, Cells: cells}
		shown, err := others.read(number)
		if err != nil {
			return errXLSX
		}
		for _, c := range shown {
			r.Cells = append(r.Cells, make([]string, max(0, c.column+1-len(r.Cells)))...)
			if r.Cells[c.column] = c.shown; c.wrong != "" {
				r.wrong = append(r.wrong, c)
			} else if c.money != "" {
				r.foreign = append(r.foreign, c)
			} else if c.dated {
				r.dates = append(r.dates, c)
			}
		}
		taking = true
		if err := take(r); err != nil {
			return err
		}
		taking = false
	}
	if rows.Error() != nil {
		return errXLSX
	}
	return nil
}

// unpacks refuses an archive that is not an XLSX, or is too large when it is unpacked.
func unpacks(file *io.SectionReader) error {
	archive, err := zip.NewReader(file, file.Size())
	if err != nil {
		return errXLSX
	}
	if len(archive.File) > maxFiles {
		return errPacked
	}
	var total uint64
	sheets, open := false, false
	for _, f := range archive.File {
		if total += f.UncompressedSize64; f.UncompressedSize64 > maxUnpacked || total > maxUnpacked {
			return errPacked
		}
		sheets, open = sheets || f.Name == "xl/workbook.xml", open || f.Name == "content.xml"
	}
	switch {
	case open:
		return because("an .ods file: save it as .xlsx")
	case !sheets:
		return because("an archive, but no .xlsx")
	}
	for _, f := range archive.File {
		switch err := whole(f); {
		case errors.Is(err, errMade):
			return errXLSX
		case err != nil:
			return because("it is damaged: a part of it cannot be unpacked")
		}
	}
	return nil
}

// whole returns an error if a part of an archive is damaged or truncated, or would use much memory. The library ignores such damage and
// returns the rows before it.
func whole(f *zip.File) error {
	r, err := f.Open()
	if err != nil {
		return err
	}
	defer r.Close() //nolint:errcheck // in memory
	m := &meter{Reader: bufio.NewReader(r)}
	if err := m.nest(); errors.Is(err, errMade) || err != nil && strings.HasPrefix(f.Name, "xl/worksheets/") {
		return err
	}
	_, err = io.Copy(io.Discard, io.LimitReader(m.Reader, maxUnpacked))
	return err
}

const (
	maxDepth = 1000    // of nested elements
	maxTag   = 1 << 20 // bytes of a tag
)

// errMade refuses XML that would use much memory: for each open element and attribute, the decoder uses ten times its bytes.
var errMade = errors.New("the XML is nested too deep, or a tag is too long")

// meter reads XML as the library does, and stores nothing.
type meter struct {
	*bufio.Reader

	last byte
	tag  int // bytes since the tag's start; 0: in a text
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
		switch token.(type) {
		case xml.StartElement:
			depth++
		case xml.EndElement:
			depth--
		}
		if m.tag = 0; m.last == '<' { // the next token's first byte has ended a text
			m.tag = 1
		}
		switch {
		case depth > maxDepth:
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
