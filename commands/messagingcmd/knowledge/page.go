package knowledge

import (
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
	for n := range root.Descendants() {
		if n.DataAtom == atom.Main || n.DataAtom == atom.Article {
			if text = plain(n); len(text) >= minMain {
				return title, text
			}
		}
	}
	return title, plain(root)
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

// tableOf returns the rows of a table as lines, each value with the name of its column.
func tableOf(table *html.Node) string {
	var names, lines []string
	var all [][]string
	for row := range table.Descendants() {
		if row.DataAtom == atom.Caption {
			lines = append(lines, wordsOf(row))
		}
		if row.DataAtom != atom.Tr {
			continue
		}
		var values []string
		heads := true
		for c := range row.ChildNodes() {
			if c.DataAtom == atom.Td || c.DataAtom == atom.Th {
				values = append(values, wordsOf(c))
				heads = heads && c.DataAtom == atom.Th
			}
		}
		if len(values) > 1 && heads && names == nil {
			names = values
		} else if len(values) > 0 {
			all = append(all, values)
		}
	}
	valued := func(row []string) bool {
		return digits.MatchString(undated.ReplaceAllString(strings.Join(row, " "), ""))
	}
	if names == nil && len(all) > 1 && len(all[0]) > 1 && !valued(all[0]) && (valued(all[1]) || len(all[0]) > 2) {
		names, all = all[0], all[1:]
	}
	for _, values := range all {
		if names != nil && len(values) > 1 {
			lines = append(lines, record(names, values))
		} else {
			lines = append(lines, pair(values))
		}
	}
	return strings.Join(lines, "\n")
}

// wordsOf returns the words of an element.
func wordsOf(n *html.Node) string {
	var text strings.Builder
	for d := range n.Descendants() {
		switch {
		case d.Type == html.TextNode && !beside[d.Parent.DataAtom]:
			text.WriteString(d.Data)
		case d.Type == html.ElementNode && !inline[d.DataAtom]:
			text.WriteString(" ")
		}
	}
	return strings.Join(strings.Fields(text.String()), " ")
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
	// A stack instead of recursion: a page may have unlimited nesting.
	type step struct {
		node  *html.Node
		close bool
	}
	for stack := []step{{node: n}}; len(stack) > 0; {
		s := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		block := s.node.Type == html.ElementNode && !inline[s.node.DataAtom]
		switch {
		case s.close:
			if block {
				end()
			}
			continue
		case s.node.Type == html.TextNode:
			current.WriteString(s.node.Data)
			continue
		case s.node.Type == html.ElementNode && beside[s.node.DataAtom]:
			continue
		case s.node.DataAtom == atom.Table && !nested(s.node):
			end()
			if said := tableOf(s.node); said != "" {
				paragraphs = append(paragraphs, said)
			}
			continue
		case headingSigns[s.node.DataAtom] != "":
			end()
			current.WriteString(headingSigns[s.node.DataAtom])
		case block:
			end()
		}
		if block {
			stack = append(stack, step{s.node, true})
		}
		for child := s.node.LastChild; child != nil; child = child.PrevSibling {
			stack = append(stack, step{node: child})
		}
	}
	end()
	return strings.Join(paragraphs, "\n\n")
}
