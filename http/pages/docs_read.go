package pages

import (
	"bytes"
	"cmp"
	"fmt"
	"html/template"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"

	"bahi/docs"
)

// manual is the content of the documentation pages.
type manual struct {
	Tags     []docsGroup        // of the menu
	Meanings map[string]meaning // by error status

	guides []*guide
}

// docsGroup has the operations of a tag.
type docsGroup struct {
	Name, ID   string
	Operations []docsEntry
}

// docsEntry is an operation with its searched texts in lower case: the names, and all texts.
type docsEntry struct {
	*operation

	title, words string
}

// meaning explains an error status.
type meaning struct{ Means, Do string }

// readManual returns the documentation of operations, and the guides.
func readManual(d document) *manual {
	guides := readGuides()
	m := &manual{guides: guides, Meanings: readMeanings(guides)}
	byTag := map[string][]docsEntry{}
	for _, o := range d {
		entry := docsEntry{o, strings.ToLower(strings.Join(append([]string{o.ID, o.Method, o.Path, o.Summary}, o.Tags...), " ")), ""}
		words := []string{entry.title, o.Description}
		rows := slices.Concat(rowsOf(o.Params, o.Headers), o.BodyRows())
		for _, a := range o.Answers {
			rows = append(rows, a.Rows()...)
		}
		for _, r := range rows {
			words = append(words, r.Name, r.Description)
		}
		entry.words = strings.ToLower(strings.Join(words, " "))
		for _, tag := range o.Tags {
			byTag[tag] = append(byTag[tag], entry)
		}
	}
	methods := []string{"GET", "POST", "PUT", "PATCH", "DELETE"}
	for _, tag := range slices.Sorted(maps.Keys(byTag)) {
		slices.SortFunc(byTag[tag], func(a, b docsEntry) int {
			return cmp.Or(strings.Compare(a.Path, b.Path), slices.Index(methods, a.Method)-slices.Index(methods, b.Method))
		})
		m.Tags = append(m.Tags, docsGroup{tag, "tag-" + strings.ReplaceAll(strings.ToLower(tag), " ", "-"), byTag[tag]})
	}
	return m
}

var meaningRow = regexp.MustCompile(`(?m)^\| ([\d, ]+) \|[^|]*\| (.*) \| (.*) ?\|$`)

// readMeanings returns the meaning of each error status, from the table in the guide for clients.
func readMeanings(guides []*guide) map[string]meaning {
	meanings := map[string]meaning{}
	client := slices.IndexFunc(guides, func(g *guide) bool { return g.Name == "client" })
	for _, row := range meaningRow.FindAllStringSubmatch(strings.ReplaceAll(guides[client].source, "`", ""), -1) {
		for status := range strings.SplitSeq(row[1], ", ") {
			meanings[status] = meaning{row[2], strings.TrimSpace(row[3])}
		}
	}
	return meanings
}

// docsRow is a line of a table of parameters or fields.
type docsRow struct {
	*schema

	Name, In, Example string
}

// rowsOf returns the lines of parameters or headers.
func rowsOf(all ...[]parameter) (rows []docsRow) {
	for _, p := range slices.Concat(all...) {
		rows = append(rows, docsRow{p.schema, p.Name, p.In, p.sampleText(nil)})
	}
	return rows
}

// BodyRows returns the fields of the body, and Rows those of a response.
func (o *operation) BodyRows() []docsRow { return o.Body.rows("", o.Example, true) }
func (a answer) Rows() []docsRow         { return a.Schema.rows("", a.Example, false) }

// rows returns the fields of a value and of the values in it. The names are paths, such as in_entries[].touch.
func (s *schema) rows(prefix string, example any, written bool) (rows []docsRow) {
	if s == nil {
		return nil
	}
	switch s.Kind {
	case "lines", "list":
		list, _ := example.([]any)
		for _, first := range list {
			return s.Items.rows(prefix+"[]", first, written)
		}
		return s.Items.rows(prefix+"[]", nil, written)
	case "map":
		return s.Items.rows(prefix+".<name>", nil, written)
	}
	values, _ := example.(map[string]any)
	for _, p := range s.Properties {
		if written && p.ReadOnly {
			continue
		}
		name, value := below(prefix, p.Name), values[p.Name]
		rows = append(rows, docsRow{p.schema, name, "", p.sampleText(value)})
		rows = append(rows, p.rows(name, value, written)...)
	}
	return rows
}

// sampleText returns an example of a plain value as text.
func (s *schema) sampleText(example any) string {
	switch example = cmp.Or(example, s.Example); example.(type) {
	case nil, []any, map[string]any:
		return ""
	default:
		return s.text(example)
	}
}

// Words describes the type of a value.
func (s *schema) Words() string {
	names := map[string]string{
		"area": "text", "secret": "text", "whole": "whole number", "date": "day", "tick": "true or false", "group": "object",
		"lines": "list of objects", "json": "any JSON", "select": "one of " + strings.Join(s.Options, ", "),
	}
	text := cmp.Or(names[s.Kind], s.Kind)
	switch {
	case s.Kind == "list":
		text = "list: " + s.Items.Words()
	case s.Kind == "map":
		text = "object, by name: " + s.Items.Words()
	case s.Format == "date-time":
		text = "moment"
	case s.Format == "uri":
		text = "address (URL)"
	}
	if s.MaxLength > 0 {
		text += fmt.Sprintf(", at most %d characters", s.MaxLength)
	}
	if s.Nullable {
		text += ", or null"
	}
	return text
}

// guide is a guide: a file of the folder docs.
type guide struct {
	Name, Title string
	HTML        template.HTML
	Sections    []section

	source string
}

// section is a heading of a guide, and the text up to the next one.
type section struct {
	Guide     *guide
	ID, Title string
	Level     int

	words string // in lower case
}

// Link returns the address of the guide.
func (g *guide) Link() string { return docsPath + "/guides/" + g.Name }

// readGuides renders the guides, sorted by their titles.
func readGuides() (all []*guide) {
	names, _ := fs.Glob(docs.Guides, "*.md") // the pattern is valid
	for _, name := range names {
		source, _ := docs.Guides.ReadFile(name) // embedded, so it exists
		all = append(all, readGuide(strings.TrimSuffix(name, ".md"), source, names))
	}
	slices.SortFunc(all, func(a, b *guide) int { return strings.Compare(a.Title, b.Title) })
	return all
}

// markdown renders tables too, and leaves out HTML in a text.
var markdown = goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithParserOptions(parser.WithAutoHeadingID()))

// fileLink is a link to a file. One to another guide leads to its page; of any other, only the text stays.
var fileLink = regexp.MustCompile(`(?s)<a href="([^"#:]+)(#[^"]*)?">(.*?)</a>`)

func readGuide(name string, source []byte, files []string) *guide {
	g := &guide{Name: name, Title: name, source: string(source)}
	root := markdown.Parser().Parse(text.NewReader(source))
	var ends []int // of the sections' headings, as offsets in the source
	for n := root.FirstChild(); n != nil; n = n.NextSibling() {
		heading, is := n.(*ast.Heading)
		if !is || n.Lines().Len() == 0 {
			continue
		}
		id, _ := n.AttributeString("id")
		title := strings.ReplaceAll(string(n.Lines().Value(source)), "`", "")
		g.Sections = append(g.Sections, section{Guide: g, ID: fmt.Sprintf("%s", id), Title: title, Level: heading.Level})
		ends = append(ends, n.Lines().At(0).Start)
	}
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
	var out bytes.Buffer
	_ = markdown.Renderer().Render(&out, source, root) // a buffer takes all
	rendered := strings.NewReplacer(                   // a tabindex allows scrolling by keyboard
		"<pre>", `<pre tabindex="0">`,
		"<table>", `<div class="wide" tabindex="0"><table>`, "</table>", "</table></div>", "<th></th>", "<td></td>",
	).Replace(out.String())
	rendered = fileLink.ReplaceAllStringFunc(rendered, func(link string) string {
		parts := fileLink.FindStringSubmatch(link)
		if !slices.Contains(files, parts[1]) {
			return parts[3]
		}
		return `<a href="` + docsPath + "/guides/" + strings.TrimSuffix(parts[1], ".md") + parts[2] + `">` + parts[3] + "</a>"
	})
	g.HTML = template.HTML(rendered) //nolint:gosec // G203: goldmark omits HTML in our own text
	return g
}
