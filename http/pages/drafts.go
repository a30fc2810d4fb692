package pages

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"bahi/domain/fault"
	"bahi/http/api"
)

// draftResource are the orders from chat that are not converted yet.
func draftResource() *resource {
	return &resource{
		base: Path, word: "drafts", title: "Drafts", about: "Orders that came by chat. Check and convert them.", list: "list-order-drafts",
		leads: Path + "/drafts/", oldest: true, without: []string{"slip_number"}, columns: []string{"draft", "from", "message", "entries"},
		cells: "drafts", get: "get-order-draft",
		own: func(d *desk, in sent) page { return d.showDraft(draftPage{sent: in}, nil, nil, in.status) },
		each: []action{{
			operation: "delete-order-draft", button: "Delete the draft", did: "delete", reason: required, danger: true,
			to: func(*desk, map[string]any) string { return Path + "/drafts" },
		}},
	}
}

// localTime formats a time without a zone, such as 2025-03-02T14:45:00.
func (l language) localTime(of any) string { return l.moment(textOf(of)+"Z", time.UTC) }

// unsure reports whether a user should check the reading of an entry.
func unsure(entry map[string]any) bool {
	sure, known := toDecimal(entry["confidence"])
	return known && sure.Shift(2).IntPart() < 80
}

// unsureOf returns the number of entries that a user should check.
func unsureOf(entries any) int {
	return len(slices.DeleteFunc(entriesOf(entries), func(e map[string]any) bool { return !unsure(e) }))
}

// sure returns how sure the reading of an entry is, in percent.
func sure(entry map[string]any) string {
	confidence, _ := toDecimal(entry["confidence"])
	return confidence.Shift(2).StringFixed(0)
}

// draftEntry is an entry of a draft: a line of inputs, and its reading.
type draftEntry struct {
	Name   string // of the line: entries[0]
	Number int
	Fields []field
	Read   map[string]any // nil for a new line
	Delete bool
}

// draftPage is the content of the page of a draft.
type draftPage struct {
	Draft   map[string]any
	Link    string
	Head    []field
	Entries []draftEntry
	Base    string // the draft, as JSON
	Clients refs
	Plan    *preview // the orders after conversion
	Next    string   // main button: save, number or convert
	Focus   bool     // the main button has the focus
	Wrong   []string
	Theirs  []difference
	Forms   []actForm // that deletes it

	sent sent // by that form
}

// draftForm is the form of a draft.
type draftForm struct {
	names references
	head  *schema
	entry *schema // without the id
	whole *schema
}

func (v *visit) draftForm() draftForm {
	f := draftForm{names: references{"client_id": v.refsOf("client")}}
	f.head, f.entry = f.names.schema(v.schemaOf("edit-order-draft")), f.names.schema(v.schemaOf("edit-order-draft-entry"))
	withID := *f.entry
	withID.Properties = append([]property{{"id", &schema{Kind: "whole"}}}, f.entry.Properties...)
	lines := property{"entries", &schema{Kind: "lines", Items: &withID}}
	f.whole = &schema{Kind: "group", Properties: append(slices.Clone(f.head.Properties), lines)}
	return f
}

// showDraft shows a draft: the message beside its entries. After a refused change, it shows the typed values and the faults.
func (v *visit) showDraft(shown draftPage, typed *draftChanges, faults map[string]string, status int) page {
	id := v.r.PathValue("record")
	form := v.draftForm()
	draft := v.one("get-order-draft", id)
	shown.Draft, shown.Link, shown.Forms = draft, pagePath("drafts", id), v.desk(draftResource(), true).forms(shown.sent, draft)
	shown.Clients = form.names["client_id"]
	stored := form.names.texts(draft)
	shown.Base = compact(stored)
	values, known, found := stored, entriesByID(draft), map[string]bool{}
	if typed != nil {
		values = typed.over(stored)
	} else {
		for i, e := range entriesOf(stored["entries"]) {
			if client, _ := shown.Clients.find(v.lang, textOf(e["client_name"])); client != "" && e["client_id"] == nil {
				e["client_id"], found[fmt.Sprintf("entries[%d].client_id", i)] = shown.Clients.Text(client), true // it is not saved yet
				delete(known[plain(e["id"])], "client_proposals")
			}
		}
	}
	if status == http.StatusPreconditionFailed && typed != nil {
		shown.Theirs = typed.besides(v.lang, stored, values)
	}
	drawn := form.whole.fields("", values, faults, 1)
	ofItems(drawn, "")
	drawn[0].Label = "Client of the entries without one"
	last := len(drawn) - 1 // the entries
	shown.Head = drawn[:last]
	entries := entriesOf(values["entries"])
	for i, fields := range drawn[last].Lines {
		one := draftEntry{Name: fmt.Sprintf("entries[%d]", i), Number: i + 1, Fields: fields}
		if i < len(entries) {
			one.Read, one.Delete = known[plain(entries[i]["id"])], entries[i]["delete"] == true
		}
		shown.Entries = append(shown.Entries, one)
	}
	shown.Wrong = append(shown.Wrong, v.lang.misplaced(drawn, faults)...)
	shown.Next = "save"
	if shown.Plan == nil && v.permissions()["ledger:write"] {
		shown.Plan, shown.Next = v.plan(id, found)
	}
	if typed == nil {
		nameless := func(e map[string]any) bool { return e["client_id"] == nil }
		shown.Focus = shown.Next == "convert" || shown.Next == "number" && !slices.ContainsFunc(entriesOf(values["entries"]), nameless)
		shown.Head[0].Focus = !shown.Focus
	}
	return page{template: "draft", title: v.lang.tf("Draft %s", id), status: status, body: shown}
}

// plan sets the resulting orders and the next step. It names no missing field that the form has found.
func (v *visit) plan(id string, found map[string]bool) (_ *preview, next string) {
	var made map[string]any
	_, refused := v.ask("convert-order-draft", request{vars: []string{id}, body: map[string]any{}, dry: true}, &made)
	p := &preview{}
	if refused != nil {
		all := len(refused.Errors)
		refused.Errors = slices.DeleteFunc(refused.Errors, func(f fault.Field) bool { return found[f.Field] })
		if all > 0 && len(refused.Errors) == 0 {
			return &preview{Wrong: []string{v.lang.t("Not saved yet.")}}, "save"
		}
		p.Wrong = v.lang.lacking(refused)
		lacksSlip := func(f fault.Field) bool { return strings.HasSuffix(f.Field, ".slip_number") }
		lacksOther := func(f fault.Field) bool { return !lacksSlip(f) && !strings.HasSuffix(f.Field, ".client_id") }
		if next = "save"; slices.ContainsFunc(refused.Errors, lacksSlip) && !slices.ContainsFunc(refused.Errors, lacksOther) {
			next = "number"
		}
		return p, next
	}
	orders := entriesOf(made["orders"])
	if len(orders) == 1 {
		p.Says = []string{v.lang.tf("1 order: %s", v.lang.orderWords(orders[0]))}
	} else {
		p.Says = []string{v.lang.tf("%s orders:", len(orders))}
	}
	for _, o := range orders {
		if len(orders) > 1 {
			p.Says = append(p.Says, v.lang.orderWords(o))
		}
		for _, w := range v.lang.warnings(o["warnings"]) {
			p.Warnings = append(p.Warnings, v.lang.tf("slip %s", textOf(o["slip_number"]))+": "+w)
		}
	}
	return p, "convert"
}

// lacking lists missing fields, one a line: Client: entries 1, 2.
func (l language) lacking(refused *problem) []string {
	var keys, lines []string
	places := map[string][]string{}
	for _, f := range refused.Errors {
		array, i, key := lineAt(f.Field)
		if array != "entries" || key == "" {
			lines = append(lines, l.t(fieldLabel(f.Field))+": "+l.t(f.Message))
			continue
		}
		if places[key] == nil {
			keys = append(keys, key)
		}
		places[key] = append(places[key], strconv.Itoa(i+1))
	}
	for _, key := range keys {
		lines = append(lines, l.tf("%s: entry %s", l.t(fieldLabel(key)), strings.Join(places[key], ", ")))
	}
	if len(lines) == 0 {
		return []string{l.t(refused.Detail)}
	}
	return append([]string{l.t("These are missing before it can be converted:")}, lines...)
}

// draftChanges are the differences between a form and the draft from which it was drawn. So a retried form has the same changes.
type draftChanges struct {
	base    map[string]any
	head    map[string]any
	entries []map[string]any // as typed; new ones have no id
	writes  []draftWrite
}

// draftWrite is one write of a form. The faults of its fields are below prefix.
type draftWrite struct {
	operation, prefix string
	vars              []string
	body              map[string]any
	adds              bool // adds an entry, so it does not depend on a revision
}

// changesOf returns the changes of a form.
func (f draftForm) changesOf(id string, form url.Values) (*draftChanges, error) {
	c := &draftChanges{}
	if err := decode([]byte(form.Get("base")), &c.base); err != nil {
		return nil, fault.New(fault.Malformed, "This form cannot be read. Nothing was done.")
	}
	r, was := reader(form), entriesByID(c.base)
	lines := r.lines("entries")
	takeProposals(form, lines, was)
	c.head, _ = r.object(f.head, "", true)
	if body := differing(c.head, c.base); len(body) > 0 {
		c.writes = append(c.writes, draftWrite{operation: "edit-order-draft", vars: []string{id}, body: body})
	}
	var deletes, adds []draftWrite
	for _, i := range lines {
		name := fmt.Sprintf("entries[%d]", i)
		entry := form.Get(name + ".id")
		typed, given := r.object(f.entry, name, entry != "")
		w := draftWrite{operation: "edit-order-draft-entry", prefix: fmt.Sprintf("entries[%d]", len(c.entries)), vars: []string{id, entry}}
		switch {
		case entry == "" && !given:
			continue
		case entry == "":
			w.operation, w.vars, w.body, w.adds = "add-order-draft-entry", w.vars[:1], typed, true
			adds = append(adds, w)
		case form.Get(name+".delete") != "":
			w.operation = "delete-order-draft-entry"
			deletes = append(deletes, w)
		default:
			if w.body = differing(typed, was[entry]); len(w.body) > 0 {
				c.writes = append(c.writes, w)
			}
		}
		typed = maps.Clone(typed)
		typed["id"], typed["delete"] = number(entry, ""), form.Get(name+".delete") != ""
		c.entries = append(c.entries, typed)
	}
	c.writes = slices.Concat(c.writes, deletes, adds)
	return c, nil
}

// entriesByID returns the entries of a draft by their ids.
func entriesByID(draft map[string]any) map[string]map[string]any {
	all := map[string]map[string]any{}
	for _, e := range entriesOf(draft["entries"]) {
		all[plain(e["id"])] = e
	}
	return all
}

// takeProposals sets the chosen client in all entries with the same handwritten name.
func takeProposals(form url.Values, lines []int, was map[string]map[string]any) {
	written := func(line string) string { return textOf(was[form.Get(line+".id")]["client_name"]) }
	for _, i := range lines {
		line := fmt.Sprintf("entries[%d]", i)
		chosen := form.Get(line + ".take")
		for _, j := range lines {
			other := fmt.Sprintf("entries[%d]", j)
			if chosen != "" && form.Get(other+".client_id") == "" && (i == j || written(line) != "" && written(other) == written(line)) {
				form.Set(other+".client_id", chosen)
			}
		}
	}
}

// over returns the values of a draft with the visitor's changes. It omits entries that another user deleted.
func (c *draftChanges) over(stored map[string]any) map[string]any {
	values, known, entries := maps.Clone(stored), entriesByID(stored), []any{}
	maps.Copy(values, c.head)
	for _, e := range c.entries {
		if id := plain(e["id"]); id == "" || known[id] != nil {
			entries = append(entries, e)
		}
	}
	values["entries"] = entries
	return values
}

// besides returns the differences between the stored draft and the visitor's values.
func (c *draftChanges) besides(l language, stored, values map[string]any) []difference {
	found := l.recordDifferences(stored, values)
	if was, is := textOf(stored["notes"]), textOf(values["notes"]); was != is {
		found = append(found, difference{l.t(labelOf("notes")), was, is})
	}
	var theirs, mine []any
	known := entriesByID(stored)
	for _, e := range c.entries {
		if id := plain(e["id"]); id != "" && known[id] == nil {
			found = append(found, difference{What: l.t("An entry that was deleted"), After: textOf(e["item_name"])})
		} else if id != "" {
			theirs, mine = append(theirs, known[id]), append(mine, e)
		}
	}
	return append(found, l.differences(l.t("Entries"), theirs, mine)...)
}

// writeDraft runs the writes of a form in order, each on the revision of the previous one. It returns the last response and its revision,
// "" if it has none. A dry run tries all writes, and returns all faults.
func (v *visit) writeDraft(f draftForm, c *draftChanges, dry bool) (out api.Response, revision string, refused *problem) {
	var faults []fault.Field
	revision = v.r.PostForm.Get("revision")
	for n, w := range c.writes {
		in := request{vars: w.vars, key: fmt.Sprintf("%s-%d", v.r.PostForm.Get("key"), n), match: revision, dry: dry}
		if w.body != nil {
			in.body = w.body
		}
		if w.adds {
			in.match = ""
		}
		out, refused = v.askNaming(w.operation, f.names, in, nil)
		if refused != nil {
			for _, e := range refused.Errors {
				e.Field = below(w.prefix, e.Field)
				faults = append(faults, e)
			}
			refused.Errors = faults
			if !dry || len(faults) == 0 && refused.Status != http.StatusPreconditionFailed {
				return out, "", refused
			}
			continue
		}
		if !dry {
			revision = strings.Trim(out.Header.Get("ETag"), `"`)
		}
	}
	if len(faults) > 0 {
		return out, "", &problem{Detail: v.lang.t("Some fields are not right."), Status: http.StatusUnprocessableEntity, Errors: faults}
	}
	return out, revision, nil
}

// editDraft saves the form of a draft, then numbers its slips or converts it. It converts only orders that the page has shown: a changed
// form is saved, and the page shows the resulting orders first.
func (v *visit) editDraft() page {
	if d := v.desk(draftResource(), true); v.r.PostForm.Get("do") == d.of.each[0].operation {
		return d.serve()
	}
	form, id, posted := v.draftForm(), v.r.PathValue("record"), v.r.PostForm
	changes, err := form.changesOf(id, posted)
	if err != nil {
		return v.deny(err)
	}
	refuse := func(refused *problem) page {
		if refused.Status == http.StatusNotFound { // another user deleted an entry or the draft
			refused.Status = http.StatusPreconditionFailed
		}
		return v.showDraft(draftPage{Wrong: general(refused)}, changes, refused.faults(), refused.Status)
	}
	if posted.Get("preview") != "" {
		return v.previewedDraft(form, changes)
	}
	// A retried form has an earlier revision. Its writes are replayed by their keys, so only faults matter here.
	out, revision := api.Response{}, posted.Get("revision")
	for _, dry := range []bool{true, false} {
		if len(changes.writes) == 0 {
			break
		}
		var refused *problem
		out, revision, refused = v.writeDraft(form, changes, dry)
		if dry && refused != nil && refused.Status == http.StatusNotFound {
			continue // already deleted by this form
		}
		if refused != nil {
			return refuse(refused)
		}
	}
	in := request{vars: []string{id}, key: posted.Get("key"), match: revision}
	switch do := posted.Get("do"); {
	case do == "number":
		out, refused := v.ask("recalculate-slip-numbers", in, nil)
		if refused != nil {
			return refuse(refused)
		}
		return page{redirect: after(out, pagePath("drafts", id), "numbered")}
	case do != "save" && len(changes.writes) == 0:
		in.body = map[string]any{}
		var made map[string]any
		out, refused := v.ask("convert-order-draft", in, &made)
		if refused != nil {
			return refuse(refused)
		}
		if orders := entriesOf(made["orders"]); len(orders) == 1 {
			return page{redirect: after(out, pagePath("orders", orders[0]["id"]), "converted")}
		}
		return page{redirect: after(out, Path+"/orders", "converted")}
	default:
		return page{redirect: after(out, pagePath("drafts", id), "added")}
	}
}

// previewedDraft shows the effect of a form. The orders contain only saved values.
func (v *visit) previewedDraft(form draftForm, changes *draftChanges) page {
	id := v.r.PathValue("record")
	p, _ := v.plan(id, nil)
	var refused *problem
	if len(changes.writes) > 0 {
		p = &preview{Wrong: []string{v.lang.t("Not saved yet.")}}
		if _, _, refused = v.writeDraft(form, changes, true); refused != nil {
			p.Wrong = append(p.Wrong, v.refusedPreview(refused).Wrong...)
		}
	}
	return v.previewed("record", p, func() page { return v.showDraft(draftPage{Plan: p}, changes, refused.faults(), 0) })
}
