package pages

import (
	"bytes"
	"fmt"
	"html/template"
	"io/fs"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"

	"bahi/docs"
)

// guide is a guide: a file of the folder docs.
type guide struct {
	Name, Title string
	HTML        template.HTML
	Sections    []section

	source string
}

// section is a heading of a guide, and the text up to the next one.
type section struct {
	ID, Title string
	Level     int

	words string // in lower case
}

// Link returns the address of the guide.
func (g *guide) Link() string { return docsPath + "/guides/" + g.Name }

// readGuides renders the guides, sorted by their titles.
func readGuides() (all []*guide, err error) {
	names, err := fs.Glob(docs.Guides, "*.md")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		source, err := docs.Guides.ReadFile(name)
		if err != nil {
			return nil, err
		}
		g, err := readGuide(strings.TrimSuffix(name, ".md"), source, names)
		if err != nil {
			return nil, fmt.Errorf("the guide %s: %w", name, err)
		}
		all = append(all, g)
	}
	slices.SortFunc(all, func(a, b *guide) int { return strings.Compare(a.Title, b.Title) })
	return all, nil
}

// markdown renders tables too, and leaves out HTML in a text.
var markdown = goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithParserOptions(parser.WithAutoHeadingID()))

func readGuide(name string, source []byte, files []string) (*guide, error) {
	g := &guide{Name: name, Title: name, source: string(source)}
	root := markdown.Parser().Parse(text.NewReader(source))
	var links []*ast.Link
	var ends []int // of the sections' headings, as offsets in the source
	_ = ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Link:
			if entering {
				links = append(links, n)
			}
		case *ast.Heading:
			id, _ := n.AttributeString("id")
			if lines := n.Lines(); entering && lines.Len() > 0 {
				text := string(lines.Value(source))
				g.Sections = append(g.Sections, section{ID: fmt.Sprintf("%s", id), Title: strings.ReplaceAll(text, "`", ""), Level: n.Level})
				ends = append(ends, lines.At(0).Start)
			}
		}
		return ast.WalkContinue, nil
	})
	for i := range g.Sections {
		end := len(source)
		if i+1 < len(ends) {
			end = ends[i+1]
		}
		g.Sections[i].words = strings.ToLower(string(source[ends[i]:end]))
	}
	if len(g.Sections) > 0 {
		g.Title = g.Sections[0].Title
	}
	for _, link := range links {
		relink(link, files)
	}
	var out bytes.Buffer
	if err := markdown.Renderer().Render(&out, source, root); err != nil {
		return nil, err
	}
	rendered := strings.NewReplacer( // a tabindex allows scrolling by keyboard
		"<pre>", `<pre tabindex="0">`,
		"<table>", `<div class="wide" tabindex="0"><table>`, "</table>", "</table></div>", "<th></th>", "<td></td>",
	).Replace(out.String())
	g.HTML = template.HTML(rendered) //nolint:gosec // G203: goldmark omits HTML in our own text
	return g, nil
}

// relink points a link to another guide to its page, and removes a link to any other file.
func relink(link *ast.Link, files []string) {
	to := string(link.Destination)
	file, at, _ := strings.Cut(to, "#")
	switch {
	case file == "" || strings.Contains(to, "://"):
	case slices.Contains(files, file):
		to = docsPath + "/guides/" + strings.TrimSuffix(file, ".md")
		if at != "" {
			to += "#" + at
		}
		link.Destination = []byte(to)
	default:
		parent := link.Parent()
		for child := link.FirstChild(); child != nil; child = link.FirstChild() {
			parent.InsertBefore(parent, link, child)
		}
		parent.RemoveChild(parent, link)
	}
}
