// Package sheet writes tables for spreadsheets, as CSV and as XLSX, in bounded memory.
//
// Texts never become formulas: CSV has an apostrophe before what a program could take for one, XLSX has text cells.
package sheet

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/shopspring/decimal"
	"github.com/xuri/excelize/v2"

	"bahi/domain/fault"
	"bahi/domain/unit"
)

// The media types.
const (
	CSV  = "text/csv"
	XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
)

// Table is what is written.
type Table struct {
	Name    string
	Columns []string

	// Rows calls take for each row. A row has a value for each column: string, int64, decimal.Decimal, unit.Date, bool, or nil for
	// an empty cell. Take does not keep the row.
	Rows func(take func(row []any) error) error
}

// Write returns the function that writes tables of a media type.
func Write(kind string) func(io.Writer, Table) error {
	return map[string]func(io.Writer, Table) error{CSV: writeCSV, XLSX: writeXLSX}[kind]
}

// ByteOrderMark tells spreadsheets that a text is UTF-8. Without it they garble names in Indian scripts.
const ByteOrderMark = "\ufeff"

func writeCSV(w io.Writer, t Table) error {
	if _, err := io.WriteString(w, ByteOrderMark); err != nil {
		return err //nolint:wrapcheck // it is the client's
	}
	out := csv.NewWriter(w)
	if err := out.Write(t.Columns); err != nil {
		return err //nolint:wrapcheck // it is the client's
	}
	line := make([]string, len(t.Columns))
	err := t.Rows(func(row []any) error {
		for i, value := range row {
			switch v := value.(type) {
			case nil:
				line[i] = ""
			case string:
				line[i] = Text(v)
			default:
				line[i] = fmt.Sprint(v)
			}
		}
		return out.Write(line)
	})
	out.Flush()
	if err == nil {
		err = out.Error()
	}
	return err
}

// formula has the first characters that a spreadsheet may take for a formula (OWASP, CSV injection; CONTRACT.md L11): the
// signs, their full-width forms, a separator that begins a new cell, and characters that some programs drop first.
const formula = "=+-@;＝＋－＠；\t\r\n\uFEFF"

// Text returns text for a cell of a CSV. A spreadsheet shows text after an apostrophe unchanged.
func Text(text string) string {
	if first, _ := utf8.DecodeRuneInString(text); text != "" && strings.ContainsRune(formula, first) {
		return "'" + text
	}
	return text
}

// maxDigits is how many digits of a number a spreadsheet keeps. Longer numbers are texts, so that no digit is lost.
const maxDigits = 15

func writeXLSX(w io.Writer, t Table) (err error) {
	file := excelize.NewFile()
	defer func() {
		if closed := file.Close(); err == nil {
			err = closed
		}
	}()
	const first = "Sheet1" // of a new file
	if err := file.SetSheetName(first, t.Name); err != nil {
		return fmt.Errorf("name the sheet: %w", err)
	}
	head, err := file.NewStyle(&excelize.Style{Font: &excelize.Font{Bold: true}})
	if err != nil {
		return fmt.Errorf("style the head: %w", err)
	}
	dates, err := file.NewStyle(&excelize.Style{CustomNumFmt: new("yyyy-mm-dd")})
	if err != nil {
		return fmt.Errorf("style dates: %w", err)
	}
	out, err := file.NewStreamWriter(t.Name)
	if err != nil {
		return fmt.Errorf("begin the sheet: %w", err)
	}
	if err := out.SetPanes(&excelize.Panes{Freeze: true, YSplit: 1, TopLeftCell: "A2", ActivePane: "bottomLeft"}); err != nil {
		return fmt.Errorf("freeze the head: %w", err)
	}
	cells := make([]any, len(t.Columns))
	for i, name := range t.Columns {
		cells[i] = excelize.Cell{StyleID: head, Value: name}
	}
	if err := out.SetRow("A1", cells); err != nil {
		return fmt.Errorf("write the head: %w", err)
	}
	written := 1
	err = t.Rows(func(row []any) error {
		if written++; written > excelize.TotalRows {
			return errTooLong
		}
		for i, value := range row {
			cells[i] = cell(value, dates)
		}
		return out.SetRow("A"+strconv.Itoa(written), cells)
	})
	if err == nil {
		err = out.Flush()
	}
	if err == nil {
		err = file.Write(w)
	}
	return err //nolint:wrapcheck // the table's, or the client's
}

// errTooLong refuses a table that has more rows than a sheet.
var errTooLong = fault.Fields(fault.Field{Field: "from", Message: fmt.Sprintf("a sheet has %d lines at most: ask for fewer days with from and to", excelize.TotalRows)})

// cell returns a value as the library takes it.
func cell(value any, dates int) any {
	switch v := value.(type) {
	case unit.Date:
		return excelize.Cell{StyleID: dates, Value: v.Time().In(time.UTC)}
	case decimal.Decimal:
		if v.NumDigits() > maxDigits {
			return v.String()
		}
		return v.InexactFloat64()
	default:
		return v
	}
}
