package pages

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// manual is the content of the documentation pages.
type manual struct {
	operations map[string]*described // by id
	tags       []docsGroup
	guides     []*guide
}

// docsGroup has the operations of a tag.
type docsGroup struct {
	Name, ID   string
	Operations []*described
}

// described is an operation as its page shows it.
type described struct {
	*operation

	Description string
	Tags        []string
	Public      bool // it needs no credential
	Headers     []parameter
	Raw         bool // the body is neither JSON nor a form
	Answers     []answer
	Refusals    []refused

	title, words string // searched texts in lower case: the operation's names; all its texts
}

// answer is a success response of an operation.
type answer struct {
	Status, Description string
	Kinds               []string // media types
	Headers             []parameter
	Schema              *schema
	Example             any
}

// refused is an error status with its codes.
type refused struct {
	Status int
	Codes  []string
	Means  string
	Do     string
}

// readManual reads the operations from an OpenAPI document, and the guides.
func readManual(spec []byte) (*manual, error) {
	s, err := readSpecification(spec)
	if err != nil {
		return nil, err
	}
	d := s.document()
	m := &manual{operations: map[string]*described{}}
	if m.guides, err = readGuides(); err != nil {
		return nil, err
	}
	meanings := readMeanings(m.guides)
	byTag := map[string][]*described{}
	for _, methods := range s.Paths {
		for _, from := range methods {
			o := s.describe(d[from.ID], from, meanings)
			m.operations[o.ID] = o
			for _, tag := range o.Tags {
				byTag[tag] = append(byTag[tag], o)
			}
		}
	}
	methods := []string{"GET", "POST", "PUT", "PATCH", "DELETE"}
	for _, tag := range slices.Sorted(maps.Keys(byTag)) {
		slices.SortFunc(byTag[tag], func(a, b *described) int {
			return cmp.Or(strings.Compare(a.Path, b.Path), slices.Index(methods, a.Method)-slices.Index(methods, b.Method))
		})
		m.tags = append(m.tags, docsGroup{tag, "tag-" + strings.ReplaceAll(strings.ToLower(tag), " ", "-"), byTag[tag]})
	}
	return m, nil
}

func (s *specification) describe(o *operation, from specOperation, meanings map[int]refused) *described {
	all := s.Components.Schemas
	o.Example = withFirstIDs(o.Example)
	d := &described{operation: o, Description: from.Description, Tags: from.Tags, Public: len(from.Security) == 0}
	for _, one := range from.Security {
		d.Public = d.Public || len(one) == 0
	}
	for _, p := range from.Parameters {
		if p.In == "header" {
			d.Headers = append(d.Headers, parameter{p.In, all.property(p)})
		}
	}
	_, d.Raw = from.Body.Content["application/octet-stream"]
	for _, code := range slices.Sorted(maps.Keys(from.Responses)) {
		response := from.Responses[code]
		if response.Ref != "" {
			response = s.Components.Responses[response.Ref[strings.LastIndexByte(response.Ref, '/')+1:]]
		}
		status, _ := strconv.Atoi(code)
		if status >= 400 {
			r := meanings[status]
			r.Status, r.Codes = status, codesOf(response.Description)
			d.Refusals = append(d.Refusals, r)
			continue
		}
		a := answer{Status: code, Description: response.Description, Kinds: slices.Sorted(maps.Keys(response.Content))}
		for _, name := range slices.Sorted(maps.Keys(response.Headers)) {
			of := response.Headers[name]
			of.Name = name
			a.Headers = append(a.Headers, parameter{"", all.property(of)})
		}
		if content, has := response.Content["application/json"]; has {
			a.Schema, a.Example = all.read("", content.Schema, 0), content.Example
		}
		d.Answers = append(d.Answers, a)
	}
	d.title = strings.ToLower(strings.Join(append([]string{o.ID, o.Method, o.Path, o.Summary}, d.Tags...), " "))
	words := []string{d.title, d.Description}
	rows := slices.Concat(d.Parameters(), d.Fields())
	for _, a := range d.Answers {
		rows = append(rows, a.Fields()...)
	}
	for _, r := range rows {
		words = append(words, r.Name, r.About)
	}
	d.words = strings.ToLower(strings.Join(words, " "))
	return d
}

// codesOf returns the codes of a response's description, such as "Conflict. `code`: conflict, email_taken".
func codesOf(description string) []string {
	_, codes, _ := strings.Cut(description, "`code`: ")
	return strings.Split(codes, ", ")
}

var meaningRow = regexp.MustCompile(`(?m)^\| ([\d, ]+) \|[^|]*\| (.*) \| (.*) ?\|$`)

// readMeanings returns the meaning of each error status, from the table in the guide for clients.
func readMeanings(guides []*guide) map[int]refused {
	meanings := map[int]refused{}
	for _, g := range guides {
		if g.Name != "client" {
			continue
		}
		for _, row := range meaningRow.FindAllStringSubmatch(g.source, -1) {
			for status := range strings.SplitSeq(row[1], ", ") {
				if code, err := strconv.Atoi(status); err == nil {
					meanings[code] = refused{Means: strings.ReplaceAll(row[2], "`", ""), Do: strings.ReplaceAll(strings.TrimSpace(row[3]), "`", "")}
				}
			}
		}
	}
	return meanings
}

// docsField is a line of a table of parameters or fields.
type docsField struct {
	Name, In, Type, Unit, About, Example string
	Required                             bool
}

// Parameters returns the parameters and headers, and Fields the fields of the body.
func (d *described) Parameters() []docsField { return rowsOf(slices.Concat(d.Params, d.Headers)) }
func (d *described) Fields() []docsField     { return d.Body.rows("", d.Example, true) }

// Fields returns the fields of the response, and HeaderRows its headers.
func (a answer) Fields() []docsField     { return a.Schema.rows("", a.Example, false) }
func (a answer) HeaderRows() []docsField { return rowsOf(a.Headers) }

func rowsOf(all []parameter) (rows []docsField) {
	for _, p := range all {
		row := p.row(p.Name, nil)
		row.In = p.In
		rows = append(rows, row)
	}
	return rows
}

// JSON returns the example of the response.
func (a answer) JSON() string { return indentedJSON(a.Example) }

// rows returns the fields of a value and of the values in it. The names are paths, such as in_entries[].touch.
func (s *schema) rows(prefix string, example any, written bool) (rows []docsField) {
	if s == nil {
		return nil
	}
	if s.Kind == "lines" || s.Kind == "list" {
		list, _ := example.([]any)
		var first any
		if len(list) > 0 {
			first = list[0]
		}
		return s.Items.rows(prefix+"[]", first, written)
	}
	values, _ := example.(map[string]any)
	if s.Kind == "map" {
		return s.Items.rows(prefix+".<name>", nil, written)
	}
	for _, p := range s.Properties {
		if written && p.ReadOnly {
			continue
		}
		name := below(prefix, p.Name)
		rows = append(rows, p.row(name, values[p.Name]))
		rows = append(rows, p.rows(name, values[p.Name], written)...)
	}
	return rows
}

func (s *schema) row(name string, example any) docsField {
	f := docsField{Name: name, Type: s.words(), Unit: s.Unit, About: s.Description, Required: s.Required}
	if example == nil {
		example = s.Example
	}
	switch example.(type) {
	case nil, []any, map[string]any:
	default:
		f.Example = s.text(example)
	}
	return f
}

// words describes the type of a value.
func (s *schema) words() string {
	names := map[string]string{
		"area": "text", "secret": "text", "whole": "whole number", "date": "day", "tick": "true or false", "group": "object",
		"lines": "list of objects", "json": "any JSON", "select": "one of " + strings.Join(s.Options, ", "),
	}
	text := cmp.Or(names[s.Kind], s.Kind)
	switch {
	case s.Kind == "list":
		text = "list: " + s.Items.words()
	case s.Kind == "map":
		text = "object, by name: " + s.Items.words()
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

// indentedJSON returns the JSON of a value, "" for none.
func indentedJSON(value any) string {
	if value == nil {
		return ""
	}
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return ""
	}
	return string(text)
}
