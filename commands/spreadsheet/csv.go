package spreadsheet

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
)

// readCSV reads rows of text with a separator between cells.
func readCSV(text []byte, take func(Row) error) error {
	text, err := decoded(text)
	if err != nil {
		return err
	}
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("<")) {
		return because("a web page or XML, whatever its name: open it in an office program and save it as .xlsx")
	}
	text = bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")), []byte("\r"), []byte("\n"))
	comma := separator(text)
	if named := separatorLine.FindSubmatch(text); named != nil {
		comma, text = rune(named[1][0]), text[len(named[0]):]
	}
	for line := range bytes.Lines(text) {
		if bytes.Count(line, []byte(string(comma))) >= maxCells {
			return errCells
		}
	}
	reader := csv.NewReader(bytes.NewReader(text))
	reader.Comma, reader.FieldsPerRecord, reader.ReuseRecord = comma, -1, true
	row, lines, at := 0, 0, int64(0) // up to the last record
	for {
		cells, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		r := Row{Cells: cells}
		begins := lines + 1
		if broken, ok := errors.AsType[*csv.ParseError](err); ok {
			r.Wrong, begins = "a quote is not closed, or is inside a cell: the row, and the rows up to the next quote, cannot be read",
				broken.StartLine
		} else if err != nil {
			return err
		} else if len(cells) > 0 {
			begins, _ = reader.FieldPos(0)
		}
		row += begins - lines // the reader skips blank lines
		r.Number = row
		lines += bytes.Count(text[at:reader.InputOffset()], []byte("\n"))
		at = reader.InputOffset()
		for _, cell := range cells {
			if r.Wrong == "" && !utf8.ValidString(cell) {
				r.Wrong = "it has bytes that are not UTF-8"
			}
		}
		if err := take(r); err != nil {
			return err
		}
	}
}

var (
	utf8BOM  = []byte("\xef\xbb\xbf")
	utf16LE  = []byte("\xff\xfe")
	utf16BE  = []byte("\xfe\xff")
	anyOrder = unicode.UTF16(unicode.LittleEndian, unicode.ExpectBOM)
)

// decoded returns a text in UTF-8. A text is UTF-8 if it has a byte order mark, or more multi-byte letters than invalid bytes. Other text
// is Windows-1252, as old spreadsheet programs write it.
func decoded(text []byte) ([]byte, error) {
	switch {
	case bytes.HasPrefix(text, utf8BOM):
		return text[len(utf8BOM):], nil
	case bytes.HasPrefix(text, utf16LE), bytes.HasPrefix(text, utf16BE):
		return anyOrder.NewDecoder().Bytes(text)
	case bytes.IndexByte(text, 0) >= 0:
		return nil, because("it is no text, or a text in UTF-16 without a byte order mark: save it as CSV in UTF-8")
	}
	valid, invalid := 0, 0
	for rest := text; len(rest) > 0; {
		c, size := utf8.DecodeRune(rest)
		switch {
		case c == utf8.RuneError && size == 1:
			invalid++
		case size > 1:
			valid++
		}
		rest = rest[size:]
	}
	if invalid == 0 || valid > invalid {
		return text, nil
	}
	return charmap.Windows1252.NewDecoder().Bytes(text)
}

// separatorLine is a first line in which spreadsheet programs name the separator. It is not a row, but counts as a line.
var separatorLine = regexp.MustCompile(`(?i)\A"?sep=([,;\t])"?,*(?m:$)`)

// separator returns the separator of cells: the most frequent one outside of quotes in the first line that has any.
func separator(text []byte) rune {
	for line := range bytes.Lines(text) {
		if best, most := separatorOf(line); most > 0 {
			return best
		}
	}
	return ','
}

func separatorOf(line []byte) (best rune, most int) {
	counts, quoted := map[rune]int{}, false
	for _, c := range string(line) {
		if c == '"' {
			quoted = !quoted
		} else if !quoted && strings.ContainsRune(",;\t", c) {
			if counts[c]++; counts[c] > most {
				best, most = c, counts[c]
			}
		}
	}
	return best, most
}
