package pages

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// recordLine is a record in a list.
type recordLine struct {
	Head  *display
	Cells []display
	Forms []actForm
}

// deskPage is the common content of the pages of lists and records.
type deskPage struct {
	Title, About, Address string
	Sections              []place  // other pages of the area
	Above                 []choice // the pages above this one
	Forms                 []actForm
	Answer                *display
	Tried                 bool
	Stream, Events        string
	Again                 int // seconds after which the changing part is read again
	Wrong                 []string
	Lists                 references
	Kept                  bool // mails are stored in the data folder
}

// listPage is the content of the page of a list.
type listPage struct {
	deskPage

	Columns      []display
	Rows         []recordLine
	Filters      []field
	Asked        bool
	Total        int
	Counts       string   // noun for the total; empty: the title
	Newer, Older string   // addresses
	Acts         bool     // the lines have forms
	Kinds        []choice // types of a new record
	Lacks        string   // missing prerequisite
	PDF          string   // address
}

// page returns the common content of the page, with the response to a form.
func (d *desk) page(in sent) deskPage {
	b := deskPage{
		Title: d.of.title, Address: d.of.address(d.parent, d.id), Answer: in.answer, Tried: in.tried, Events: d.of.events, Lists: d.refs,
	}
	if b.Above = d.above(); d.id != "" && !d.of.single {
		return b
	}
	b.About, b.Kept = d.of.about, d.of.mails && d.MailsKept
	if d.of.sections != nil {
		b.Sections, b.Above = d.of.sections(d.visit), nil
	}
	return b
}

// list shows the records of a resource.
func (d *desk) list(in sent) page {
	o := d.operation(d.of.list)
	number := d.number()
	b := &listPage{deskPage: d.page(in), Counts: d.of.counts}
	b.Again = d.of.again
	asked := d.asked(o)
	b.Asked = len(asked) > 0
	own := maps.Clone(asked) // without the fixed query
	if first := d.of.first; first != "" && !asked.Has(first) {
		i := slices.IndexFunc(o.Params, func(p parameter) bool { return p.Name == first })
		if options := o.Params[i].Options; len(options) > 0 {
			asked.Set(first, options[0])
		} else if own := d.namesOf(linked[first]); len(own) > 0 {
			asked.Set(first, own[0].Value)
		} else {
			b.Lacks = d.of.lacks
		}
	}
	b.Filters = d.filters(o, asked)
	for i, f := range b.Filters {
		if r, is := d.refs[f.Key]; is && f.Value != "" {
			id, wrong := r.find(d.lang, f.Value)
			if b.Filters[i].Error = wrong; wrong == "" {
				asked.Set(f.Key, id)
			} else {
				asked.Del(f.Key)
			}
		}
	}
	query := d.listQuery()
	maps.Copy(query, asked)
	for _, name := range []string{"from_time", "to_time"} {
		if query.Has(name) {
			query.Set(name, d.clock(query.Get(name), name == "to_time"))
		}
	}
	var rows []map[string]any
	var refused *problem
	size := rowsListed
	if d.of.oldest {
		size = rowsShown
	}
	if b.Lacks == "" {
		rows, b.Total, refused = d.rows(query, number, size)
	}
	switch {
	case refused == nil:
	case refused.Status == http.StatusForbidden || refused.Status == http.StatusNotFound:
		return d.deny(refused)
	default:
		b.Wrong = []string{detail(refused)}
		in.status = cmp.Or(in.status, refused.Status)
	}
	more := d.of.oldest && d.older(b.Total) || !d.of.oldest && number*size < b.Total && len(rows) <= size
	b.Newer, b.Older = turned(b.Address, own, number, more)
	next, _, _ := strings.Cut(strings.TrimPrefix(d.listed.Get("Link"), "<"), ">")
	if older, err := url.Parse(next); err == nil && older.Query().Has("to_position") {
		own.Set("to_position", older.Query().Get("to_position"))
		b.Older, b.Total = b.Address+"?"+own.Encode(), 0 // the total is unknown
	}
	d.draw(b, rows, in)
	b.Forms = d.forms(in, nil)
	b.Wrong = append(b.Wrong, stray(in, b.Forms)...)
	if d.of.pdf != "" {
		b.PDF = d.address(d.of.pdf, request{query: query}).String()
	}
	b.Stream = d.streamOf()
	if d.of.create != "" && d.may(d.operation(d.of.create)) && d.of.kinds[d.kind(nil)] == nil {
		for kind := range d.of.kinds {
			b.Kinds = append(b.Kinds, choice{Value: kind, Text: d.lang.t(wordOf(kind))})
		}
		slices.SortFunc(b.Kinds, func(x, y choice) int { return strings.Compare(x.Text, y.Text) })
	}
	return page{template: "list", title: d.of.title, status: in.status, body: b}
}

// draw adds the records to the list. The form of a tried action keeps its values.
func (d *desk) draw(b *listPage, rows []map[string]any, in sent) {
	s := d.rowSchema()
	for _, name := range d.of.columns {
		b.Columns = append(b.Columns, display{Text: d.lang.t(labelOf(name))})
	}
	for _, r := range rows {
		if d.refs != nil {
			r = d.refs.texts(r)
		}
		line, columns := recordLine{}, d.of.columns
		if !d.of.flat {
			line.Head, columns = d.head(r), columns[1:]
		}
		for _, name := range columns {
			one := d.cell(name, s.of(name), r)
			if line.Cells = append(line.Cells, one); one.Class != "" {
				b.Columns[len(b.Columns)-len(columns)+len(line.Cells)-1].Class = one.Class
			}
		}
		if d.lines {
			d.id = idOf(r)
			tried := sent{}
			if in.tried && in.id == d.id {
				tried = in
			}
			line.Forms = d.forms(tried, r)
			d.id, b.Acts = "", b.Acts || len(line.Forms) > 0
		}
		b.Rows = append(b.Rows, line)
	}
}

// asked returns the filled-in filters of the list.
func (d *desk) asked(o *operation) url.Values {
	asked := url.Values{}
	for _, p := range d.params(o) {
		if value := strings.TrimSpace(d.r.URL.Query().Get(p.Name)); value != "" {
			asked.Set(p.Name, value)
		}
	}
	return asked
}

// params returns the parameters of a list, and of the search for its records, that are filters for users.
func (d *desk) params(o *operation) []parameter {
	all := slices.Clone(o.Params)
	if d.of.search != "" {
		all = append(all, d.operation(d.of.search).Params...)
	}
	rest := append([]string{"page", "limit", "page_size", "skip", "sort", d.of.by}, d.of.without...)
	return slices.DeleteFunc(all, func(p parameter) bool {
		return p.In != "query" || slices.Contains(rest, p.Name) || d.of.fixed.Has(p.Name)
	})
}

// filters returns the inputs of the list's filters.
func (d *desk) filters(o *operation, asked url.Values) []field {
	inputs, given := &schema{}, map[string]any{}
	for _, p := range d.params(o) {
		one := *p.schema
		one.Required, one.Description = false, ""
		if r, is := d.refs[p.Name]; is {
			one.Kind, one.List = "text", r.List
		}
		switch one.Kind {
		case "tick":
			one.Kind, one.Options = "select", []string{"true", "false"}
		case "area":
			one.Kind = "text"
		}
		if strings.HasSuffix(p.Name, "_time") {
			one.Kind = "moment"
		}
		inputs.Properties = append(inputs.Properties, property{p.Name, &one})
		given[p.Name] = asked.Get(p.Name)
	}
	fields := inputs.fields("", given, nil, 0)
	if i := slices.IndexFunc(fields, func(f field) bool { return f.Key == "search" }); i > 0 {
		fields[0], fields[i] = fields[i], fields[0]
	}
	d.choose(fields, "-of")
	return fields
}

// listQuery returns the fixed query of the list.
func (d *desk) listQuery() url.Values {
	query := url.Values{}
	maps.Copy(query, d.of.fixed)
	if d.of.by != "" && d.parent != "" {
		query.Set(d.of.by, d.parent)
	}
	return query
}

// rows returns a page of the list, and the total number of records.
func (d *desk) rows(query url.Values, number, size int) ([]map[string]any, int, *problem) {
	id := d.of.list
	if query.Has("q") && d.of.search != "" {
		id = d.of.search
	}
	in := request{vars: d.vars(d.operation(id)), query: query}
	if d.of.oldest {
		return d.newestFirst(id, in)
	}
	return d.paged(id, in, number, size)
}
