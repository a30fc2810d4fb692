package knowledge

import (
	"encoding/csv"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"bahi/domain/messaging/botsource"
	"bahi/domain/person"
	"bahi/domain/wording"
)

const (
	minColumns = 2
	maxColumns = 100
)

var gaps = regexp.MustCompile(`\t+| {2,}`)

// rows rewrites the rows of a text's tables as lines, each value with the name of its column. The columns of a table must be aligned. Other
// lines keep their words.
func rows(text string) string {
	var lines [][]botsource.Cell
	for line := range strings.SplitSeq(text, "\n") {
		lines = append(lines, cellsOf(strings.TrimRight(line, " \t\r")))
	}
	return new(tables).page(lines)
}

// tables rewrites the tables of a document's pages.
type tables struct {
	names []botsource.Cell // of the columns of the last table, which the next page may continue
}

// page rewrites the rows of a page's tables as lines. Other lines keep their words.
func (t *tables) page(lines [][]botsource.Cell) string {
	var out []string
	var table [][]botsource.Cell
	blank := 0 // lines since the last row
	end := func() {
		out = append(out, t.lined(table)...)
		table = nil
		out = append(out, make([]string, min(blank, 1))...)
		blank = 0
	}
	lines = unwrapped(lines)
	for i, cells := range lines {
		if len(cells) > maxColumns {
			cells = []botsource.Cell{{Text: strings.Join(textsOf(cells), " ")}}
		}
		switch {
		case len(cells) == 0:
			blank++
		case len(cells) >= minColumns:
			if blank > 0 && len(table) > 0 && titled(table) != titled([][]botsource.Cell{cells}) && titled([][]botsource.Cell{cells}) {
				end() // another table begins
			} else if len(table) == 0 {
				end() // the blank lines before it
			}
			table, blank = append(table, cells), 0
		case len(table) > 0 && blank == 0 && cells[0].From > table[0][0].To: // a cell continues
			last := table[len(table)-1]
			n := nearest(last, cells[0])
			last[n].Text += " " + cells[0].Text
		case len(table) > 0 && titled(table) && section(lines[i:]):
			table, blank = append(table, cells), 0
		default:
			end()
			out = append(out, cells[0].Text)
		}
	}
	end()
	return strings.Join(out, "\n")
}

// maxWrapped is the maximum number of lines of a cell above the line with the other cells.
const maxWrapped = 4

// unwrapped joins the lines of first cells that extend over several lines.
func unwrapped(lines [][]botsource.Cell) (all [][]botsource.Cell) {
	rest := 0 // number of one-cell lines that may follow before the table ends
	for _, line := range lines {
		for n := len(all) - 1; n >= 0 && rest > 0 && len(line) > 0; n-- {
			joined := unwrap(all[n], line)
			if joined == nil {
				break
			}
			all, line = all[:n], joined
		}
		if all = append(all, line); len(line) > 1 {
			rest = maxWrapped
		} else if len(line) == 1 {
			rest--
		}
	}
	return all
}

// unwrap returns a row of a table with the next line or the previous one of its first cell, and nil if the lines are not of one row.
func unwrap(above, line []botsource.Cell) []botsource.Cell {
	if min(len(above), len(line)) != 1 || len(above) == len(line) {
		return nil
	}
	first, next := above[0], line[0]
	others := slices.Concat(above[1:], line[1:])
	switch {
	case max(first.To, next.To) > others[0].From:
		return nil
	case len(above) == 1 && next.From > first.To: // the values are beside the middle of the first cell
		return append(above, line...)
	case max(first.From-next.From, next.From-first.From) > 1 || !continues(first.Text, next.Text):
		return nil
	}
	return append([]botsource.Cell{{Text: first.Text + " " + next.Text, From: first.From, To: max(first.To, next.To)}}, others...)
}

// continues reports whether a line of a cell continues the line above: a word without content, a comma or a bracket is at their join, or
// the line begins with a small letter.
func continues(above, line string) bool {
	words, next := strings.Fields(above), strings.Fields(line)
	last, first := words[len(words)-1], next[0]
	begins, _ := utf8.DecodeRuneInString(above)
	follows, _ := utf8.DecodeRuneInString(line)
	return joins(last) || joins(first) || strings.ContainsAny(last[len(last)-1:], ",-/&(+") || strings.ContainsRune(",/&(+)", follows) ||
		strings.Count(above, "(") > strings.Count(above, ")") || unicode.IsUpper(begins) && unicode.IsLower(follows)
}

// joins reports whether a word has no content, such as an article.
func joins(word string) bool {
	word = person.Folded(word)
	return utf8.RuneCountInString(word) > 1 && (empty[word] || wording.IsStop(word))
}

// section reports whether the first line is the heading of a section within a table: rows follow it.
func section(lines [][]botsource.Cell) bool {
	for _, next := range lines[1:] {
		if len(next) > 0 {
			return len(next) >= minColumns && !titled([][]botsource.Cell{next}) && heading(lines[0][0].Text)
		}
	}
	return false
}

// cellsOf returns the cells of a line. Two blanks or a tab separate cells. A list entry is one cell.
func cellsOf(line string) (all []botsource.Cell) {
	if bullet.MatchString(strings.TrimSpace(line)) {
		return []botsource.Cell{{Text: strings.TrimSpace(line)}}
	}
	at, from := 0, 0 // in characters, in bytes
	add := func(text string) {
		size := utf8.RuneCountInString(text)
		if strings.TrimSpace(text) != "" {
			all = append(all, botsource.Cell{Text: strings.TrimSpace(text), From: at, To: at + size})
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

// answered finds a value after a colon.
var answered = regexp.MustCompile(`:\s*\S`)

// titled reports whether a table's first row has column names: it has no value.
func titled(table [][]botsource.Cell) bool {
	for _, f := range table[0] {
		if digits.MatchString(undated.ReplaceAllString(f.Text, "")) || answered.MatchString(f.Text) {
			return false
		}
	}
	return true
}

// nearest returns the column of a cell.
func nearest(columns []botsource.Cell, f botsource.Cell) (best int) {
	distance := func(c botsource.Cell) int { // negative: so many characters overlap
		return max(c.From, f.From) - min(c.To, f.To)
	}
	for i, c := range columns {
		if distance(c) < distance(columns[best]) {
			best = i
		}
	}
	return best
}

// lined returns the rows of a table as lines.
func (t *tables) lined(table [][]botsource.Cell) (lines []string) {
	if len(table) == 0 {
		return nil
	}
	switch {
	case titled(table) && len(table) > 1 && (len(table[0]) > 2 || len(table) > 2):
		t.names, table = columnsOf(table)
	case !slices.ContainsFunc(table, func(row []botsource.Cell) bool { return len(row) == len(t.names) }):
		t.names = nil
	}
	for _, row := range table {
		if len(row) == 1 {
			lines = append(lines, "", row[0].Text)
			continue
		}
		if t.names == nil {
			lines = append(lines, pair(textsOf(row)))
			continue
		}
		values := make([]string, len(t.names))
		for i, c := range row {
			if len(row) != len(t.names) {
				i = nearest(t.names, c)
			}
			values[i] = strings.TrimSpace(values[i] + " " + c.Text)
		}
		lines = append(lines, record(textsOf(t.names), values))
	}
	return lines
}

func textsOf(fields []botsource.Cell) (texts []string) {
	for _, f := range fields {
		texts = append(texts, f.Text)
	}
	return texts
}

// pair returns a row without column names.
func pair(texts []string) string {
	if len(texts) == 2 {
		return strings.TrimRight(texts[0], " :") + ": " + texts[1]
	}
	return strings.Join(texts, " | ")
}

// record returns a row with its column names, without empty cells. A first cell without a name is the row's label.
func record(names, values []string) string {
	var parts []string
	label := ""
	for i, value := range values {
		value = strings.Join(strings.Fields(value), " ")
		switch {
		case value == "":
		case i < len(names) && strings.TrimSpace(names[i]) != "":
			name := strings.TrimSpace(names[i])
			parts = append(parts, strings.TrimRight(name, " :")+": "+value)
		case i == 0:
			label = strings.TrimRight(value, " :") + ": "
		default:
			parts = append(parts, value)
		}
	}
	return label + strings.Join(parts, "; ")
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
