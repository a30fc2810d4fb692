package pdftext

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"bahi/domain/messaging/botsource"
)

// box is a rectangle on a page, in points from the upper left corner.
type box struct {
	Left   float64 `xml:"xMin,attr"`
	Top    float64 `xml:"yMin,attr"`
	Right  float64 `xml:"xMax,attr"`
	Bottom float64 `xml:"yMax,attr"`
}

func (b box) height() float64 { return b.Bottom - b.Top }
func (b box) middle() float64 { return (b.Top + b.Bottom) / 2 }

// block is a paragraph, a cell of a table, or a column of cells that are close to each other.
type block struct {
	box

	Lines []struct {
		Words []struct {
			box

			Text string `xml:",chardata"`
		} `xml:"word"`
	} `xml:"line"`
	cells []cell
}

// cell is the part of a line without a wide gap.
type cell struct {
	box

	text  string
	block int // index of its block in the page, in reading order
}

const (
	wideGap   = 0.45 // gap between two cells, in heights of a line
	sameLine  = 0.35 // distance of the middles of cells beside each other, in heights of a line
	staggered = 0.85 // distance of the middles of cells that are not lines of one table, in heights of a line
	minProse  = 30   // characters of an average line of a text in columns
	maxRow    = 3    // lines in the first column of a row whose cells are not aligned
	maxTable  = 5000 // cells of a table
)

// blocksOf reads a page of the output of pdftotext -bbox-layout.
func blocksOf(page []byte) ([]block, error) {
	var p struct {
		Blocks []block `xml:"flow>block"`
	}
	clean := strings.Map(func(c rune) rune {
		if unicode.IsControl(c) && c != '\n' || c == 0xFFFE || c == 0xFFFF {
			return -1
		}
		return c
	}, strings.ToValidUTF8(string(page[max(0, bytes.Index(page, []byte("<page"))):]), "\ufffd"))
	err := xml.Unmarshal([]byte(clean), &p)
	for i := range p.Blocks {
		p.Blocks[i].split(i)
	}
	return p.Blocks, err
}

// layout returns the lines of a page: rows of tables with a cell for each column, and lines of text with one cell. An empty line is a
// vertical gap. Texts in columns are in reading order.
func layout(blocks []block) (lines [][]botsource.Cell) {
	width, runes := 0.0, 0
	for _, b := range blocks {
		for _, c := range b.cells {
			width, runes = width+c.Right-c.Left, runes+utf8.RuneCountInString(c.text)
		}
	}
	column := func(x float64) int { return int(x * float64(runes) / max(width, 1)) }
	var text []block // not yet added
	bottom := 0.0
	add := func(row []cell) {
		if len(lines) > 0 && row[0].Top-bottom > wideGap*row[0].height() {
			lines = append(lines, nil)
		}
		var line []botsource.Cell
		for _, c := range row {
			bottom = max(bottom, c.Bottom)
			line = append(line, botsource.Cell{Text: c.text, From: column(c.Left), To: column(c.Right)})
		}
		lines = append(lines, line)
	}
	end := func() {
		slices.SortFunc(text, func(a, b block) int { return cmp.Compare(a.cells[0].block, b.cells[0].block) })
		for _, b := range text {
			if bottom-b.Top > b.cells[0].height() {
				bottom = 0 // the next column
			}
			for _, c := range b.cells {
				add([]cell{c})
			}
		}
		text = nil
	}
	for _, group := range groups(blocks) {
		table := tableOf(group)
		if table == nil {
			text = append(text, group...)
			continue
		}
		end()
		for _, row := range table {
			add(row)
		}
	}
	end()
	return lines
}

// split sets the block's cells. It divides lines at wide gaps, unless the block is prose.
func (b *block) split(index int) {
	average := 0
	for _, l := range b.Lines {
		for _, w := range l.Words {
			average += utf8.RuneCountInString(w.Text) + 1
		}
	}
	prose := len(b.Lines) > 1 && average >= minProse*len(b.Lines)
	for _, l := range b.Lines {
		first := len(b.cells)
		for _, w := range l.Words {
			n := len(b.cells) - 1
			if n < first || !prose && w.Left-b.cells[n].Right > wideGap*w.height() {
				b.cells = append(b.cells, cell{w.box, w.Text, index})
				continue
			}
			b.cells[n].text += " " + w.Text
			b.cells[n].box = around(b.cells[n].box, w.box)
		}
	}
}

func around(a, b box) box {
	return box{min(a.Left, b.Left), min(a.Top, b.Top), max(a.Right, b.Right), max(a.Bottom, b.Bottom)}
}

// groups returns the blocks that are beside each other, from top to bottom.
func groups(blocks []block) (all [][]block) {
	bottom := 0.0
	sorted := slices.DeleteFunc(slices.Clone(blocks), func(b block) bool { return len(b.cells) == 0 })
	slices.SortStableFunc(sorted, func(a, b block) int { return cmp.Compare(a.Top, b.Top) })
	for _, b := range sorted {
		if len(all) == 0 || b.Top > bottom-sameLine/2*b.cells[0].height() {
			all, bottom = append(all, nil), b.Bottom
		}
		all[len(all)-1] = append(all[len(all)-1], b)
		bottom = max(bottom, b.Bottom)
	}
	return all
}

// tableOf returns the rows of a group of blocks, each from left to right. It returns nil if the group is text.
func tableOf(group []block) [][]cell {
	var cells []cell
	runes := 0
	for _, b := range group {
		cells = append(cells, b.cells...)
		for _, c := range b.cells {
			runes += utf8.RuneCountInString(c.text)
		}
	}
	if len(cells) > maxTable {
		return nil
	}
	lines, aligned := baselines(cells)
	switch {
	case len(group) == 1 && len(lines) == len(cells), len(group) > 1 && len(cells) > len(group) && runes >= minProse*len(cells):
		return nil
	case cards(group, lines):
		return described(group)
	case aligned:
		return wrapped(lines)
	default:
		return spanned(group)
	}
}

// cards reports whether each block is the description of one product, rather than a column. Then the cells of some line all begin with the
// same word, such as Price.
func cards(group []block, lines [][]cell) bool {
	return len(group) > 1 && len(lines) > 1 && slices.ContainsFunc(lines, func(line []cell) bool {
		word, _, _ := strings.Cut(line[0].text, " ")
		return len(line) == len(group) && !number(word) && !slices.ContainsFunc(line, func(c cell) bool {
			return !strings.HasPrefix(c.text, word+" ")
		})
	})
}

// described returns a line for each block.
func described(group []block) (rows [][]cell) {
	for _, b := range group {
		var texts []string
		for _, c := range b.cells {
			texts = append(texts, c.text)
		}
		rows = append(rows, []cell{{b.box, strings.Join(texts, "; "), b.cells[0].block}})
	}
	return rows
}

// baselines returns the cells by line. aligned reports whether the lines do not overlap, as in a table.
func baselines(cells []cell) (lines [][]cell, aligned bool) {
	slices.SortStableFunc(cells, func(a, b cell) int { return cmp.Compare(a.middle(), b.middle()) })
	aligned = true
	for _, c := range cells {
		n := len(lines) - 1
		if n < 0 || c.middle()-lines[n][0].middle() > sameLine*c.height() {
			aligned = aligned && (n < 0 || c.middle()-lines[n][0].middle() > staggered*c.height())
			lines = append(lines, nil)
			n++
		}
		lines[n] = append(lines[n], c)
	}
	left, firsts := cells[0].Left, 0
	for _, c := range cells {
		left = min(left, c.Left)
	}
	for _, line := range lines {
		slices.SortFunc(line, func(a, b cell) int { return cmp.Compare(a.Left, b.Left) })
		if line[0].Left-left < line[0].height() {
			firsts++
		}
	}
	return lines, aligned || firsts > maxRow
}

// wrapped joins the lines of a table that continue the cells of another: each of their cells is in the block of a cell there.
func wrapped(lines [][]cell) (rows [][]cell) {
	left := lines[0][0].Left
	for _, line := range lines {
		left = min(left, line[0].Left)
	}
	first := func(row []cell) bool { return row[0].Left-left < row[0].height() }
	for _, line := range lines {
		line = slices.Clone(line)
		n := len(rows) - 1
		switch {
		case n >= 0 && !first(line) && continues(rows[n], line):
			join(rows[n], line)
		case n >= 0 && first(line) && !first(rows[n]) && continues(line, rows[n]):
			above := rows[n]
			for i := range line {
				if at := slices.IndexFunc(above, func(c cell) bool { return c.block == line[i].block }); at >= 0 {
					line[i], above[at] = above[at], line[i]
				}
			}
			join(line, above)
			rows[n] = line
		default:
			rows = append(rows, line)
		}
	}
	return rows
}

// join adds the cells of a line to the cells of a row.
func join(row, line []cell) {
	for _, c := range line {
		i := slices.IndexFunc(row, func(above cell) bool { return above.block == c.block })
		row[i].text += " " + c.text
		row[i].box = around(row[i].box, c.box)
	}
}

// continues reports whether each cell of a line, and no other one of the line, continues a cell of the row: both are in one block. A number
// does not continue another number.
func continues(row, line []cell) bool {
	for i, c := range line {
		if i > 0 && line[i-1].block == c.block || !slices.ContainsFunc(row, func(above cell) bool {
			return above.block == c.block && (!number(above.text) || !number(c.text))
		}) {
			return false
		}
	}
	return true
}

func number(text string) bool { return strings.Trim(text, "0123456789,.-") == "" }

// spanned returns the rows of a group in which each block is a cell, or a column with several numbers. The column with the most cells
// determines the rows. A cell beside several rows belongs to each.
func spanned(group []block) (rows [][]cell) {
	columns := slices.ContainsFunc(group, func(b block) bool {
		first := slices.IndexFunc(b.cells, func(c cell) bool { return number(c.text) })
		return first >= 0 && slices.ContainsFunc(b.cells[first+1:], func(c cell) bool { return number(c.text) })
	})
	var cells []cell
	for _, b := range group {
		if columns {
			cells = append(cells, b.cells...)
			continue
		}
		joined := cell{b.box, "", b.cells[0].block}
		for _, c := range b.cells {
			joined.text = strings.TrimSpace(joined.text + " " + c.text)
		}
		cells = append(cells, joined)
	}
	slices.SortStableFunc(cells, func(a, b cell) int { return cmp.Compare(a.Top, b.Top) })
	var ranges []box
	for _, c := range cells {
		var column []box
		for _, other := range cells { // from top to bottom
			if n := len(column) - 1; other.Left < c.Right && c.Left < other.Right {
				if n < 0 || !beside(column[n], other.box) {
					column = append(column, other.box)
				} else {
					column[n] = around(column[n], other.box)
				}
			}
		}
		if len(column) > len(ranges) {
			ranges = column
		}
	}
	rows = make([][]cell, len(ranges))
	for _, c := range cells {
		for i, r := range ranges {
			if beside(r, c.box) {
				rows[i] = append(rows[i], c)
			}
		}
	}
	for _, row := range rows {
		slices.SortFunc(row, func(a, b cell) int { return cmp.Compare(a.Left, b.Left) })
	}
	return rows
}

// beside reports whether a part of two boxes has the same height on the page.
func beside(a, b box) bool {
	return min(a.Bottom, b.Bottom)-max(a.Top, b.Top) > sameLine/2*min(a.height(), b.height())
}
