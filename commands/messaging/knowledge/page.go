package knowledge

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// beside are the elements of a page that are no part of its main text.
var beside = map[atom.Atom]bool{
	atom.Script: true, atom.Style: true, atom.Nav: true, atom.Form: true, atom.Noscript: true, atom.Template: true, atom.Svg: true, atom.Button: true,
	atom.Select: true, atom.Iframe: true, atom.Footer: true, atom.Aside: true, atom.Head: true, atom.Object: true, atom.Textarea: true,
}

// inline are the elements that do not begin a paragraph.
var inline = map[atom.Atom]bool{
	atom.A: true, atom.B: true, atom.I: true, atom.Em: true, atom.Strong: true, atom.Span: true, atom.Small: true, atom.Sub: true, atom.Sup: true, atom.U: true,
	atom.Code: true, atom.Abbr: true, atom.Mark: true, atom.Q: true, atom.Cite: true, atom.Font: true, atom.Label: true, atom.Time: true, atom.Wbr: true, atom.Bdi: true,
}

// leastMain is how long the text of main must be in bytes, or it is not what a page is about.
const leastMain = 200

// Page returns the title and the main text of a page.
func Page(markup string) (title, text string) {
	root, err := html.Parse(strings.NewReader(markup))
	if err != nil { // it is nested without an end
		return "", ""
	}
	for n := range root.Descendants() {
		if n.DataAtom == atom.Title && title == "" && n.FirstChild != nil {
			title = strings.Join(strings.Fields(n.FirstChild.Data), " ")
		}
	}
	for n := range root.Descendants() {
		if n.DataAtom == atom.Main || n.DataAtom == atom.Article {
			if text = plain(n); len(text) >= leastMain {
				return title, text
			}
		}
	}
	return title, plain(root)
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
	// A stack instead of recursion: pages of strangers may be nested without an end.
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
		case s.node.DataAtom == atom.Td || s.node.DataAtom == atom.Th:
			current.WriteString(" ")
			block = false
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
