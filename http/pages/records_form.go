package pages

import (
	"cmp"
	"html"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

const blankLines = 3 // of an array in a form; without scripts a page cannot add lines

// inputs returns the schemas of the parameters of an operation's query and of its body, nil for none.
func (d *desk) inputs(o *operation, a action, record map[string]any) (query, body *schema) {
	query = &schema{}
	for _, p := range o.Params {
		if p.In == "query" && p.Name != d.of.by && !slices.Contains(slices.Concat(d.of.without, a.without), p.Name) {
			query.Properties = append(query.Properties, p.property)
		}
	}
	if o.Body == nil || a.body != nil {
		return query, nil
	}
	if a.fields != nil || a.starts != nil {
		asked := slices.Clone(a.fields)
		for name := range a.starting(d, record) {
			if !a.asks(name) {
				asked = append(asked, name)
			}
		}
		return query, d.withDays(d.refs.schema(o.Body.only("", asked)))
	}
	hidden := slices.Concat([]string{"id", d.of.by}, d.of.without, d.of.given, a.without)
	for _, p := range o.Body.Properties {
		if a.edit && p.Fixed {
			hidden = append(hidden, p.Name)
		}
	}
	body = o.Body.without(hidden...)
	if d.of.kinds != nil && (a.edit || a.operation == d.of.create) {
		body = body.only("", d.of.kinds[d.kind(record)])
	}
	return query, d.withDays(body)
}

// withDays returns the schema of an object with inputs for dates in place of those for times: the ends of the days.
func (d *desk) withDays(s *schema) *schema {
	days := *s
	if s.Format == "date-time" {
		days.Kind, days.Ends = "date", func(day string) string { return d.clock(day, true) }
	}
	days.Properties = slices.Clone(s.Properties)
	for i, p := range s.Properties {
		days.Properties[i].schema = d.withDays(p.schema)
	}
	return &days
}

// kind returns the type of the record, or the chosen type of a new one.
func (d *desk) kind(record map[string]any) string {
	return cmp.Or(textOf(record["type"]), d.r.FormValue("new"))
}

// only returns the schema of an object reduced to the properties at some paths, in that order.
func (s *schema) only(prefix string, paths []string) *schema {
	rest := *s
	rest.Properties = nil
	for _, p := range s.Properties {
		path := below(prefix, p.Name)
		within := slices.ContainsFunc(paths, func(one string) bool { return strings.HasPrefix(one, path+".") })
		switch {
		case slices.Contains(paths, path):
			rest.Properties = append(rest.Properties, p)
		case within:
			rest.Properties = append(rest.Properties, property{p.Name, p.only(path, paths)})
		}
	}
	at := func(p property) int {
		return slices.IndexFunc(paths, func(one string) bool {
			return one == below(prefix, p.Name) || strings.HasPrefix(one, below(prefix, p.Name)+".")
		})
	}
	slices.SortFunc(rest.Properties, func(a, b property) int { return at(a) - at(b) })
	return &rest
}

// forms returns the page's forms of the operations that the visitor may run.
func (d *desk) forms(in sent, record map[string]any) (all []actForm) {
	for _, a := range d.of.forms(d.id != "") {
		o := d.operation(a.operation)
		if !d.may(o) || a.when != nil && !a.when(record) {
			continue
		}
		f := actForm{
			Do: a.word(), Button: a.button, About: a.about, Danger: a.danger, Files: o.Files, DryRun: o.DryRun && !a.danger && a.preview == nil,
			Links: a.links, Address: d.of.address(d.parent, d.id), Revision: textOf(record["revision"]),
			Main: len(all) == 0 && !a.danger && (!d.lines || d.id == ""), Scope: "-" + a.word(),
		}
		if d.id != "" {
			f.Address, f.ID = d.here(), d.id
		}
		f.Open = d.of.single && f.Main || len(all) == 0 && record["locked"] != nil
		if a.another {
			f.Revision = ""
		}
		if d.lines && d.id != "" {
			f.Scope += "-" + d.id
		}
		mine := sent{}
		if in.do == a.word() {
			mine, f.Key, f.Open = in, in.key, true
			if in.answer != nil && !in.tried {
				f.Key = "" // the next write needs a new key
			}
		}
		if a.reason != nil {
			f.Reason = &reasonInput{a.reason.Hint, mine.reason}
		}
		value := map[string]any{}
		if a.edit {
			maps.Copy(value, record)
		}
		if mine.body == nil {
			maps.Copy(value, a.starting(d, record))
		}
		maps.Copy(value, mine.body)
		blank := blankLines
		if a.preview != nil {
			blank, f.Preview = 1, cmp.Or(mine.preview, &preview{})
		}
		query, body := d.inputs(o, a, record)
		chosen := map[string]any{}
		for name := range mine.query {
			chosen[name] = mine.query.Get(name)
		}
		f.Fields = query.fields("", chosen, mine.faults, 0)
		if body != nil {
			f.Fields = append(f.Fields, body.fields("", value, mine.faults, blank)...)
		}
		for i := range f.Fields {
			if a.starts != nil && !a.asks(f.Fields[i].Key) {
				f.Fields[i].Kind = "hidden"
			}
		}
		if d.of.kinds != nil && a.operation == d.of.create {
			if f.Kind = d.kind(nil); d.of.kinds[f.Kind] == nil {
				continue // it is chosen first
			}
			f.Open = true
		}
		d.choose(f.Fields, f.Scope)
		if d.refs != nil {
			ofItems(f.Fields, "item-names")
		}
		f.Todo = mine.todo
		f.Wrong = slices.Concat(mine.wrong, d.lang.misplaced(f.Fields, mine.faults))
		if mine.status == http.StatusPreconditionFailed && mine.changes {
			f.Wrong = nil // the page shows it
		}
		all = append(all, f)
	}
	return all
}

// Direct reports whether the button runs the operation at once, because the form has no inputs and no text.
func (f actForm) Direct() bool {
	asks := func(f field) bool { return f.Kind != "hidden" }
	return f.About == "" && f.Reason == nil && !f.Danger && !f.DryRun && f.Preview == nil && len(f.Links)+len(f.Wrong) == 0 &&
		!slices.ContainsFunc(f.Fields, asks)
}

// stray returns the faults of a form that the page no longer has.
func stray(in sent, forms []actForm) []string {
	if slices.ContainsFunc(forms, func(f actForm) bool { return f.Do == in.do }) {
		return nil
	}
	return in.wrong
}

// minHint is the minimum number of words of a description that serves as a hint.
const minHint = 6

// hintOf returns an input's hint from its description, or "" if the label suffices.
func hintOf(description string) string {
	if hint, known := english["hints"][description]; known {
		return hint
	}
	if len(strings.Fields(description)) < minHint && !strings.ContainsAny(description, "0123456789") {
		return ""
	}
	return description
}

// linked returns the resource whose records a field of a form names, "" for none.
func (d *desk) linked(key string) string {
	if key == "rows" && d.of.word == "transfers" {
		return d.of.word
	}
	return linked[key]
}

// choose turns fields with ids of records into choices by name, and sets the form's scope on all fields.
func (d *desk) choose(fields []field, scope string) {
	each(fields, func(f *field) {
		f.Scope = scope
		if f.Key == honeypot && d.of.public {
			f.Kind = "trap"
		}
		word := d.linked(f.Key)
		if _, named := d.refs[f.Key]; named || word == "" {
			return
		}
		chosen := strings.Fields(f.Value)
		if f.Key == "audience" {
			f.Choices = []choice{{"all", d.lang.t("All contacts"), false}}
		}
		f.Choices = append(f.Choices, d.namesOf(word)...)
		for _, id := range chosen {
			if !slices.ContainsFunc(f.Choices, func(c choice) bool { return c.Value == id }) {
				f.Choices = append(f.Choices, choice{id, d.NameOf(word, id), false})
			}
		}
		for j := range f.Choices {
			f.Choices[j].Chosen = slices.Contains(chosen, f.Choices[j].Value)
		}
		kind := "choice"
		if f.Kind == "list" {
			kind = "choices"
		}
		f.Kind = kind
	})
}

const (
	shownOfTemplate = 60    // characters of its text
	templateText    = " · " // between its name, its channel and its text
)

// namesOf returns the names of the newest records of a resource, or none if the visitor may not list them.
func (d *desk) namesOf(word string) []choice {
	if known, is := d.names[word]; is {
		return slices.Clone(known)
	}
	d.names[word] = nil
	of := resourceOf(word)
	if word == d.of.word {
		of = d.of
	}
	if of == nil {
		return nil
	}
	other := d.visit.desk(of, false)
	query := other.listQuery()
	if of.oldest { // those of this page of the list
		query = other.asked(d.operation(of.list))
	}
	rows, _, _ := other.rows(query, 1, rowsFound)
	for _, r := range rows {
		name := other.title(r)
		if body := []rune(textOf(r["body"])); word == "templates" {
			channel := d.NameOf("channels", textOf(r["channelId"]))
			name += templateText + channel + templateText + string(body[:min(len(body), shownOfTemplate)])
		}
		d.names[word] = append(d.names[word], choice{Value: idOf(r), Text: name})
	}
	return slices.Clone(d.names[word])
}

// NameOf returns the name of a record.
func (d *desk) NameOf(word, id string) string {
	d.namesOf(word)
	known := d.names[word]
	if i := slices.IndexFunc(known, func(c choice) bool { return c.Value == id }); i >= 0 {
		return known[i].Text
	}
	name := d.lang.t("deleted")
	if of := resourceOf(word); of != nil && of.get != "" {
		other := d.visit.desk(of, false)
		other.id = id
		if record, refused := other.find(); refused == nil {
			name = other.title(record)
		}
	}
	d.names[word] = append(d.names[word], choice{Value: id, Text: name})
	return name
}

// title returns the name of a record.
func (d *desk) title(record map[string]any) string {
	if d.of.single {
		return d.lang.t(d.of.title)
	}
	if title := d.drawn("title", record); title != nil {
		return html.UnescapeString(string(title.HTML))
	}
	name := textOf(record[d.of.columns[0]])
	if d.of.word == "tools" {
		name = d.lang.t(labelOf(name))
	}
	if last := textOf(record["last_name"]); last != "" {
		name = strings.TrimSpace(name + " " + last)
	}
	return cmp.Or(name, textOf(record["phone"]), d.lang.t("Without a name"))
}

// clockLayouts are the forms of a time in the workshop's zone.
var clockLayouts = []string{"2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02 15:04", time.DateOnly}

// clock converts a local time of the workshop to RFC 3339. It returns other texts unchanged. A time without seconds becomes the end of
// its minute, a date the end of its day.
func (v *visit) clock(text string, end bool) string {
	for i, layout := range clockLayouts {
		t, err := time.ParseInLocation(layout, text, v.Zone)
		switch {
		case err != nil:
			continue
		case end && layout == time.DateOnly:
			t = t.AddDate(0, 0, 1).Add(-time.Microsecond)
		case end && i != 1:
			t = t.Add(time.Minute - time.Microsecond)
		}
		return t.Format(time.RFC3339Nano)
	}
	return text
}
