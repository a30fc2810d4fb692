package spreadsheet

import (
	"archive/zip"
	"encoding/xml"
	"errors"
	"io"
	"path"
	"strconv"
	"strings"

	"github.com/xuri/excelize/v2"

	"bahi/domain/fault"
)

// hole is a cell in which a sheet shows something, or would, that the file does not have as a value.
type hole struct {
	column int // from 0
	why    string
}

// in returns what is wrong with a cell of this row.
func (h hole) in(row int) string {
	cell, _ := excelize.CoordinatesToCellName(h.column+1, row) // it was one
	return cell + " " + h.why
}

// holesIn returns the holes of a sheet by its rows. Programs that write files without computing formulas leave them without a value; the library
// reads those as empty cells, and an error such as #N/A as that text.
func holesIn(file *io.SectionReader, book *excelize.File, sheet string) (map[int][]hole, error) {
	archive, err := zip.NewReader(file, file.Size())
	if err != nil {
		return nil, err
	}
	name, err := partOf(archive, book, sheet)
	if err != nil {
		return nil, err
	}
	r, err := archive.Open(name)
	if err != nil {
		return nil, err
	}
	defer r.Close() //nolint:errcheck // in memory
	holes, row, cell := map[int][]hole{}, 0, cellReader{}
	d := xml.NewDecoder(r)
	d.CharsetReader = func(_ string, text io.Reader) (io.Reader, error) { return text, nil }
	for {
		token, err := d.RawToken()
		switch t := token.(type) {
		case xml.StartElement:
			switch t.Name.Local {
			case "row":
				if row++; attribute(t, "r") != "" {
					row, _ = strconv.Atoi(attribute(t, "r")) // the library has refused others
				}
				cell.column = -1
			case "c":
				cell.begin(t)
			default:
				cell.inside(t.Name.Local)
			}
		case xml.CharData:
			cell.text(t)
		case xml.EndElement:
			if why := cell.end(t.Name.Local); why != "" && row <= mostBlank {
				holes[row] = append(holes[row], hole{cell.column, why})
			}
			if t.Name.Local == "sheetData" {
				return holes, nil
			}
		}
		if errors.Is(err, io.EOF) {
			return holes, nil
		} else if err != nil {
			return nil, err
		}
	}
}

// partOf returns the name that a sheet has in the archive.
func partOf(archive *zip.Reader, book *excelize.File, sheet string) (string, error) {
	const relations = "xl/_rels/workbook.xml.rels"
	text, _ := book.Pkg.Load(relations)
	content, _ := text.([]byte)
	var related struct {
		Relationship []struct {
			ID     string `xml:"Id,attr"`
			Target string `xml:"Target,attr"`
		}
	}
	if err := xml.Unmarshal(content, &related); err != nil {
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

// cellReader reads one cell at a time.
type cellReader struct {
	column  int    // from 0
	kind    string // s, n, str, e, …
	formula bool   // it has one
	has     bool   // it has a value, which may be empty
	value   bool   // the text is that of a value
	shown   []byte
}

func (c *cellReader) begin(t xml.StartElement) {
	*c = cellReader{column: c.column + 1, kind: attribute(t, "t"), shown: c.shown[:0]}
	if column, _, err := excelize.CellNameToCoordinates(attribute(t, "r")); err == nil {
		c.column = column - 1
	}
}

func (c *cellReader) inside(name string) {
	c.value = name == "v" || name == "t"
	c.formula, c.has = c.formula || name == "f", c.has || c.value
}

func (c *cellReader) text(text []byte) {
	if c.value && len(c.shown) < len("#GETTING_DATA") {
		c.shown = append(c.shown, text...)
	}
}

// end returns why the cell has no value, if it ends and has none. A formula whose value is an empty text has the kind str and an empty value.
func (c *cellReader) end(name string) string {
	c.value = false
	shown := strings.TrimSpace(string(c.shown))
	switch {
	case name != "c":
	case c.kind == "e" && shown != "":
		return "has the error " + shown
	case c.formula && shown == "" && !(c.kind == "str" && c.has):
		return "has a formula whose value is not in the file: open it in an office program and save it"
	}
	return ""
}

func attribute(t xml.StartElement, name string) string {
	for _, a := range t.Attr {
		if a.Name.Local == name && a.Name.Space == "" {
			return a.Value
		}
	}
	return ""
}

// whole refuses the row for its holes in columns that are known.
func (r Row) whole(columns []string) error {
	var faults []error
	for _, h := range r.holes {
		if h.column < len(columns) && columns[h.column] != "" {
			faults = append(faults, fault.Fields(fault.Field{Field: columns[h.column], Message: h.in(r.Number)}))
		}
	}
	return fault.Join(faults...)
}
