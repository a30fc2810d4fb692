package knowledge

import (
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// beside are the elements of a page outside its main text.
var beside = map[atom.Atom]bool{
	atom.Script: true, atom.Style: true, atom.Nav: true, atom.Form: true, atom.Noscript: true, atom.Template: true, atom.Svg: true,
	atom.Button: true,
	atom.Select: true, atom.Iframe: true, atom.Footer: true, atom.Aside: true, atom.Head: true, atom.Object: true, atom.Textarea: true,
}

// inline are the elements that do not begin a paragraph.
var inline = map[atom.Atom]bool{
	atom.A: true, atom.B: true, atom.I: true, atom.Em: true, atom.Strong: true, atom.Span: true, atom.Small: true, atom.Sub: true,
	atom.Sup: true, atom.U: true,
	atom.Code: true, atom.Abbr: true, atom.Mark: true, atom.Q: true, atom.Cite: true, atom.Font: true, atom.Label: true, atom.Time: true,
	atom.Wbr: true, atom.Bdi: true,
}

// minMain is the minimum length in bytes of a main text in the element main.
const minMain = 200

// Page returns the title and the main text of a page.
func Page(markup string) (title, text string) {
	root, err := html.Parse(strings.NewReader(markup))
	if err != nil { // the elements are nested too deeply
		return "", ""
	}
	for n := range root.Descendants() {
		if n.DataAtom == atom.Title && title == "" && n.FirstChild != nil {
			title = strings.Join(strings.Fields(n.FirstChild.Data), " ")
		}
	}
	for _, n := range slices.Collect(root.Descendants()) {
		if hidden(n) {
			n.Parent.RemoveChild(n)
		}
	}
	for n := range root.Descendants() {
		if n.DataAtom == atom.Main || n.DataAtom == atom.Article {
			if text = plain(n); len(text) >= minMain {
				return title, text
			}
		}
	}
	return title, plain(root)
}

// hidden reports whether an element is outside the main text or not shown by browsers. Such text is not quoted.
func hidden(n *html.Node) bool {
	style := strings.ToLower(strings.Join(strings.Fields(attribute(n, "style")), ""))
	return beside[n.DataAtom] || strings.Contains(style, "display:none") || strings.Contains(style, "visibility:hidden") ||
		slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == "hidden" })
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// headingSigns are the signs before headings.
var headingSigns = map[atom.Atom]string{atom.H1: "# ", atom.H2: "## ", atom.H3: "### ", atom.H4: "#### ", atom.H5: "##### ",
	atom.H6: "###### "}

// nested reports whether a table contains another one, like tables for layout.
func nested(table *html.Node) bool {
	for n := range table.Descendants() {
		if n.DataAtom == atom.Table {
			return true
		}
	}
	return false
}

// maxSpan is the maximum number of rows or columns of a merged cell.
const maxSpan = 100

// grid returns the rows of a table, and which rows have only header cells. The text of a merged cell is in each of its columns and rows. A
// row of one cell has one text.
func grid(table *html.Node) (rows [][]string, heads []bool) {
	left := map[int]int{} // by column: the rows below that its merged cell covers
	var above []string
	for row := range table.Descendants() {
		if row.DataAtom != atom.Tr {
			continue
		}
		var values []string
		head, cells := true, 0
		merged := func() {
			for n := len(values); left[n] > 0 && n < len(above); n++ {
				left[n]--
				values = append(values, above[n])
			}
		}
		for c := range row.ChildNodes() {
			if c.DataAtom != atom.Td && c.DataAtom != atom.Th {
				continue
			}
			merged()
			text := wordsOf(c)
			for range span(c, "colspan", text) {
				left[len(values)] = span(c, "rowspan", text) - 1
				values = append(values, text)
			}
			head, cells = head && c.DataAtom == atom.Th, cells+1
		}
		if merged(); len(values) == 0 {
			continue
		}
		if above = values; cells == 1 && !slices.ContainsFunc(values, func(text string) bool { return text != values[0] }) {
			values = values[:1]
		}
		rows, heads = append(rows, values), append(heads, head)
	}
	return rows, heads
}

// span returns the number of rows or columns of a cell. A long text is not repeated.
func span(cell *html.Node, name, text string) int {
	if n, err := strconv.Atoi(attribute(cell, name)); err == nil && len(text) <= longestValued {
		return min(max(n, 1), maxSpan)
	}
	return 1
}

// tableOf returns the rows of a table as lines, each value with the name of its column. A row of one cell begins a section.
func tableOf(table *html.Node) string {
	var lines []string
	for n := range table.Descendants() {
		if n.DataAtom == atom.Caption {
			lines = append(lines, wordsOf(n))
		}
	}
	rows, heads := grid(table)
	wide := func(row []string) bool { return len(row) > 1 }
	first := slices.IndexFunc(rows, wide)
	valued := func(row []string) bool {
		return digits.MatchString(undated.ReplaceAllString(strings.Join(row, " "), ""))
	}
	if first >= 0 && !slices.Contains(heads[first:], true) && first+1 < len(rows) && !valued(rows[first]) &&
		(valued(rows[first+1]) || len(rows[first]) > 2) {
		heads[first] = true
	}
	var names []string
	body := first < 0 // a row has followed the names
	for i, row := range rows {
		switch {
		case !wide(row) && first >= 0:
			lines = append(lines, "", row[0])
		case wide(row) && heads[i] && (names == nil || !valued(row)) && (i == first || slices.Contains(heads, false)):
			if body {
				names, body = nil, false
			}
			names = under(names, row)
		case names != nil:
			lines, body = append(lines, record(names, row)), true
		default:
			lines, body = append(lines, pair(row)), true
		}
	}
	return strings.Join(lines, "\n")
}

// under appends to each column's name the different name in the row below it.
func under(names, row []string) []string {
	row = slices.Clone(row)
	for i := range min(len(names), len(row)) {
		if row[i] != names[i] {
			row[i] = strings.TrimSpace(names[i] + " " + row[i])
		}
	}
	return row
}

// wordsOf returns the words of an element.
func wordsOf(n *html.Node) string {
	var text strings.Builder
	for d := range n.Descendants() {
		switch {
		case d.Type == html.TextNode:
			text.WriteString(d.Data)
		case d.Type == html.ElementNode && !inline[d.DataAtom]:
			text.WriteString(" ")
		}
	}
	return strings.Join(strings.Fields(text.String()), " ")
}

// written returns the text of an element with its lines.
func written(n *html.Node) string {
	var text strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			text.WriteString(d.Data)
		}
	}
	return text.String()
}

// plain returns the text of an element, with an empty line between its paragraphs.
func plain(n *html.Node) string {
	var paragraphs []string
	var current strings.Builder
	end := func() {
		if said := strings.Join(strings.Fields(current.String()), " "); said != "" {
			paragraphs = append(paragraphs, said)
		}
		current.Reset()
	}
	var add func(n *html.Node)
	add = func(n *html.Node) {
		switch {
		case n.Type == html.TextNode:
			current.WriteString(n.Data)
			return
		case n.DataAtom == atom.Pre:
			end()
			paragraphs = append(paragraphs, rows(written(n)))
			return
		case n.Type == html.ElementNode && !inline[n.DataAtom]:
			end()
			defer end()
		}
		if n.DataAtom == atom.Table && !nested(n) {
			if said := tableOf(n); said != "" {
				paragraphs = append(paragraphs, said)
			}
			return
		}
		current.WriteString(headingSigns[n.DataAtom])
		for child := range n.ChildNodes() {
			add(child)
		}
	}
	add(n)
	end()
	return strings.Join(paragraphs, "\n\n")
}
