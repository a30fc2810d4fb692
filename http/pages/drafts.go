package pages

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"bahi/domain/fault"
)

func draftPath(id string) string { return Path + "/drafts/" + url.PathEscape(id) }

// draftResource are the orders from chat that are not converted yet.
func draftResource() *resource {
	return &resource{
		base: Path, word: "drafts", title: "Drafts", about: "Orders that came by chat. Check and convert them.", list: "list-order-drafts",
		leads: Path + "/drafts/", oldest: true, without: []string{"slip_number"}, columns: []string{"draft", "from", "message", "entries"},
		cells: "drafts",
	}
}

// localTime formats a time without a zone, such as 2025-03-02T14:45:00.
func (l language) localTime(of any) string {
	text := textOf(of)
	day, clock, found := strings.Cut(text, "T")
	if !found || len(clock) < len("14:45") {
		return text
	}
	return l.day(day) + ", " + clock[:len("14:45")]
}

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
	Draft    map[string]any
	Link     string
	Head     []field
	Entries  []draftEntry
	Base     string // the draft, as JSON
	Clients  refs
	Plan     *preview // the orders after conversion
	Next     string   // main button: save, number or convert
	Focus    bool     // the main button has the focus
	Wrong    []string
	Theirs   []difference
	Reason   string
	Deleting bool
}

// draftForm is the form of a draft.
type draftForm struct {
	names  references
	head   *schema
	entry  *schema // with the id
	whole  *schema
	client refs
}

func (v *visit) draftForm() draftForm {
	f := draftForm{client: v.accountRefs("client")}
	f.names = references{"client_id": f.client}
	f.head, f.entry = v.recordSchema("edit-order-draft", f.names), v.recordSchema("edit-order-draft-entry", f.names)
	withID := *f.entry
	withID.Properties = append([]property{{"id", &schema{Kind: "whole"}}}, f.entry.Properties...)
	lines := property{"entries", &schema{Kind: "lines", Items: &withID}}
	f.whole = &schema{Kind: "group", Properties: append(slices.Clone(f.head.Properties), lines)}
	return f
}

// draw returns the inputs of a draft with values.
func (f draftForm) draw(values map[string]any, faults map[string]string) (head []field, lines [][]field) {
	drawn := f.whole.fields("", values, faults, 1)
	drawn = arranged(drawn, "client_id")
	for _, one := range drawn {
		for _, line := range one.Lines {
			arranged(line, "client_id")
		}
	}
	drawn[0].Label = draftClient
	for _, one := range drawn {
		if one.Key == "entries" {
			lines = one.Lines
			continue
		}
		head = append(head, one)
	}
	return head, lines
}

// draftClient is the label of a draft's client.
const draftClient = "Client of the entries without one"

func (v *visit) draft() page { return v.showDraft(draftPage{}, nil, nil, 0) }

// showDraft shows a draft: the message beside its entries. After a refused change, it shows the typed values and the faults.
func (v *visit) showDraft(shown draftPage, typed *draftChanges, faults map[string]string, status int) page {
	id := v.r.PathValue("id")
	form := v.draftForm()
	var draft map[string]any
	v.read("get-order-draft", request{vars: []string{id}}, &draft)
	shown.Draft, shown.Link = draft, draftPath(id)
	shown.Clients = form.client
	stored := form.names.texts(draft)
	base, err := json.Marshal(stored)
	if err != nil {
		return v.deny(err)
	}
	shown.Base = string(base)
	values := stored
	if typed != nil {
		values = typed.over(stored)
	} else {
		for _, e := range entriesOf(stored["entries"]) {
			if found, _ := form.client.find(v.lang, textOf(e["client_name"])); found != "" && e["client_id"] == nil {
				e["client_id"] = form.client.Text(found) // it is not saved yet
			}
		}
	}
	if status == http.StatusPreconditionFailed && typed != nil {
		shown.Theirs = typed.besides(v.lang, stored, values)
	}
	var lines [][]field
	shown.Head, lines = form.draw(values, faults)
	entries, known := entriesOf(values["entries"]), entriesByID(draft)
	for i, fields := range lines {
		one := draftEntry{Name: fmt.Sprintf("entries[%d]", i), Number: i + 1, Fields: fields}
		if i < len(entries) {
			one.Read, one.Delete = known[plain(entries[i]["id"])], entries[i]["delete"] == true
		}
		shown.Entries = append(shown.Entries, one)
	}
	all := append(slices.Clone(shown.Head), field{Lines: lines})
	shown.Wrong = append(shown.Wrong, misplaced(all, faults)...)
	shown.Next = "save"
	if shown.Plan == nil && v.permissions()["ledger:write"] {
		shown.Plan, shown.Next = v.plan(id)
	}
	if typed == nil {
		nameless := func(e map[string]any) bool { return e["client_id"] == nil }
		shown.Focus = shown.Next == "convert" || shown.Next == "number" && !slices.ContainsFunc(entriesOf(values["entries"]), nameless)
		shown.Head[0].Focus = !shown.Focus
	}
	return page{template: "draft", title: v.lang.tf("Draft %s", id), status: status, body: shown}
}

// plan sets the resulting orders and the next step.
func (v *visit) plan(id string) (_ *preview, next string) {
	var made struct {
		Orders []map[string]any `json:"orders"`
	}
	_, refused := v.ask("convert-order-draft", request{vars: []string{id}, body: map[string]any{}, dry: true}, &made)
	p := &preview{}
	if refused != nil {
		p.Wrong = v.lang.lacking(refused)
		lacksSlip := func(f fault.Field) bool { return strings.HasSuffix(f.Field, ".slip_number") }
		lacksOther := func(f fault.Field) bool { return !lacksSlip(f) && !strings.HasSuffix(f.Field, ".client_id") }
		if next = "save"; slices.ContainsFunc(refused.Errors, lacksSlip) && !slices.ContainsFunc(refused.Errors, lacksOther) {
			next = "number"
		}
		return p, next
	}
	if len(made.Orders) == 1 {
		p.Says = []string{v.lang.tf("1 order: %s", v.lang.orderWords(made.Orders[0]))}
	} else {
		p.Says = []string{v.lang.tf("%s orders:", len(made.Orders))}
	}
	for _, o := range made.Orders {
		if len(made.Orders) > 1 {
			p.Says = append(p.Says, v.lang.orderWords(o))
		}
		for _, w := range warningsOf(o) {
			p.Warnings = append(p.Warnings, v.lang.tf("slip %s", textOf(o["slip_number"]))+": "+v.lang.said(w))
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
