package pages

import (
	"cmp"
	"encoding/json"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// display is a value for people.
type display struct {
	Label, Text, Link string
	Day, Moment       string        // in place of the text
	Chip              string        // CSS class of a chip
	Long              bool          // it has several lines
	Class             string        // CSS class of its cell in a list
	HTML              template.HTML // of a computed field, in place of all others
	Items             []display     // of an array
	Pairs             []display     // of an object
	Columns           []display     // of an array of objects
	Rows              [][]display   // its lines
}

// Empty reports whether there is nothing to show.
func (s display) Empty() bool {
	return s.Text+s.Day+s.Moment+string(s.HTML) == "" && len(s.Items)+len(s.Pairs)+len(s.Rows) == 0
}

// shown returns a named value for people. The schema may be nil.
func (d *desk) shown(name string, s *schema, value any) display {
	if s == nil {
		s = &schema{}
	}
	out := display{}
	if name != "" {
		out.Label = d.lang.t(labelOf(name))
	}
	word := linked[name]
	switch v := value.(type) {
	case bool:
		out.Text = d.lang.t("No")
		if v {
			out.Text = d.lang.t("Yes")
		}
	case json.Number:
		out.Text, out.Class = figureOf(s, v), "n"
		if word != "" {
			out.Class = ""
			out.Text, out.Link = d.NameOf(word, v.String()), linkOf(word, v.String())
			out.Text, _, _ = strings.Cut(out.Text, templateText)
		}
	case string:
		d.text(&out, name, s, v)
	case []any:
		return d.array(out, name, s, v)
	case map[string]any:
		if name == "permissions" {
			out.Items = d.rights(v)
		} else {
			out.Pairs = d.pairs(s, v, nil)
		}
	}
	return out
}

// linkOf returns the address of the record in a field.
func linkOf(word, id string) string {
	of := resourceOf(word)
	switch {
	case of == nil:
		return ""
	case of.leads != "":
		return of.leads + url.QueryEscape(id)
	default:
		return of.address("", id)
	}
}

func figureOf(s *schema, n json.Number) string {
	switch {
	case s.Paise:
		amount, _ := toDecimal(n)
		return rupees(amount.Shift(-2))
	case s.Unit == "₹":
		return rupees(n)
	case s.Unit == "g":
		return grams(n)
	default:
		return plain(n)
	}
}

var actorText = regexp.MustCompile(`^(user|key|api_key|system)(:|$)`)

func (d *desk) text(out *display, name string, s *schema, text string) {
	word := linked[name]
	_, notTime := time.Parse(time.RFC3339, text)
	_, notDay := time.Parse(time.DateOnly, text)
	switch {
	case name == "audience" && text == "all":
		out.Text = d.lang.t("All contacts")
	case name == "audience" && text == "parties": // of a confirmation
		out.Text = d.lang.t("Parties")
	case word != "" && text != "":
		out.Text, out.Link = d.NameOf(word, text), linkOf(word, text)
	case notTime == nil:
		out.Moment = text
	case notDay == nil:
		out.Day, out.Class = text, "date"
	case s.Kind == "select" && text != "":
		out.Text, out.Chip = d.lang.t(wordOf(text, s.Options...)), cmp.Or(stateChips[text], "plain")
	case name == "ownerId":
		out.Text = d.Actor("user:" + text)
	case strings.HasSuffix(strings.ToLower(name), "by") && actorText.MatchString(text):
		out.Text = d.Actor(text)
	case strings.HasPrefix(text, "https://") || strings.HasPrefix(text, "http://"):
		out.Text, out.Link = text, text
	case name == "phone":
		out.Text = phone(text)
	case name == "reason":
		out.Text = d.lang.said(text)
	case name == "secretSettings", name == "field":
		out.Text = d.lang.t(labelOf(lastPart(text)))
	default:
		out.Text, out.Long = text, len(text) > 200 || strings.Contains(text, "\n")
	}
}

// phone groups the digits of a phone number: +91 98123 00001.
func phone(number string) string {
	digits := strings.TrimPrefix(number, "+")
	if national, indian := strings.CutPrefix(digits, "91"); indian && len(national) == 10 {
		return "+91 " + national[:5] + " " + national[5:]
	}
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return number
	}
	return "+" + digits
}

// array returns the values of an array, those of objects as a table.
func (d *desk) array(out display, name string, s *schema, values []any) display {
	if s.Kind == "lines" && s.Items != nil {
		for _, p := range s.Items.Properties {
			out.Columns = append(out.Columns, display{Text: d.lang.t(labelOf(p.Name))})
		}
		for _, value := range values {
			object, _ := value.(map[string]any)
			var row []display
			for i, p := range s.Items.Properties {
				row = append(row, d.shown(p.Name, p.schema, object[p.Name]))
				out.Columns[i].Class = cmp.Or(out.Columns[i].Class, row[i].Class)
			}
			out.Rows = append(out.Rows, row)
		}
		return out
	}
	for _, value := range values {
		item := d.shown(name, s.Items, value)
		item.Label = ""
		out.Items = append(out.Items, item)
	}
	return out
}

// pairs returns the values of an object, first the plain ones.
func (d *desk) pairs(s *schema, object map[string]any, hidden []string) (all []display) {
	var names []string
	for _, p := range s.Properties {
		names = append(names, p.Name)
	}
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(object))
	}
	for _, name := range names {
		if slices.Contains(hidden, name) {
			continue
		}
		if one := d.shown(name, cmp.Or(s.of(name), s.Items), object[name]); !one.Empty() {
			if slices.Contains(names, "sent") {
				one.Label = d.lang.t(wordOf(name, names...))
			}
			all = append(all, one)
		}
	}
	large := func(s display) int { return min(1, len(s.Rows)+len(s.Items)+len(s.Pairs)) }
	slices.SortStableFunc(all, func(a, b display) int { return large(a) - large(b) })
	return all
}

// above returns the pages above this one.
func (d *desk) above() (all []choice) {
	if r := d.of.parent; r != nil {
		parent := d.visit.desk(r, false)
		parent.id = d.parent
		record := parent.found()
		all = []choice{
			{Value: r.address("", ""), Text: d.lang.t(r.title)}, {Value: r.address("", d.parent), Text: parent.title(record)},
		}
	}
	if d.id != "" && !d.of.single {
		all = append(all, choice{Value: d.of.address(d.parent, ""), Text: d.lang.t(d.of.title)})
	}
	all = slices.DeleteFunc(all, func(c choice) bool { return c.Text == "" }) // there is no such list
	if strings.HasPrefix(d.of.path(), operatePath) {
		all = slices.Insert(all, 0, choice{Value: operatePath, Text: d.lang.t("Operate")})
	}
	return all
}

// streamOf returns the address of the event stream of changes, "" if there is none for this page.
func (d *desk) streamOf() string {
	if d.of.stream == "" {
		return ""
	}
	o := d.operation(d.of.stream)
	vars := d.vars(o)
	if len(vars) < strings.Count(o.Path, "{") {
		return ""
	}
	return d.address(o.ID, request{vars: vars}).Path
}

// recordPage is the content of the page of a record.
type recordPage struct {
	deskPage

	Note            string
	Values, Details []display
	Live            []display // values that change while the page is open
	Parts           []choice
	Theirs          []difference // stored values that differ from the visitor's
	Refused         bool         // a form was refused: its faults stay
	History         []change
	Record          map[string]any // for the templates "more-WORD" of record.html
	More            any
	Word            string
}

// inside are fields that only programs need.
var inside = regexp.MustCompile(`^(id|.*_id|.*Id|revision|created_?[aA]t|updated_?[aA]t|has[A-Z].*)$`)

// live returns the values of a record that change by themselves.
func (d *desk) live(s *schema, record map[string]any) (all []display) {
	for _, name := range d.of.live {
		if one := d.cell(name, s.of(name), record); !one.Empty() {
			all = append(all, one)
		}
	}
	return all
}

// record shows a record, and the forms of its actions.
func (d *desk) record(in sent) page {
	record, refused := d.find()
	switch {
	case refused != nil && refused.Status == http.StatusNotFound && d.of.history != nil:
		return d.deleted(refused)
	case refused != nil:
		return d.deny(refused)
	case record == nil: // the visit has failed
		return page{}
	}
	s := d.rowSchema()
	b := &recordPage{deskPage: d.page(in), Word: d.of.word}
	b.Title = d.title(record)
	var internal []string
	for _, p := range s.Properties {
		if inside.MatchString(p.Name) && linked[p.Name] == "" {
			internal = append(internal, p.Name)
		}
	}
	b.Live = d.live(s, record)
	if d.of.cells != "" {
		internal = nil
	} else if !d.scripted() { // for a script, the live part is enough
		b.Values = d.pairs(s, record, slices.Concat(internal, d.of.without, d.of.columns[:1], d.of.live))
	}
	for _, name := range internal {
		if one := d.shown(name, nil, record[name]); !one.Empty() && one.Label != "" {
			b.Details = append(b.Details, one)
		}
	}
	if d.of.note != nil {
		b.Note = d.of.note(record)
	}
	b.Forms = d.forms(in, record)
	if d.refs != nil {
		b.Lists = maps.Clone(d.refs)
		items := refs{List: "item-names"} // of an order: its takadas have the same names
		for _, item := range entriesOf(record["items"]) {
			items.Choices = append(items.Choices, choice{Text: textOf(item["item_name"])})
		}
		b.Lists["item_name"] = items
	}
	b.Wrong, b.Refused = stray(in, b.Forms), in.status != 0
	if d.of.links != nil {
		b.Parts = d.of.links(d, record)
	}
	if d.of.history != nil {
		b.History = d.of.history(d, record)
	}
	for _, part := range d.of.parts {
		if part.when != nil && !part.when(record) {
			continue
		}
		b.Parts = append(b.Parts, choice{Value: part.address(d.id, ""), Text: part.title})
	}
	if in.status == http.StatusPreconditionFailed && in.changes {
		changed := differing(in.body, record)
		if b.Theirs = d.lang.recordDifferences(record, in.body); b.Theirs != nil {
			changed = nil // recordDifferences describes all differences in words
		}
		for name := range changed {
			theirs, yours := d.shown(name, s.of(name), record[name]), d.shown(name, s.of(name), in.body[name])
			b.Theirs = append(b.Theirs, difference{theirs.Label, d.short(theirs), d.short(yours)})
		}
		slices.SortFunc(b.Theirs, func(x, y difference) int { return strings.Compare(x.What, y.What) })
	}
	if d.of.watch != nil && d.of.watch(record) {
		b.Stream = d.streamOf()
	}
	if b.Stream == "" {
		b.Again = d.of.again
	}
	if !d.scripted() {
		b.Record = record
	}
	if d.of.more != nil && !d.scripted() {
		b.More = d.of.more(d, record)
	}
	return page{template: "record", title: b.Title, status: in.status, body: b}
}

// deleted shows the remaining history of a deleted record.
func (d *desk) deleted(refused *problem) page {
	history := d.of.history(d, nil)
	if len(history) == 0 {
		return d.deny(refused)
	}
	b := &recordPage{deskPage: d.page(sent{}), History: history}
	b.Title, b.About = d.title(map[string]any{"id": d.id}), "It was deleted."
	return page{template: "record", title: b.Title, body: b}
}

// short returns a value as one text.
func (d *desk) short(s display) string {
	parts := []string{s.Text + d.lang.day(s.Day) + d.lang.moment(s.Moment, d.Zone)}
	for _, item := range append(slices.Clone(s.Items), s.Pairs...) {
		text := d.short(item)
		if item.Label != "" {
			text = item.Label + ": " + text
		}
		parts = append(parts, text)
	}
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), ", ")
}
