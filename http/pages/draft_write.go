package pages

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"bahi/domain/fault"
	"bahi/http/api"
)

// draftChanges are the changes of a form of a draft: the inputs that differ from the values that the form was drawn with. So the same form
// has the same changes whenever it is sent.
type draftChanges struct {
	form    url.Values
	base    map[string]string
	changed map[string]bool   // names of inputs
	lines   []int             // of entries in the form, in order
	places  map[string]string // of lines in the page that is drawn again, by those in the form
	writes  []draftWrite
}

// draftWrite is one write of a form. The faults of its fields are below prefix.
type draftWrite struct {
	operation, prefix string
	vars              []string
	body              map[string]any
	adds              bool // it is a new entry, so it does not depend on a revision
}

// changesOf reads what a form changes.
func (f draftForm) changesOf(id string, form url.Values) (*draftChanges, error) {
	c := &draftChanges{form: form, base: map[string]string{}, changed: map[string]bool{}}
	if err := json.Unmarshal([]byte(form.Get("base")), &c.base); err != nil {
		return nil, fault.New(fault.Malformed, "This form cannot be read. Nothing was done.")
	}
	r := reader{form, map[string][]int{}}
	for name := range form {
		r.index(name)
	}
	c.lines = r.lines["entries"]
	slices.Sort(c.lines)
	c.takeProposals()
	for name, values := range form {
		c.changed[name] = plainText(values[0]) != plainText(c.base[name])
	}
	if body := c.body(r, f.head, ""); len(body) > 0 {
		c.writes = append(c.writes, draftWrite{operation: "edit-order-draft", vars: []string{id}, body: body})
	}
	var deletes, adds []draftWrite
	for _, i := range c.lines {
		w := draftWrite{operation: "edit-order-draft-entry", prefix: fmt.Sprintf("entries[%d]", i)}
		entry := form.Get(w.prefix + ".id")
		w.vars = []string{id, entry}
		w.body = c.body(r, f.entry, w.prefix)
		switch {
		case entry == "":
			w.operation, w.vars, w.adds = "add-order-draft-entry", w.vars[:1], true
			if len(w.body) > 0 {
				adds = append(adds, w)
			}
		case form.Get(w.prefix+".delete") != "":
			w.operation, w.body = "delete-order-draft-entry", nil
			deletes = append(deletes, w)
		case len(w.body) > 0:
			c.writes = append(c.writes, w)
		}
	}
	c.writes = slices.Concat(c.writes, deletes, adds)
	return c, nil
}

// plainText returns a text as it is compared: browsers send other line ends than they got.
func plainText(text string) string { return strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n")) }

// body returns the values of the changed inputs of an object.
func (c *draftChanges) body(r reader, s *schema, prefix string) map[string]any {
	body := map[string]any{}
	for _, p := range s.Properties {
		name := below(prefix, p.Name)
		if value, _, kept := r.value(p.schema, name, true); kept && c.changed[name] {
			body[p.Name] = value
		}
	}
	return body
}

// takeProposals names the proposed client that the visitor chose, in all entries that have the same name as it was written.
func (c *draftChanges) takeProposals() {
	for _, i := range c.lines {
		line := fmt.Sprintf("entries[%d]", i)
		chosen, written := c.form.Get(line+".take"), c.base[line+".written"]
		for _, j := range c.lines {
			other := fmt.Sprintf("entries[%d]", j)
			if chosen != "" && c.form.Get(other+".client_id") == "" && (i == j || written != "" && c.base[other+".written"] == written) {
				c.form.Set(other+".client_id", chosen)
			}
		}
	}
}

// deletes reports whether the visitor ticked an entry for deletion.
func (c *draftChanges) deletes(entry string) bool {
	return c != nil && slices.ContainsFunc(c.lines, func(i int) bool {
		line := fmt.Sprintf("entries[%d]", i)
		return c.form.Get(line+".id") == entry && c.form.Get(line+".delete") != ""
	})
}

// over returns the values of a draft with what the visitor typed. Entries keep the draft's order; new ones follow.
func (c *draftChanges) over(stored map[string]any) map[string]any {
	values := maps.Clone(stored)
	var entries []any
	at := map[string]int{}
	for i, e := range entriesOf(stored["entries"]) {
		entries = append(entries, maps.Clone(e))
		at[plain(e["id"])] = i
	}
	if c != nil {
		c.places = map[string]string{}
		for name, changed := range c.changed {
			if changed && !strings.HasPrefix(name, "entries[") {
				values[name] = c.form.Get(name)
			}
		}
		for _, i := range c.lines {
			line, typed := fmt.Sprintf("entries[%d]", i), map[string]any{}
			for name, changed := range c.changed {
				if key, in := strings.CutPrefix(name, line+"."); in && changed {
					typed[key] = c.form.Get(name)
				}
			}
			entry, known := c.form.Get(line+".id"), false
			place := len(entries)
			if entry != "" {
				place, known = at[entry], true
				if _, there := at[entry]; !there {
					continue // another person deleted it
				}
			}
			if !known && len(typed) == 0 {
				continue
			}
			if !known {
				entries = append(entries, map[string]any{})
			}
			into, _ := entries[place].(map[string]any)
			maps.Copy(into, typed)
			c.places[line] = fmt.Sprintf("entries[%d]", place)
		}
	}
	values["entries"] = entries
	return values
}

// placed returns faults by the names of inputs in the page that is drawn again.
func (c *draftChanges) placed(faults map[string]string) map[string]string {
	if c == nil {
		return faults
	}
	placed := map[string]string{}
	for path, message := range faults {
		line, key, in := strings.Cut(path, "].")
		if place, known := c.places[line+"]"]; in && known {
			path = place + "." + key
		}
		placed[path] = message
	}
	return placed
}

// besides returns what another person saved beside what the visitor typed.
func (c *draftChanges) besides(l language, stored, values map[string]any) []difference {
	found := l.recordDifferences(stored, values)
	if was, is := textOf(stored["notes"]), textOf(values["notes"]); was != is {
		found = append(found, difference{l.t(labelOf("notes")), was, is})
	}
	mine := entriesOf(values["entries"])
	found = append(found, l.itemDifferences(l.t("Entries"), stored["entries"], toList(mine[:len(entriesOf(stored["entries"]))]))...)
	for _, i := range c.lines {
		line := fmt.Sprintf("entries[%d]", i)
		if c.form.Get(line+".id") != "" && c.places[line] == "" { // it is gone
			found = append(found, difference{What: l.t("An entry that was deleted"), After: c.form.Get(line + ".item_name")})
		}
	}
	return found
}

func toList(items []map[string]any) []any {
	list := make([]any, len(items))
	for i := range items {
		list[i] = items[i]
	}
	return list
}

// write runs the writes of a form in turn, each on the revision that the one before it made. It returns the last answer and its revision,
// "" if the answer has none. A dry run tries all of them, and returns all faults.
func (v *visit) writeDraft(f draftForm, c *draftChanges, dry bool) (out api.Response, revision string, err error) {
	var faults []fault.Field
	revision = c.form.Get("revision")
	for n, w := range c.writes {
		in := request{vars: w.vars, key: fmt.Sprintf("%s-%d", c.form.Get("key"), n), match: revision, dry: dry}
		if w.body != nil {
			in.body = w.body
		}
		if w.adds {
			in.match = ""
		}
		out, err = v.callNaming(w.operation, f.names, in, nil)
		refused := refusal(err)
		if err != nil && refused == nil {
			return out, "", err
		}
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

// editDraft saves the form of a draft, and then numbers its slips or converts it. Only what the page has shown is converted: a form with
// changes is saved, and the page shows the orders that the draft would be.
func (v *visit) editDraft() (page, error) {
	form, err := v.draftForm()
	if err != nil {
		return page{}, err
	}
	id, posted := v.r.PathValue("id"), v.r.PostForm
	changes, err := form.changesOf(id, posted)
	if err != nil {
		return page{}, err
	}
	refuse := func(refused *problem) (page, error) {
		if refused.Status == http.StatusNotFound { // an entry that another person deleted, or the draft
			refused.Status = http.StatusPreconditionFailed
		}
		return v.showDraft(draftPage{Wrong: general(refused)}, changes, refused.faults(), refused.Status)
	}
	if posted.Get("preview") != "" {
		return v.previewedDraft(form, changes)
	}
	// A form that was sent before has an earlier revision. Its writes are replayed by their keys, so only faults count here.
	out, revision := api.Response{}, posted.Get("revision")
	for _, dry := range []bool{true, false} {
		if len(changes.writes) == 0 {
			break
		}
		out, revision, err = v.writeDraft(form, changes, dry)
		refused := refusal(err)
		if dry && refused != nil && refused.Status == http.StatusNotFound {
			continue // an entry that this form deleted before
		}
		if refused != nil {
			return refuse(refused)
		}
		if err != nil {
			return page{}, err
		}
	}
	in := request{vars: []string{id}, key: posted.Get("key"), match: revision}
	switch do := posted.Get("do"); {
	case do == "number":
		out, err = v.call("recalculate-slip-numbers", in, nil)
		if refused := refusal(err); refused != nil {
			return refuse(refused)
		}
		if err != nil {
			return page{}, err
		}
		return page{redirect: after(out, draftPath(id), "numbered")}, nil
	case do != "save" && len(changes.writes) == 0:
		in.body = map[string]any{}
		var made struct {
			Orders []map[string]any `json:"orders"`
		}
		out, err = v.call("convert-order-draft", in, &made)
		if refused := refusal(err); refused != nil {
			return refuse(refused)
		}
		if err != nil {
			return page{}, err
		}
		if len(made.Orders) == 1 {
			return page{redirect: after(out, orderPath(plain(made.Orders[0]["id"])), "converted")}, nil
		}
		return page{redirect: after(out, Path+"/orders", "converted")}, nil
	default:
		return page{redirect: after(out, draftPath(id), "added")}, nil
	}
}

// previewedDraft shows what a form would do. What is not saved cannot be part of the orders.
func (v *visit) previewedDraft(form draftForm, changes *draftChanges) (page, error) {
	id := v.r.PathValue("id")
	p, _, err := v.plan(id)
	var refused *problem
	if len(changes.writes) > 0 {
		p = &preview{Wrong: []string{v.lang.t("Not saved yet.")}}
		_, _, err = v.writeDraft(form, changes, true)
		if refused = refusal(err); err != nil && refused == nil {
			return page{}, err
		}
		if refused != nil {
			for _, f := range refused.Errors {
				p.Wrong = append(p.Wrong, v.lang.pathWords(f.Field)+": "+v.lang.t(f.Message))
			}
			p.Wrong = append(p.Wrong, general(refused)...)
		}
	} else if err != nil {
		return page{}, err
	}
	if v.r.PostForm.Get("preview") == "part" {
		return page{template: "draft", part: "preview", body: p}, nil
	}
	return v.showDraft(draftPage{Plan: p}, changes, refused.faults(), 0)
}

// deleteDraft deletes a draft.
func (v *visit) deleteDraft() (page, error) {
	form := v.r.PostForm
	in := request{vars: []string{v.r.PathValue("id")}, key: form.Get("key"), match: form.Get("revision"),
		reason: strings.TrimSpace(form.Get("reason"))}
	if in.reason == "" {
		return v.showDraft(draftPage{Deleting: true, Wrong: []string{v.lang.t("Say why.")}}, nil, nil, http.StatusUnprocessableEntity)
	}
	out, err := v.call("delete-order-draft", in, nil)
	if refused := refusal(err); refused != nil && refused.Status != http.StatusNotFound {
		return v.showDraft(draftPage{Deleting: true, Reason: in.reason, Wrong: []string{detail(refused)}}, nil, nil, refused.Status)
	}
	if err != nil {
		return page{}, err
	}
	return page{redirect: after(out, Path+"/drafts", "delete")}, nil
}
