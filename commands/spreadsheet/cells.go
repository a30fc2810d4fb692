package spreadsheet

import (
	"archive/zip"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/xuri/excelize/v2"

	"bahi/domain/fault"
)

// cell is a cell whose displayed value differs from the library's value.
type cell struct {
	column int    // from 0
	shown  string // displayed value
	wrong  string // reason why the displayed value is unknown; empty: known
	money  string // currency of the number's format, except the rupee
	dated  bool   // the number's format is a date's
}

// in returns the fault of the cell in the given row.
func (c cell) in(row int) string {
	name, _ := excelize.CoordinatesToCellName(c.column+1, row) // valid: parsed from a name
	return name + " " + c.wrong
}

// whole refuses the row if a cell in a known column has no displayed value.
func (r Row) whole(columns []string) error {
	var faults []error
	for _, c := range r.wrong {
		if c.column < len(columns) && columns[c.column] != "" {
			faults = append(faults, fault.Wrong(columns[c.column], c.in(r.Number)))
		}
	}
	return fault.Join(faults...)
}

// set changes a cell of the row to its displayed value.
func (r *Row) set(c cell) {
	r.Cells = append(r.Cells, make([]string, max(0, c.column+1-len(r.Cells)))...)
	if r.Cells[c.column] = c.shown; c.wrong != "" {
		r.wrong = append(r.wrong, c)
	} else if c.money != "" {
		r.foreign = append(r.foreign, c)
	} else if c.dated {
		r.dates = append(r.dates, c)
	}
}

// merged is a cell that extends over the rows below its own.
type merged struct {
	cell

	top, bottom int
}

// mergedCells parses ranges such as B2:B5. It ignores ranges of one row, invalid ones, and those beyond the last column of a file.
func mergedCells(ranges []string) (all []merged) {
	for _, r := range ranges {
		first, last, _ := strings.Cut(r, ":")
		column, top, err := excelize.CellNameToCoordinates(first)
		_, bottom, wrong := excelize.CellNameToCoordinates(last)
		if err == nil && wrong == nil && bottom > top && column <= maxColumns {
			all = append(all, merged{cell: cell{column: column - 1}, top: top, bottom: bottom})
		}
	}
	slices.SortFunc(all, func(a, b merged) int { return a.top - b.top })
	return all
}

// merge copies the values of merged cells that begin above the row into the row. It leaves a blank row blank.
func (r *cellReader) merge(row *Row) {
	r.open = slices.DeleteFunc(r.open, func(m merged) bool { return m.bottom < row.Number })
	if row.filled() > 0 {
		for _, m := range r.open {
			row.set(m.cell)
		}
	}
	for ; len(r.merged) > 0 && r.merged[0].top <= row.Number; r.merged = r.merged[1:] {
		m := r.merged[0]
		if m.column < len(row.Cells) {
			m.shown = row.Cells[m.column]
		}
		for _, c := range slices.Concat(row.wrong, row.foreign, row.dates) {
			if c.column == m.column {
				m.cell = c
			}
		}
		r.open = append(slices.DeleteFunc(r.open, func(o merged) bool { return o.column == m.column }), m) // ranges do not overlap
	}
}

// hide marks a hidden row, and moves the values of hidden columns to the row's hidden columns.
func (r *cellReader) hide(row *Row) {
	row.hidden = r.hidden && r.row == row.Number
	for _, h := range r.hiddenColumns {
		for i := h[0]; i < min(h[1], len(row.Cells)); i++ {
			if row.Cells[i] != "" {
				row.hiddenColumns = append(row.hiddenColumns, i)
			}
			row.Cells[i] = ""
		}
		for _, cells := range []*[]cell{&row.wrong, &row.foreign, &row.dates} {
			*cells = slices.DeleteFunc(*cells, func(c cell) bool { return h[0] <= c.column && c.column < h[1] })
		}
	}
}

// cellReader reads the kinds of cells, because the library does not return them. It returns an uncomputed formula as an empty cell, and an
// error, a date or a boolean as its stored text or number.
type cellReader struct {
	part  io.ReadCloser
	xml   *xml.Decoder
	forms forms
	row   int // last read row
	cells []cell
	ended bool

	merged []merged // from below the last row, by their first row
	open   []merged // those that extend below the last row

	hidden        bool     // the last read row is hidden
	hiddenColumns [][2]int // ranges, from 0, without the end

	column  int    // from 0
	kind    string // s, n, str, b, e, …
	style   string
	formula bool // the cell has a formula
	valued  bool // the cell has a value, which may be empty
	inside  bool // the text belongs to the cell's value
	value   []byte
}

// openCells returns the reader of a sheet. ranges are those of merged cells, by part. The caller closes the sheet's part.
func openCells(file *io.SectionReader, book *excelize.File, sheet string, ranges map[string][]string) (*cellReader, error) {
	archive, err := zip.NewReader(file, file.Size())
	if err != nil {
		return nil, err
	}
	name, err := partOf(archive, book, sheet)
	if err != nil {
		return nil, err
	}
	part, err := archive.Open(name)
	if err != nil {
		return nil, err
	}
	d := xml.NewDecoder(part)
	d.CharsetReader = func(_ string, text io.Reader) (io.Reader, error) { return text, nil }
	return &cellReader{part: part, xml: d, forms: formsOf(book), merged: mergedCells(ranges[name])}, nil
}

// partOf returns the name of a sheet's file in the archive.
func partOf(archive *zip.Reader, book *excelize.File, sheet string) (string, error) {
	var related struct {
		Relationship []struct {
			ID     string `xml:"Id,attr"`
			Target string `xml:"Target,attr"`
		}
	}
	if err := unmarshal(book, "xl/_rels/workbook.xml.rels", &related); err != nil {
		return "", err
	}
	for _, s := range book.WorkBook.Sheets.Sheet {
		for _, r := range related.Relationship {
			if s.Name != sheet || s.ID != r.ID {
				continue
			}
			target := strings.ReplaceAll(r.Target, `\`, "/")
			if !strings.HasPrefix(target, "/") {
				target = path.Join("/xl", target)
			}
			for _, f := range archive.File {
				if strings.EqualFold("/"+strings.ReplaceAll(f.Name, `\`, "/"), path.Clean(target)) {
					return f.Name, nil
				}
			}
		}
	}
	return "", errXLSX
}

// unmarshal reads a small part of the archive.
func unmarshal(book *excelize.File, name string, into any) error {
	part, _ := book.Pkg.Load(name)
	text, _ := part.([]byte)
	if err := xml.Unmarshal(text, into); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	return nil
}

// read returns the cells of a row whose displayed value differs from the library's. Callers read rows in ascending order.
func (r *cellReader) read(row int) ([]cell, error) {
	for r.row < row && !r.ended {
		if err := r.next(); err != nil {
			return nil, err
		}
	}
	if r.row != row {
		return nil, nil
	}
	return r.cells, nil
}

// next reads up to the end of a row.
func (r *cellReader) next() error {
	for {
		token, err := r.xml.RawToken()
		switch t := token.(type) {
		case xml.StartElement:
			r.begin(t)
		case xml.CharData:
			if r.inside && len(r.value) < maxDigits {
				r.value = append(r.value, t[:min(len(t), maxDigits)]...)
			}
		case xml.EndElement:
			r.inside = false
			switch t.Name.Local {
			case "c":
				if c := (cell{column: r.column}); r.otherwise(&c) {
					r.cells = append(r.cells, c)
				}
			case "row":
				return nil
			case "sheetData":
				r.ended = true
				return nil
			}
		}
		if errors.Is(err, io.EOF) {
			r.ended = true
			return nil
		} else if err != nil {
			return fmt.Errorf("read a sheet: %w", err)
		}
	}
}

func (r *cellReader) begin(t xml.StartElement) {
	at := attribute(t, "r")
	switch t.Name.Local {
	case "col":
		if hidden, _ := strconv.ParseBool(attribute(t, "hidden")); hidden {
			first, _ := strconv.Atoi(attribute(t, "min"))
			last, _ := strconv.Atoi(attribute(t, "max"))
			r.hiddenColumns = append(r.hiddenColumns, [2]int{max(first-1, 0), last})
		}
	case "row":
		if r.row++; at != "" {
			r.row, _ = strconv.Atoi(at) // the library refuses an invalid number
		}
		r.column, r.cells = -1, r.cells[:0]
		r.hidden, _ = strconv.ParseBool(attribute(t, "hidden"))
	case "c":
		r.kind, r.style, r.formula, r.valued, r.value = attribute(t, "t"), attribute(t, "s"), false, false, r.value[:0]
		r.column++
		if column, _, err := excelize.CellNameToCoordinates(at); err == nil {
			r.column = column - 1
		}
	case "f":
		r.formula = true
	case "v", "t":
		r.valued, r.inside = true, true
	}
}

// otherwise reports whether the displayed value of the current cell differs from the library's value, and completes the cell. A formula
// with an empty text has the kind str and an empty value.
func (r *cellReader) otherwise(c *cell) bool {
	value := strings.TrimSpace(string(r.value))
	switch {
	case r.formula && value == "" && (r.kind != "str" || !r.valued):
		c.wrong = "has a formula whose value is not in the file: open it in an office program and save it"
	case value == "":
	case r.kind == "e":
		c.wrong = "has the error " + value
	case r.kind == "b":
		c.shown = map[string]string{"0": "FALSE", "1": "TRUE"}[value]
	case r.kind == "" || r.kind == "n":
		in := r.forms.style(r.style)
		c.shown, c.money, c.dated = r.forms.number(value, in), in.money, in.form == asDate
	}
	return c.wrong != "" || c.money != "" || c.shown != "" && c.shown != value
}

func attribute(t xml.StartElement, name string) string {
	for _, a := range t.Attr {
		if a.Name.Local == name && a.Name.Space == "" {
			return a.Value
		}
	}
	return ""
}
