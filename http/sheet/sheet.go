// Package sheet writes tables for spreadsheets, as CSV and as XLSX, in bounded memory.
//
// Texts never become formulas: in CSV an apostrophe precedes each text that a program could take for a formula. XLSX has text cells.
package sheet

import (
	"encoding/csv"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// The media types.
const (
	CSV  = "text/csv"
	XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
)

// Table is the content of a file.
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

// ByteOrderMark marks a text as UTF-8 for spreadsheets. Without it they garble names in Indian scripts.
const ByteOrderMark = "\ufeff"

func writeCSV(w io.Writer, t Table) error {
	if _, err := io.WriteString(w, ByteOrderMark); err != nil {
		return err
	}
	out := csv.NewWriter(w)
	if err := out.Write(t.Columns); err != nil {
		return err
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
