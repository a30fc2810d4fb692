package pages

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"bahi/http/api"
)

// operateRoutes registers the pages of operators.
func (p *Pages) operateRoutes() {
	operator := func(pattern string, answer func(*visit) (page, error)) {
		p.member(pattern, func(v *visit) (page, error) {
			if !v.who.Permissions.Operator {
				return page{}, api.ErrNotPermitted
			}
			return answer(v)
		})
	}
	operator("GET "+operatePath, (*visit).operate)
	for _, l := range []operateList{workspaceList, companyList, jobList, parkedList, webhookList, outboxList} {
		operator("GET "+operatePath+"/"+l.word, func(v *visit) (page, error) { return v.operateList(l, nil) })
		operator("POST "+operatePath+"/"+l.word, func(v *visit) (page, error) { return v.operateRun(l) })
	}
	operator("GET "+operatePath+"/webhooks/{id}", (*visit).webhook)
	operator("GET "+operatePath+"/projections", (*visit).projections)
	operator("GET "+operatePath+"/projections/{name}", (*visit).projection)
	operator("POST "+operatePath+"/projections/{name}", (*visit).steer)
	operator("GET "+operatePath+"/projections/{name}/rebuild", (*visit).estimate)
	operator("POST "+operatePath+"/projections/{name}/rebuild", (*visit).rebuild)
	operator("GET "+operatePath+"/events", (*visit).events)
	operator("GET "+operatePath+"/events/{position}", (*visit).event)
}

const operatePath = Path + "/operate"

// operatePage is the content of a page of operators: facts and tables, which may change while the page is open, then forms. Labels and
// names are English, texts are in the visitor's language.
type operatePage struct {
	Label        string   // what the page is about
	Up           []choice // pages above this one; none: the page has links to the others
	Here         string
	Total        string
	Wrong        []string
	Address      string // to which the filters lead
	Filters      []field
	Asked        bool
	Stream       string // operation whose events tell of changes
	Again        int    // seconds after which the facts and tables are read again
	Said, Tone   string // the state in words, and its CSS class
	Links        []choice
	Facts        []opsCell
	Progress     string // percent of a rebuild
	Tables       []opsTable
	Fixed        []opsTable // with forms, so they change only with what can be done
	Forms        []opsForm
	Fields       []field // of the main form
	Main         opsForm
	Texts        []opsCell
	Newer, Older string // addresses
}

// opsTable is a table of operators. Its columns are the labels of its first line.
type opsTable struct {
	Label, Count, Link string
	Narrow             bool // it is a table on a phone, too
	Lines              []opsLine
}

type opsLine struct {
	Cells []opsCell
	Note  opsCell // below the line
	Text  string  // behind a click
	Forms []opsForm
}

// Acts reports whether a line has forms.
func (t opsTable) Acts() bool {
	return slices.ContainsFunc(t.Lines, func(l opsLine) bool { return len(l.Forms) > 0 })
}

// opsCell is a value with its label. Its text is of the visitor's language.
type opsCell struct {
	Label, Text, Link, Moment, Chip string
	Code                            bool
}

// opsForm is a form that runs an operation on a thing. Its name is on the button. With a label, which says what it does, a first click
// opens the form.
type opsForm struct {
	Name, Label      string
	Do, ID, Position string
	Address          string // empty: of the page
	Field, Value     string // an input
	Reason           bool   // it asks for one
	Danger, Main     bool
}

// Key returns a part of the ids of the form's inputs.
func (o opsForm) Key() string { return o.Do + "-" + o.ID }

// needs has the words for what needs an operator, and where that is.
var operateNeeds = []struct{ what, Label, link string }{
	{what: "parked", Label: "Stopped at an event", link: "/parked"},
	{what: "differs", Label: "Rebuilds that differ and wait for you", link: "/projections"},
	{what: "discarded", Label: "Jobs that were given up", link: "/jobs?state=discarded"},
	{what: "webhooks", Label: "Calls of providers that could not be handled", link: "/webhooks?verdict=parked"},
	{what: "retryable", Label: "Jobs that failed and are tried again", link: "/jobs?state=retryable"},
	{what: "paused", Label: "Paused projections and rebuilds", link: "/projections"},
}

// operate shows what needs an operator.
func (v *visit) operate() (page, error) {
	var s struct {
		Needs []struct {
			What  string `json:"what"`
			Count any    `json:"count"`
		} `json:"needs"`
		Head     any            `json:"head"`
		Recorded string         `json:"recorded_at"`
		Jobs     map[string]any `json:"jobs"`
		Outbox   map[string]any `json:"outbox"`
	}
	if _, err := v.call("get-status", request{}, &s); err != nil {
		return page{}, err
	}
	b := operatePage{Again: 15, Said: v.lang.t("All is well."), Tone: "done"}
	if len(s.Needs) > 0 {
		b.Said, b.Tone = v.lang.t("This needs you:"), "warn"
	}
	for _, n := range s.Needs {
		for _, known := range operateNeeds {
			if known.what == n.What {
				b.Links = append(b.Links, choice{Value: operatePath + known.link, Text: v.lang.t(known.Label) + ": " + unsigned(n.Count, 0)})
			}
		}
	}
	b.Facts = []opsCell{
		{Label: "Newest event", Text: unsigned(s.Head, 0), Link: operatePath + "/events"}, {Label: "Recorded", Moment: s.Recorded},
	}
	for _, state := range []string{"available", "scheduled", "running", "retryable", "discarded"} {
		if s.Jobs[state] != nil {
			text := unsigned(s.Jobs[state], 0) + " · " + v.stateWord(state)
			b.Facts = append(b.Facts, opsCell{Label: "Jobs", Text: text, Link: operatePath + "/jobs?state=" + state})
		}
	}
	if kept := unsigned(s.Outbox["mail"], 0); kept != "" && kept != "0" {
		text := v.lang.tf("%s not sent: no SMTP_URL", kept)
		b.Facts = append(b.Facts, opsCell{Label: "Mails", Text: text, Link: operatePath + "/outbox?port=mail"})
	}
	var all []opsProjection
	if _, err := v.call("list-projections", request{}, &all); err != nil {
		return page{}, err
	}
	b.Tables = []opsTable{v.projectionTable(all)}
	spaces := *v.newList(workspaceList)
	if err := v.readList(workspaceList, &spaces, url.Values{"page_size": {"5"}}); err != nil {
		return page{}, err
	}
	spaces.Tables[0].Label, spaces.Tables[0].Count, spaces.Tables[0].Link = "Workspaces", spaces.Total, operatePath+"/workspaces"
	b.Fixed = spaces.Tables
	return page{template: "operate", title: "Operate", body: b}, nil
}

// sections are the pages below the first one.
var operateSections = []struct{ word, Name string }{
	{word: "projections", Name: "Projections"}, {word: "events", Name: "Events"}, {word: "jobs", Name: "Jobs"},
	{word: "parked", Name: "Parked"},
	{word: "webhooks", Name: "Webhooks"}, {word: "outbox", Name: "Outbox"}, {word: "workspaces", Name: "Workspaces"},
	{word: "companies", Name: "Marks of companies"},
}

// Sections returns the links to the pages of operators.
func (operatePage) Sections() (all []choice) {
	for _, s := range operateSections {
		all = append(all, choice{Value: operatePath + "/" + s.word, Text: s.Name})
	}
	return all
}

// stateWord returns the word for a state in the visitor's language.
func (v *visit) stateWord(state string) string {
	if state == "" {
		return ""
	}
	return v.lang.t(field{}.Word(state))
}

// stateChips are the CSS classes of states that are good or bad news.
var stateChips = map[string]string{
	"live": "good", "handled": "good", "completed": "good", "sent": "good", "parked": "bad", "discarded": "bad", "failed": "bad",
	"differs": "warned", "retryable": "warned", "paused": "warned", "kept": "warned",
}

func (v *visit) stateChip(label, state string) opsCell {
	return opsCell{Label: label, Text: v.stateWord(state), Chip: cmp.Or(stateChips[state], "plain")}
}

// operateList is a list of operators.
type operateList struct {
	word, title, about string
	operation          string
	size               string                          // name of the parameter for the number of lines
	search             string                          // operation that finds by words; it has the parameter q
	query              url.Values                      // without a filter
	line               func(*visit, opsRecord) opsLine // returns the line of a record
	forms              []string                        // operations that the forms of its lines run
}

// opsRecord is a record of a list.
type opsRecord map[string]any

func (r opsRecord) text(name string) string { return textOf(r[name]) }

const linesListed = 50

// newList returns the page of a list without its lines.
func (v *visit) newList(l operateList) *operatePage {
	return &operatePage{Label: l.about, Address: operatePath + "/" + l.word, Here: operatePath + "/" + l.word, Tables: []opsTable{{}}}
}

// operateList shows a list, with what was refused.
func (v *visit) operateList(l operateList, refused *problem) (page, error) {
	b := v.newList(l)
	d, err := v.document()
	if err != nil {
		return page{}, err
	}
	asked, query := v.r.URL.Query(), url.Values{}
	for name, values := range l.query {
		query[name] = values
	}
	inputs, given := &schema{}, map[string]any{}
	for _, id := range []string{l.operation, l.search} {
		o, known := d.operation(id)
		if !known {
			continue
		}
		for _, p := range o.Params {
			if p.In != "query" || slices.Contains([]string{"page", l.size, "category", "city", "verified"}, p.Name) {
				continue
			}
			if value := strings.TrimSpace(asked.Get(p.Name)); value != "" {
				query.Set(p.Name, value)
				b.Asked = true
			}
			one := *p.schema
			one.Required, one.Description = false, ""
			inputs.Properties = append(inputs.Properties, property{p.Name, &one})
			given[p.Name] = query.Get(p.Name)
		}
	}
	status := 0
	if refused != nil {
		b.Wrong, status = []string{detail(refused)}, refused.Status
	}
	err = v.readList(l, b, query)
	if wrong := refusal(err); wrong != nil && wrong.Status == http.StatusUnprocessableEntity {
		b.Wrong, status, err = []string{detail(wrong)}, wrong.Status, nil
	}
	b.Filters = inputs.fields("", given, nil, 0)
	for i := range b.Filters {
		if b.Filters[i].Key == "q" {
			b.Filters[i].Label = "Name"
		}
	}
	return page{template: "operate", title: l.title, status: status, body: b}, err
}

// readList reads a page of a list.
func (v *visit) readList(l operateList, b *operatePage, query url.Values) error {
	number, _ := strconv.Atoi(v.r.URL.Query().Get("page")) // 0 without one
	number = max(number, 1)
	id := l.operation
	if query.Get("q") != "" && l.search != "" {
		id = l.search
	}
	if l.size != "" {
		query.Set("page", strconv.Itoa(number))
		if query.Get(l.size) == "" {
			query.Set(l.size, strconv.Itoa(linesListed))
		}
	}
	var answer any
	out, err := v.call(id, request{query: query}, &answer)
	if err != nil {
		return err
	}
	total, _ := strconv.Atoi(out.Header.Get("X-Total-Count")) // 0 without one
	if page, is := answer.(map[string]any); is {
		answer = page["data"]
		total, _ = strconv.Atoi(textOf(page["total"]))
	}
	records, _ := answer.([]any)
	for _, one := range records {
		if record, is := one.(map[string]any); is {
			b.Tables[0].Lines = append(b.Tables[0].Lines, l.line(v, record))
		}
	}
	b.Total = unsigned(max(total, len(records)), 0)
	at := v.r.URL.Query()
	at.Del("done")
	link := func(number int) string {
		at.Set("page", strconv.Itoa(number))
		return v.r.URL.Path + "?" + at.Encode()
	}
	if number > 1 {
		b.Newer = link(number - 1)
	}
	if number*linesListed < total {
		b.Older = link(number + 1)
	}
	return nil
}

// operateRun runs the operation that a form of a list names.
func (v *visit) operateRun(l operateList) (page, error) {
	form := v.r.PostForm
	do := form.Get("do")
	if !slices.Contains(l.forms, do) {
		return page{}, errNoPage
	}
	in := request{vars: []string{form.Get("id")}, key: form.Get("key"), reason: strings.TrimSpace(form.Get("reason"))}
	switch do {
	case "skip-parked":
		in.body = map[string]any{"position": number(form.Get("position"), ""), "reason": in.reason}
	case "edit-company":
		in.body = map[string]any{"verified": form.Get("value") == "true"}
	}
	out, err := v.call(do, in, nil)
	if refused := refusal(err); refused != nil && refused.Status != http.StatusForbidden {
		return v.operateList(l, refused)
	}
	if err != nil {
		return page{}, err
	}
	return page{redirect: v.operated(out)}, nil
}

// operated returns the address of the page with the confirmation of an order.
func (v *visit) operated(out api.Response) string {
	query := v.r.URL.Query()
	query.Set("done", "ordered")
	if at := out.Header.Get("Bahi-Position"); at != "" {
		query.Set("at", at)
	}
	return v.r.URL.Path + "?" + query.Encode()
}

// lasting returns a duration in words.
func (v *visit) lasting(seconds float64) string {
	switch {
	case seconds < 120:
		return v.lang.tf("%s seconds", fmt.Sprintf("%.0f", max(seconds, 1)))
	case seconds < 2*60*60:
		return v.lang.tf("%s minutes", fmt.Sprintf("%.0f", seconds/60))
	default:
		return v.lang.tf("%s hours", fmt.Sprintf("%.0f", seconds/60/60))
	}
}

// elsewhere returns the workspace into which an operator has gone, and the way back.
func (v *visit) elsewhere() []choice {
	var found []opsRecord
	_, _ = v.call("list-all-workspaces", request{query: url.Values{"q": {v.session.In.String()}}}, &found) // without it, its id is shown
	name := v.session.In.String()[:8]
	for _, w := range found {
		name = cmp.Or(w.text("name"), name)
	}
	return []choice{{Value: uuid.Nil.String(), Text: v.lang.t("Your own workspace")}, {Value: v.session.In.String(), Text: name, Chosen: true}}
}
