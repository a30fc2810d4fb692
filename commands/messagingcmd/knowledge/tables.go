package knowledge

import (
	"encoding/csv"
	"regexp"
	"strings"
	"unicode/utf8"
)

// field is a cell of a line with its range in characters.
type field struct {
	text     string
	from, to int
}

const (
	minProse   = 30 // minimum average characters of a cell in a text with columns
	minColumns = 2
)

var gaps = regexp.MustCompile(`\t+| {2,}`)

// rows rewrites the rows of a table as lines, each value with the name of its column. The columns of the table must be aligned. Other lines
// keep their words. rows puts a text in two columns in reading order.
func rows(page string) string {
	var out []string
	var table [][]field
	blank := 0 // lines since the last row
	end := func() {
		out = append(out, lined(table)...)
		table = nil
		out = append(out, make([]string, min(blank, 1))...)
		blank = 0
	}
	for line := range strings.SplitSeq(page, "\n") {
		fields := fieldsOf(strings.TrimRight(line, " \t\r"))
		switch {
		case len(fields) == 0:
			blank++
		case len(fields) >= minColumns && !bullet.MatchString(strings.TrimSpace(line)):
			if blank > 0 && len(table) > 0 && titled(table) != titled([][]field{fields}) && titled([][]field{fields}) {
				end() // another table begins
			} else if len(table) == 0 {
				end() // the blank lines before it
			}
			table, blank = append(table, fields), 0
		case len(table) > 0 && blank == 0 && fields[0].from > table[0][0].to: // a cell continues
			last := table[len(table)-1]
			n := nearest(last, fields[0])
			last[n].text += " " + fields[0].text
		default:
			end()
			out = append(out, strings.TrimSpace(line))
		}
	}
	end()
	return strings.Join(out, "\n")
}

// fieldsOf returns the cells of a line. Two blanks or a tab separate cells.
func fieldsOf(line string) (all []field) {
	at, from := 0, 0 // in characters, in bytes
	add := func(text string) {
		size := utf8.RuneCountInString(text)
		if strings.TrimSpace(text) != "" {
			all = append(all, field{strings.TrimSpace(text), at, at + size})
		}
		at += size
	}
	for _, gap := range gaps.FindAllStringIndex(line, -1) {
		add(line[from:gap[0]])
		at += utf8.RuneCountInString(line[gap[0]:gap[1]])
		from = gap[1]
	}
	add(line[from:])
	return all
}

// titled reports whether a table's first row has column names: it has no value.
func titled(table [][]field) bool {
	for _, f := range table[0] {
		if digits.MatchString(undated.ReplaceAllString(f.text, "")) || strings.ContainsAny(f.text, ":₹$") {
			return false
		}
	}
	return true
}

// nearest returns the column of a cell.
func nearest(columns []field, f field) (best int) {
	distance := func(c field) int { // negative: so many characters overlap
		return max(c.from, f.from) - min(c.to, f.to)
	}
	for i, c := range columns {
		if distance(c) < distance(columns[best]) {
			best = i
		}
	}
	return best
}

// lined returns the rows of a table as lines.
func lined(table [][]field) (lines []string) {
	if len(table) == 0 {
		return nil
	}
	if prose(table) {
		for column := range minColumns {
			for _, row := range table {
				if column < len(row) {
					lines = append(lines, row[column].text)
				}
			}
			lines = append(lines, "")
		}
		return lines
	}
	var names []field
	if titled(table) && len(table) > 1 && (len(table[0]) > 2 || len(table) > 2) {
		names, table = columnsOf(table)
	}
	for _, row := range table {
		if names == nil {
			lines = append(lines, pair(textsOf(row)))
			continue
		}
		values := make([]string, len(names))
		for i, f := range row {
			if len(row) != len(names) {
				i = nearest(names, f)
			}
			values[i] = strings.TrimSpace(values[i] + " " + f.text)
		}
		lines = append(lines, record(textsOf(names), values))
	}
	return lines
}

func textsOf(fields []field) (texts []string) {
	for _, f := range fields {
		texts = append(texts, f.text)
	}
	return texts
}

// prose reports whether lines are a text in two columns, not rows.
func prose(table [][]field) bool {
	size, n := 0, 0
	for _, row := range table {
		if len(row) > minColumns {
			return false
		}
		for _, f := range row {
			size, n = size+f.to-f.from, n+1
		}
	}
	return len(table) > minColumns && size >= minProse*n
}

// pair returns a row without column names.
func pair(texts []string) string {
	if len(texts) == 2 {
		return strings.TrimRight(texts[0], " :") + ": " + texts[1]
	}
	return strings.Join(texts, " | ")
}

// record returns a row with its column names, without empty cells.
func record(names, values []string) string {
	var parts []string
	for i, value := range values {
		value = strings.Join(strings.Fields(value), " ")
		switch {
		case value == "":
		case i < len(names) && strings.TrimSpace(names[i]) != "":
			name := strings.TrimSpace(names[i])
			parts = append(parts, strings.TrimRight(name, " :")+": "+value)
		default:
			parts = append(parts, value)
		}
	}
	return strings.Join(parts, "; ")
}

// comma converts a file of values separated by commas, semicolons or tabs, or a Markdown table, to lines like [rows].
// Other texts stay unchanged. named: the file's name has such a type.
func comma(text string, named bool) string {
	for _, between := range []rune{'\t', ';', ','} {
		if between == ',' && !named {
			break
		}
		r := csv.NewReader(strings.NewReader(text))
		r.Comma, r.LazyQuotes, r.TrimLeadingSpace, r.FieldsPerRecord = between, true, between != '\t', -1
		all, err := r.ReadAll()
		if err != nil || len(all) < 2 {
			continue
		}
		width, same := 1, 0
		for i, row := range all { // titles above the table have fewer cells, or only one that is not empty
			if len(row) > width && filled(row) >= minColumns {
				width, same = len(row), i
			}
		}
		table, full := all[same:], 0
		for _, row := range table {
			if len(row) == width {
				full++
			}
		}
		if width < minColumns || len(table) < 2 || 10*full < 9*len(table) {
			continue
		}
		var lines []string
		for _, row := range all[:same] {
			if title := strings.Join(strings.Fields(strings.Join(row, " ")), " "); title != "" {
				lines = append(lines, strings.Repeat("#", min(len(lines)/2+1, 6))+" "+title, "")
			}
		}
		for _, row := range table[1:] {
			if said := strings.TrimSpace(row[0]); filled(row) == 1 && heading(said) { // a section
				lines = append(lines, "", said)
				continue
			}
			lines = append(lines, record(table[0], row))
		}
		return strings.Join(lines, "\n")
	}
	return text
}

// filled returns the number of cells that are not empty.
func filled(row []string) (n int) {
	for _, text := range row {
		if strings.TrimSpace(text) != "" {
			n++
		}
	}
	return n
}

// rule matches the line below the column names of a Markdown table.
var rule = regexp.MustCompile(`^[\s|:-]*(?:\|[\s|:-]*-|-[\s|:-]*\|)[\s|:-]*$`)

// piped converts Markdown tables to lines like [rows].
func piped(text string) string {
	var names []string
	lines := strings.Split(text, "\n")
	out := lines[:0:0]
	for i, line := range lines {
		cells := strings.Split(strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(line), "|"), "|"), "|")
		switch {
		case !strings.Contains(line, "|"):
			names = nil
			out = append(out, line)
		case rule.MatchString(line):
		case names != nil:
			out = append(out, record(names, cells))
		case i+1 < len(lines) && rule.MatchString(lines[i+1]):
			names = cells
		default:
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}
