package pages

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// manual is the content of the documentation pages.
type manual struct {
	tags     []docsGroup
	guides   []*guide
	meanings map[string]meaning // by status
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
func readManual(d document) (*manual, error) {
	guides, err := readGuides()
	if err != nil {
		return nil, err
	}
	m := &manual{guides: guides, meanings: readMeanings(guides)}
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
		m.tags = append(m.tags, docsGroup{tag, "tag-" + strings.ReplaceAll(strings.ToLower(tag), " ", "-"), byTag[tag]})
	}
	return m, nil
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
