package sheet

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"

	"github.com/shopspring/decimal"
	"github.com/xuri/excelize/v2"

	"bahi/domain/unit"
)

// workbook writes the rows of an XLSX one by one. The library would hold all rows until the workbook is complete, in memory and in a file.
// So the library creates only an empty workbook, and this package writes the rows between its parts.
type workbook struct {
	zip     *zip.Writer
	table   Table
	columns []string // A, B, C …
	most    int      // lines of a sheet

	sheets int
	out    io.Writer // the current sheet's
	lines  int       // lines in sheet
	line   []byte
	frame
}

// frame is a workbook without rows.
type frame struct {
	parts []*zip.File
	tail  []byte // end of the newest sheet, after its rows
	dates int    // the style of dates
}

func writeXLSX(w io.Writer, t Table) error { return writeLines(w, t, excelize.TotalRows) }

// writeLines is writeXLSX for sheets with at most the given number of lines. Further rows are in another sheet.
func writeLines(w io.Writer, t Table, most int) error {
	b := &workbook{zip: zip.NewWriter(w), table: t, most: most, columns: make([]string, len(t.Columns))}
	b.zip.RegisterCompressor(zip.Deflate, func(to io.Writer) (io.WriteCloser, error) { return flate.NewWriter(to, flate.BestSpeed) })
	for i := range b.columns {
		b.columns[i], _ = excelize.ColumnNumberToName(i + 1) // fails only for thousands of columns
	}
	err := b.nextSheet()
	if err == nil {
		err = t.Rows(b.row)
	}
	if err == nil {
		err = b.finish()
	}
	return err
}

// nextSheet ends the current sheet and begins another one.
func (b *workbook) nextSheet() (err error) {
	if b.sheets > 0 {
		if _, err := b.out.Write(b.tail); err != nil {
			return err
		}
	}
	b.sheets++
	b.lines = 1 // the head
	if b.frame, err = b.empty(); err != nil {
		return fmt.Errorf("make an empty workbook: %w", err)
	}
	for _, part := range b.parts {
		if part.Name != sheetPart(b.sheets) {
			continue
		}
		text, err := contentOf(part)
		if err != nil {
			return err
		}
		at := bytes.Index(text, []byte("</sheetData>"))
		if at < 0 {
			return errors.New("the sheet of an empty workbook has no rows")
		}
		b.tail = text[at:]
		if b.out, err = b.zip.Create(part.Name); err == nil {
			_, err = b.out.Write(text[:at])
		}
		return err
	}
	return errors.New("an empty workbook has no sheet")
}

// empty creates a workbook with the number of sheets begun so far. Each sheet has its head.
func (b *workbook) empty() (f frame, err error) {
	file := excelize.NewFile()
	defer file.Close() //nolint:errcheck // it is in memory
	head, err := file.NewStyle(&excelize.Style{Font: &excelize.Font{Bold: true}})
	if err != nil {
		return f, err
	}
	if f.dates, err = file.NewStyle(&excelize.Style{CustomNumFmt: new("yyyy-mm-dd")}); err != nil {
		return f, err
	}
	cells := make([]any, len(b.table.Columns))
	for i, name := range b.table.Columns {
		cells[i] = excelize.Cell{StyleID: head, Value: name}
	}
	for nth := range b.sheets {
		name := b.table.Name
		if nth > 0 {
			name = fmt.Sprint(name, " ", nth+1)
			_, err = file.NewSheet(name)
		} else {
			err = file.SetSheetName("Sheet1", name) // a new file's sheet has this name
		}
		if err == nil {
			err = beginSheet(file, name, cells)
		}
		if err != nil {
			return f, err
		}
	}
	text, err := file.WriteToBuffer()
	if err != nil {
		return f, err
	}
	all, err := zip.NewReader(bytes.NewReader(text.Bytes()), int64(text.Len()))
	if err == nil {
		f.parts = all.File
	}
	return f, err
}

func beginSheet(file *excelize.File, name string, head []any) error {
	out, err := file.NewStreamWriter(name)
	if err == nil {
		err = out.SetPanes(&excelize.Panes{Freeze: true, YSplit: 1, TopLeftCell: "A2", ActivePane: "bottomLeft"})
	}
	if err == nil {
		err = out.SetRow("A1", head)
	}
	if err == nil {
		err = out.Flush()
	}
	return err
}

func sheetPart(nth int) string { return fmt.Sprintf("xl/worksheets/sheet%d.xml", nth) }

func contentOf(part *zip.File) ([]byte, error) {
	in, err := part.Open()
	if err != nil {
		return nil, err
	}
	defer in.Close() //nolint:errcheck // it is in memory
	return io.ReadAll(in)
}

// finish ends the last sheet and adds the other parts of the workbook.
func (b *workbook) finish() error {
	if _, err := b.out.Write(b.tail); err != nil {
		return err
	}
	sheets := map[string]bool{}
	for nth := range b.sheets {
		sheets[sheetPart(nth+1)] = true
	}
	for _, part := range b.parts {
		if !sheets[part.Name] {
			if err := b.zip.Copy(part); err != nil {
				return err
			}
		}
	}
	return b.zip.Close()
}

// row writes a row.
func (b *workbook) row(row []any) error {
	if b.lines == b.most {
		if err := b.nextSheet(); err != nil {
			return err
		}
	}
	b.lines++
	number := strconv.Itoa(b.lines)
	b.line = append(append(append(b.line[:0], `<row r="`...), number...), `">`...)
	for i, value := range row {
		if value != nil {
			b.line = append(append(append(b.line, `<c r="`...), b.columns[i]...), number...)
			b.line = b.cell(value)
		}
	}
	_, err := b.out.Write(append(b.line, "</row>"...))
	return err
}

// maxDigits is the number of digits that spreadsheets store exactly. Longer numbers are texts, so that no digit is lost.
const maxDigits = 15

// cell appends the rest of a cell to the line, after its place.
func (b *workbook) cell(value any) []byte {
	switch v := value.(type) {
	case decimal.Decimal:
		if v.NumDigits() <= maxDigits {
			return fmt.Appendf(b.line, `"><v>%s</v></c>`, v.String())
		}
	case int64:
		return fmt.Appendf(b.line, `"><v>%d</v></c>`, v)
	case unit.Date:
		return fmt.Appendf(b.line, `" s="%d"><v>%d</v></c>`, b.dates, serial(v))
	case bool:
		return fmt.Appendf(b.line, `" t="b"><v>%d</v></c>`, map[bool]int{true: 1}[v])
	}
	text := bytes.NewBuffer(append(b.line, `" t="inlineStr"><is><t xml:space="preserve">`...))
	_ = xml.EscapeText(text, escape.ReplaceAll([]byte(fmt.Sprint(value)), []byte("_x005F$0"))) // a buffer never fails
	text.WriteString("</t></is></c>")
	return text.Bytes()
}

// escape matches a text that a spreadsheet reads as a character's number if an underscore follows (ECMA-376, part 1, 22.4.2.4).
var escape = regexp.MustCompile("_x[0-9A-Fa-f]{4}")

// serial returns a day as spreadsheets count: from the end of 1899 on, with a 29 February in 1900.
func serial(day unit.Date) int64 {
	const (
		from     = 25_569  // 1970-01-01
		leapless = -25_508 // 1900-03-01, the same
	)
	if day < leapless {
		return int64(day) + from - 1
	}
	return int64(day) + from
}
