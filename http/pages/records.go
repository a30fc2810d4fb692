package pages

import (
	"cmp"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"bahi/http/api"
)

// desk is a visit to a page of a resource.
type desk struct {
	*visit

	of         *resource
	parent, id string              // ids of the parent and of the record; empty: none
	names      map[string][]choice // cached names of records by resource
	refs       references          // accounts that fields name by a text
	lines      bool                // a list with the actions of its records
}

func (v *visit) desk(r *resource, record bool) *desk {
	d := &desk{visit: v, of: r, names: map[string][]choice{}}
	if r.parent != nil {
		d.parent = v.r.PathValue("id")
	}
	if r.single {
		d.id = r.word
	} else if record {
		d.id = v.r.PathValue("record")
	}
	d.lines = r.inline && !record
	return d
}

// sent is a refused or tried form.
type sent struct {
	do, key, reason string
	id              string // record of the list whose form it is; empty: the page's own
	body            map[string]any
	query           url.Values
	faults          map[string]string
	wrong           []string
	todo            []choice // links to necessary earlier steps
	status          int
	answer          *display // response to show
	tried           bool     // the response is of a dry run
	changes         bool     // the body has new values of the record
	preview         *preview
}

// actForm is a form that runs an operation.
type actForm struct {
	Do, ID, Button, About, Key, Revision, Kind string
	Reason                                     *reasonInput // nil: the form asks for none
	Preview                                    *preview     // updates while the user types; nil: none
	Danger, Files, DryRun, Open                bool
	Main                                       bool // the first one of a page
	Scope                                      string
	Fields                                     []field
	Links, Todo                                []choice
	Wrong                                      []string
	Address                                    string
}

// serve shows the list or the record, or runs the form's operation.
func (d *desk) serve() page {
	if strings.HasPrefix(d.of.path(), operatePath) && !d.who.Permissions.Operator {
		return d.deny(api.ErrNotPermitted)
	}
	if d.of.refs != nil {
		d.refs = references{}
	}
	for field, kind := range d.of.refs {
		d.refs[field] = d.refsOf(kind)
	}
	if d.r.Method == http.MethodPost {
		return d.act()
	}
	return d.show(sent{})
}

func (d *desk) show(in sent) page {
	if d.of.own != nil && (d.id != "" || d.of.list == "") {
		return d.of.own(d, in)
	}
	if d.id == "" || d.lines {
		in.id, d.id = d.id, ""
		return d.list(in)
	}
	return d.record(in)
}

// may reports whether the visitor has the permission for an operation.
func (d *desk) may(o *operation) bool { return o.Permission == "" || d.permissions()[o.Permission] }

// vars returns the values of the variables of an operation's path.
func (d *desk) vars(o *operation) []string {
	ids := slices.DeleteFunc([]string{d.parent, d.id}, func(id string) bool { return id == "" })
	if d.of.by != "" && d.parent != "" {
		ids = ids[1:]
	}
	if strings.Contains(o.Path, "{workspace_id}") {
		ids = slices.Insert(ids, 0, d.who.Workspace.String())
	}
	return ids[:min(len(ids), strings.Count(o.Path, "{"))]
}

// act runs the form's operation.
func (d *desk) act() page {
	form := d.r.PostForm
	in := sent{do: form.Get("do"), key: form.Get("key"), reason: strings.TrimSpace(form.Get("reason"))}
	if d.lines {
		d.id = form.Get("id")
	}
	actions := d.of.forms(d.id != "")
	i := slices.IndexFunc(actions, func(a action) bool { return a.word() == in.do })
	if i < 0 {
		return d.deny(errNoPage)
	}
	a := actions[i]
	o := d.operation(a.operation)
	var record map[string]any
	if d.id != "" && !d.lines {
		var refused *problem
		if record, refused = d.find(); refused != nil && refused.Status != http.StatusNotFound { // a retry may have deleted it
			return d.deny(refused)
		}
	}
	out := d.inputOf(o, a, record, &in)
	if same, is := out.body.(map[string]any); a.edit && is && len(same) == 0 { // a retry
		return page{redirect: after(api.Response{}, d.here(), cmp.Or(a.did, "done"))}
	}
	if a.reason == required && in.reason == "" && !out.dry {
		in.status, in.wrong = http.StatusUnprocessableEntity, []string{d.lang.t("Say why.")}
		return d.show(in)
	}
	if o.Files && len(out.files) == 0 {
		in.status, in.faults = http.StatusUnprocessableEntity, map[string]string{"file": d.lang.t("Choose a file.")}
		return d.show(in)
	}
	var answer any
	done, refused := d.askNaming(o.ID, d.refs, out, &answer)
	made, _ := answer.(map[string]any)
	if out.dry && a.preview != nil {
		if in.faults = refused.faults(); refused != nil {
			in.preview = d.refusedPreview(refused)
		} else {
			in.preview = a.preview(d, entriesOf([]any{answer})[0])
		}
		return d.previewed("record", in.preview, func() page { return d.show(in) })
	}
	switch {
	case refused != nil && refused.Status == http.StatusNotFound:
		return d.deny(refused)
	case refused != nil:
		in.status, in.faults, in.changes = refused.Status, refused.faults(), len(in.body) > 0 && (a.edit || a.preview == nil)
		if in.todo = d.todo(refused.Errors); in.todo != nil {
			in.wrong, in.faults = []string{d.lang.said(refused.Detail)}, nil
		} else if len(refused.Errors) == 0 {
			in.wrong = []string{refused.Detail}
		} else if d.lines && d.id != "" {
			in.wrong = []string{detail(refused)}
		}
		return d.show(in)
	case d.failed != nil:
		return page{}
	case out.dry, a.shows:
		if in.answer = d.drawn(a.says, made); in.answer == nil && made["id"] != nil && d.of.live != nil { // a record
			in.answer = &display{Pairs: d.live(o.Answer, made)}
		} else if in.answer == nil {
			in.answer = new(d.shown("", o.Answer, answer))
		}
		if in.tried = out.dry; !in.tried {
			in.body = nil
		}
		return d.show(in)
	}
	to := d.here()
	switch id := textOf(made["id"]); {
	case a.to != nil && a.did == "":
		return page{redirect: a.to(d, made)}
	case a.to != nil:
		to = a.to(d, made)
	case a.operation == d.of.create && id != "" && d.of.leads == "" && !d.of.inline:
		to = d.of.address(d.parent, id)
	case a.operation == d.of.remove, d.id == "":
		to = d.of.address(d.parent, "")
	}
	return page{redirect: after(done, to, cmp.Or(a.did, "done"))}
}

// here returns the page's address and query, without the confirmation of the last action.
func (d *desk) here() string {
	query := d.r.URL.Query()
	query.Del("done")
	query.Del("at")
	return strings.TrimSuffix(d.r.URL.Path+"?"+query.Encode(), "?")
}

// inputOf returns the request of a posted form. It adds to in the values for redrawing a refused form.
func (d *desk) inputOf(o *operation, a action, record map[string]any, in *sent) request {
	form := d.r.PostForm
	for name, values := range form { // several boxes may have one name
		if d.linked(lastPart(name)) != "" {
			form.Set(name, strings.Join(values, "\n"))
		}
	}
	query, body := d.inputs(o, a, record)
	in.query = url.Values{}
	for name, value := range query.read(form, false) {
		in.query.Set(name, textOf(value))
	}
	out := request{
		vars: d.vars(o), query: in.query, key: in.key, reason: in.reason, dry: form.Get("preview") != "" && o.DryRun, match: form.Get("revision"),
	}
	if a.reason == required && out.dry {
		out.reason = cmp.Or(in.reason, "tried") // it is stored nowhere
	}
	if a.body != nil {
		out.body = a.body(record)
		in.body, _ = out.body.(map[string]any)
	}
	if body == nil {
		return out
	}
	in.body = withoutEmptyItems(body.read(form, a.edit || a.starts != nil))
	switch form.Get("side") { // the form of a row shows only this side
	case "in":
		delete(in.body, "out_entries")
	case "out":
		delete(in.body, "in_entries")
	}
	if d.of.kinds != nil && a.operation == d.of.create {
		in.body["type"] = d.kind(nil)
	}
	if d.of.by != "" && d.parent != "" {
		in.body[d.of.by] = d.parent
	}
	if a.fills != nil {
		a.fills(d, in.body)
	}
	for _, p := range body.Properties {
		if was, is := record[p.Name].(map[string]any); a.edit && p.Kind == "group" && is && in.body[p.Name] == nil && len(was) > 0 {
			in.body[p.Name], _ = reader(form).object(p.schema, p.Name, true) // the user cleared all inputs
		}
		if p.Kind == "file" {
			out.files = append(out.files, d.files(p.Name)...)
		}
	}
	if out.body = in.body; a.edit {
		out.body = differing(in.body, record)
	}
	return out
}

// lastPart returns the last name of a JSON path.
func lastPart(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// differing returns the values of a body that differ from the record. An empty input equals a missing value.
func differing(body, record map[string]any) map[string]any {
	changed := map[string]any{}
	for name, value := range body {
		inner, isObject := value.(map[string]any)
		was, wasObject := record[name].(map[string]any)
		switch {
		case isObject && wasObject:
			if inner = differing(inner, was); len(inner) > 0 {
				changed[name] = inner
			}
		case canonical(value) != canonical(record[name]):
			changed[name] = value
		}
	}
	return changed
}

// canonical returns a value as a text for comparison, "" for an empty one. An object has no empty values.
func canonical(value any) (text string) {
	switch value := value.(type) {
	case nil:
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if one := canonical(value[name]); one != "" {
				text += fmt.Sprintf("%q: %q,", name, one)
			}
		}
	case []any:
		for _, one := range value {
			text += fmt.Sprintf("%q,", canonical(one))
		}
	default:
		text = fmt.Sprint(value)
	}
	return text
}

// found returns the record of the page. Without it the request fails.
func (d *desk) found() map[string]any {
	record, refused := d.find()
	d.require(refused)
	return record
}

// find returns the record of the page, with texts in place of references.
func (d *desk) find() (map[string]any, *problem) {
	record, refused := d.stored()
	if refused != nil || d.refs == nil {
		return record, refused
	}
	return d.refs.texts(record), nil
}

func (d *desk) stored() (map[string]any, *problem) {
	if d.of.find != nil {
		return d.of.find(d)
	}
	if d.of.get != "" {
		var record map[string]any
		o := d.operation(d.of.get)
		out, refused := d.ask(o.ID, request{vars: d.vars(o)}, &record)
		switch {
		case record == nil && refused == nil: // the visit has failed
		case refused != nil && refused.Status == http.StatusUnprocessableEntity, // an id of another kind
			refused == nil && d.of.by != "" && textOf(record[d.of.by]) != d.parent:
			return nil, errNoPage
		case refused == nil && record["revision"] == nil:
			record["revision"] = strings.Trim(out.Header.Get("ETag"), `"`)
		}
		return record, refused
	}
	for number := 1; ; number++ {
		rows, total, refused := d.rows(d.listQuery(), number, rowsFound)
		if refused != nil {
			return nil, refused
		}
		for _, r := range rows {
			if idOf(r) == d.id {
				return r, nil
			}
		}
		if len(rows) < rowsFound || number*rowsFound >= total {
			return nil, errNoPage
		}
	}
}

const (
	rowsListed = 50
	rowsFound  = 100 // page size when searching a list for a record
)

// idOf returns the id of a record.
func idOf(record map[string]any) string {
	row := inner(record, "row") // of the daybook
	return cmp.Or(textOf(record["id"]), textOf(row["id"]), textOf(record["user_id"]), textOf(record["name"]), textOf(record["through"]))
}

// rowSchema returns the schema of a record in its list.
func (d *desk) rowSchema() *schema {
	o := d.operation(cmp.Or(d.of.get, d.of.list))
	if o.Answer == nil {
		return &schema{}
	}
	if o.Answer.Kind == "lines" {
		return o.Answer.Items
	}
	for _, p := range o.Answer.Properties {
		if p.Kind == "lines" && d.of.get == "" {
			return p.Items
		}
	}
	return o.Answer
}

// head returns the name of a record in its list.
func (d *desk) head(record map[string]any) *display {
	one := d.drawn(d.of.columns[0], record)
	if one == nil {
		one = &display{Label: d.lang.t(labelOf(d.of.columns[0])), Text: d.title(record)}
		if d.of.leads != "" {
			one.Link = d.of.leads + url.QueryEscape(idOf(record))
		} else if !d.of.inline || d.of.get != "" {
			one.Link = d.of.address(d.parent, idOf(record))
		}
	}
	return one
}

// cell returns a field of a record as display text.
func (d *desk) cell(name string, s *schema, record map[string]any) display {
	if one := d.drawn(name, record); one != nil {
		return *one
	}
	return d.shown(name, s, record[name])
}

// computed is the data of a template of cells.html.
type computed struct {
	*desk

	Of map[string]any // the record
}

// drawn returns a computed field of a record, nil if the resource has no template for it.
func (d *desk) drawn(name string, record map[string]any) *display {
	cells := d.views[d.lang]["cells"]()
	if d.of.cells == "" || cells.Lookup(d.of.cells+"-"+name) == nil {
		return nil
	}
	var text strings.Builder
	d.deny(cells.ExecuteTemplate(&text, d.of.cells+"-"+name, computed{d, record}))
	one := &display{Label: d.lang.t(labelOf(name))}
	one.HTML = template.HTML(strings.TrimSpace(text.String())) //nolint:gosec // G203: a template wrote it
	if slices.Contains(d.of.weights, name) {
		one.Class = "n weight"
	}
	return one
}

// ID returns the id of the record of the page, "" in a list.
func (d *desk) ID() string { return d.id }
