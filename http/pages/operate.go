package pages

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"bahi/http/api"
)

const operatePath = Path + "/operate"

// operateResources returns the resources of operators.
func operateResources() []*resource {
	all := []*resource{
		projectionResource(),
		{
			word: "events", title: "Events", list: "list-events", find: (*desk).event,
			about: "All that has happened, the newest first. A search looks at a part of the log at a time.",
			fixed: url.Values{"newest_first": {"true"}}, without: []string{"from_position"},
			columns: []string{"type", "position", "stream", "recorded_at", "actor", "reason"},
			live: []string{
				"position", "stream", "revision", "recorded_at", "actor", "reason", "workspace", "signed", "payload", "metadata",
			},
			cells: "events",
			links: func(d *desk, _ map[string]any) []choice {
				return []choice{{Value: operatePath + "/events?to_position=" + d.id, Text: "The log up to here"}}
			},
		},
		{
			word: "jobs", title: "Jobs", list: "list-jobs", inline: true,
			about:   "Side effects of events, such as mails. A job that fails is tried again, and given up after its last attempt.",
			columns: []string{"kind", "state", "attempts", "scheduled_at", "finished_at", "args", "last_error", "report"},
			cells:   "jobs",
			each: []action{
				{
					operation: "retry-job", button: "Run now",
					when: inStates("state", "available", "pending", "scheduled", "retryable", "cancelled", "discarded"),
				},
				{
					operation: "cancel-job", button: "Cancel", about: "It is not tried again. What it would do stays undone.",
					danger: true, when: inStates("state", "available", "pending", "scheduled", "running", "retryable"),
				},
			},
		},
		parkedResource(),
		{
			word: "webhooks", title: "Webhooks", list: "list-webhooks", get: "get-webhook", inline: true,
			about:   "Calls of providers, and what has followed from each.",
			columns: []string{"endpoint", "received_at", "verdict", "effect", "reason", "error"},
			live:    []string{"received_at", "verdict", "effect", "reason", "settled_at", "error", "body"},
			cells:   "webhooks",
			each: []action{{
				operation: "replay-webhook", button: "Handle again",
				when: func(c map[string]any) bool {
					return inStates("verdict", "parked", "ignored")(c) && c["has_body"] == true
				},
			}},
		},
		{
			word: "outbox", title: "Outbox", list: "list-outbox", flat: true, first: "port",
			about:   "Messages that are not sent as no provider is configured: mails need SMTP_URL. Their links open accounts, so keep them secret.",
			columns: []string{"time", "to", "subject", "status", "error", "text"},
			cells:   "outbox",
		},
		workspaceResource(),
		{
			word: "companies", title: "Marks of companies", list: "list-companies", search: "search-companies", inline: true,
			about:   "Mark a company as verified after you have checked who it is. A change of its name, GSTIN or domain ends the mark.",
			columns: []string{"name", "category", "city", "mark"}, without: []string{"category", "city", "verified", "mine"},
			cells: "marks",
			each: []action{
				{
					operation: "edit-company", button: "Mark as verified", about: "Buyers will see that it is verified.", reason: required,
					when:   func(c map[string]any) bool { return c["verified"] != true },
					starts: func(_ *desk, _ map[string]any) map[string]any { return map[string]any{"verified": true} },
				},
				{
					operation: "edit-company", button: "Take the mark back", about: "Buyers will see no mark any more.", reason: required,
					when:   func(c map[string]any) bool { return c["verified"] == true },
					starts: func(_ *desk, _ map[string]any) map[string]any { return map[string]any{"verified": false} }, danger: true,
				},
			},
		},
	}
	for _, r := range all {
		r.base, r.sections = operatePath, operateSections
	}
	return all
}

// operateSections returns the links to the lists of operators.
func operateSections(*visit) (all []place) {
	for _, r := range operateResources() {
		all = append(all, place{Name: r.title, Link: r.path()})
	}
	return all
}

// needPaths are the pages of the conditions that need an operator, below the first one.
var needPaths = map[string]string{
	"parked": "/parked", "differs": "/projections", "discarded": "/jobs?state=discarded", "webhooks": "/webhooks?verdict=parked",
	"retryable": "/jobs?state=retryable", "paused": "/projections",
}

// operate shows the conditions that need an operator.
func (v *visit) operate() page {
	if !v.who.Permissions.Operator {
		return v.deny(api.ErrNotPermitted)
	}
	return page{template: "operate", title: "Operate", body: map[string]any{
		"Sections": operateSections(v), "Status": v.one("get-status"),
		"Projections": v.desk(projectionResource(), false).table(rowsListed), "Workspaces": v.desk(workspaceResource(), false).table(5),
	}}
}

// table returns the first records of a list.
func (d *desk) table(size int) *listPage {
	rows, total, refused := d.rows(d.listQuery(), 1, size)
	d.require(refused)
	b := &listPage{deskPage: d.page(sent{}), Total: total}
	d.draw(b, rows, sent{})
	return b
}

// tableOf returns records of another resource as a table.
func (d *desk) tableOf(of *resource, rows []map[string]any) (all display) {
	other, b := d.visit.desk(of, false), listPage{}
	other.parent, other.refs = d.id, d.refs
	other.draw(&b, rows, sent{})
	all.Columns = b.Columns
	for _, line := range b.Rows {
		all.Rows = append(all.Rows, append([]display{*line.Head}, line.Cells...))
	}
	return all
}

// stateChips are the CSS classes of good and bad states.
var stateChips = map[string]string{
	"live": "good", "handled": "good", "completed": "good", "sent": "good", "parked": "bad", "discarded": "bad", "failed": "bad",
	"differs": "warned", "retryable": "warned", "paused": "warned", "kept": "warned",
}

// lasting returns a number of seconds as display text.
func (l language) lasting(n any) string {
	switch seconds := float(n); {
	case seconds < 120:
		return l.tf("%s seconds", fmt.Sprintf("%.0f", max(seconds, 1)))
	case seconds < 2*60*60:
		return l.tf("%s minutes", fmt.Sprintf("%.0f", seconds/60))
	default:
		return l.tf("%s hours", fmt.Sprintf("%.0f", seconds/60/60))
	}
}

func workspaceResource() *resource {
	return &resource{
		base: operatePath, word: "workspaces", title: "Workspaces", list: "list-all-workspaces", inline: true,
		about:   "Enter a workspace to see its books and to work in them. The log names you.",
		columns: []string{"name", "owner_name", "owner_email", "members", "created_at", "enter"},
		cells:   "workspaces",
	}
}

func parkedResource() *resource {
	return &resource{
		base: operatePath, word: "parked", title: "Parked", list: "list-parked", inline: true,
		about:   "Projections and reactors that have stopped at an event which they cannot apply. They are behind the log until they go on.",
		columns: []string{"name", "kind", "event", "stream", "since", "error", "program"},
		cells:   "parked",
		each: []action{
			{operation: "retry-parked", button: "Try again"},
			skip("skip-parked", func(p map[string]any) any { return p["position"] }),
		},
	}
}

// skip returns the action that skips the event at a position.
func skip(operation string, position func(map[string]any) any) action {
	return action{
		operation: operation, button: "Skip the event", about: "It goes on without this event. The log keeps who skipped it, and why.",
		danger: true, fields: []string{"reason"},
		when:   func(r map[string]any) bool { at := textOf(position(r)); return at != "" && at != "0" },
		starts: func(_ *desk, r map[string]any) map[string]any { return map[string]any{"position": position(r)} },
	}
}

// event returns the event of the page.
func (d *desk) event() (map[string]any, *problem) {
	rows, _, refused := d.rows(url.Values{"from_position": {d.id}, "to_position": {d.id}}, 1, 1)
	switch {
	case refused != nil && refused.Status != http.StatusUnprocessableEntity:
		return nil, refused
	case len(rows) != 1:
		return nil, errNoPage
	}
	return rows[0], nil
}

// Proof returns the event's inclusion proof, nil if no checkpoint has the event yet.
func (d *desk) Proof(event map[string]any) (proof map[string]any) {
	d.ask("prove-inclusion", request{query: url.Values{"position": {textOf(event["position"])}}}, &proof)
	return proof
}

// Content returns the body of a webhook call, "" if it was removed.
func (d *desk) Content(call map[string]any) string {
	if raw, err := base64.StdEncoding.DecodeString(textOf(call["body_base64"])); err == nil && len(raw) > 0 {
		return strings.ToValidUTF8(string(raw), string(utf8.RuneError))
	}
	return textOf(call["body"])
}

// inner returns the object in a field, nil if there is none.
func inner(record map[string]any, name string) map[string]any {
	object, _ := record[name].(map[string]any)
	return object
}

// compact returns a JSON value as one line, "" for an empty one.
func compact(value any) string {
	text, err := json.Marshal(value)
	if err != nil || string(text) == "{}" || value == nil {
		return ""
	}
	return string(text)
}

// indent returns JSON with a line for each value. It returns any other text unchanged.
func indent(text []byte) string {
	var out bytes.Buffer
	if json.Indent(&out, text, "", "  ") != nil {
		return string(text)
	}
	return out.String()
}

func projectionResource() *resource {
	return &resource{
		base: operatePath, word: "projections", title: "Projections", list: "list-projections", get: "get-projection",
		find: (*desk).projection, again: 5, stream: "watch-rebuild", events: "progress end",
		columns: []string{"name", "state", "behind"},
		live: []string{
			"rebuild", "progress", "state", "behind", "position", "rate", "version",
			"generation", "skipped_events", "kept_for_a_rollback_until", "rows_that_only_one_of_the_two_has", "stopped_at_an_event",
		},
		watch: building,
		cells: "projections",
		each:  projectionActions,
		parts: []*resource{{
			word: "rebuild", title: "Rebuild", own: (*desk).rebuild, flat: true, without: []string{"dry_run"},
			when: func(p map[string]any) bool { return !building(p) && built(p) },
			actions: []action{{operation: "rebuild-projection", button: "Start the rebuild",
				about: "New tables are filled from the log while the live ones serve reads. Then they are compared, and replace the live ones.",
				to: func(d *desk, p map[string]any) string {
					return d.of.parent.address("", d.parent) + "?rebuild=" + textOf(inner(p, "build")["generation"])
				}}},
		}},
	}
}

func building(p map[string]any) bool { return inner(p, "build") != nil }

// built reports whether a projection has live tables, and differs whether a rebuild waits for an operator.
func built(p map[string]any) bool   { return textOf(p["generation"]) != "0" }
func differs(p map[string]any) bool { return inner(p, "build")["phase"] == "differs" }

// waiting reports whether the rebuild of a projection is paused.
func waiting(p map[string]any) bool { return inner(p, "build")["paused"] == true }

// stoppedAt returns the position at which a projection is parked, or nil.
func stoppedAt(p map[string]any) any {
	if stopped, _ := p["stopped"].([]map[string]any); len(stopped) > 0 {
		return stopped[0]["position"]
	}
	return nil
}

var projectionActions = []action{
	{operation: "retry-projection", button: "Try again", when: func(p map[string]any) bool { return stoppedAt(p) != nil }},
	skip("skip-event", stoppedAt),
	{
		operation: "accept-rebuild", button: "Accept the new tables", danger: true, when: differs,
		about: "They become live although they differ. The old ones are kept for a rollback.",
	},
	{operation: "resume-projection", button: "Resume the rebuild", when: waiting},
	{
		operation: "pause-projection", button: "Pause the rebuild",
		when: func(p map[string]any) bool { return building(p) && !waiting(p) && !differs(p) },
	},
	{
		operation: "resume-projection", button: "Resume",
		when: func(p map[string]any) bool { return !building(p) && p["state"] == "paused" },
	},
	{
		operation: "throttle-rebuild", button: "Limit the rate", fields: []string{"events_per_second"},
		about: "A limit leaves capacity for requests. Without a number there is no limit.",
		when:  func(p map[string]any) bool { return building(p) && !differs(p) },
		starts: func(_ *desk, p map[string]any) map[string]any {
			return map[string]any{"events_per_second": inner(p, "build")["throttle"]}
		},
	},
	{
		operation: "cancel-rebuild", button: "Cancel the rebuild", danger: true,
		about: "Its tables are dropped. The live ones stay as they are.",
		when:  func(p map[string]any) bool { return building(p) && built(p) },
	},
	{
		operation: "pause-projection", button: "Pause", about: "What it shows falls behind the log until it is resumed.",
		when: func(p map[string]any) bool { return !building(p) && built(p) && p["state"] != "paused" },
	},
	{
		operation: "rollback-projection", button: "Go back to the tables before the rebuild", danger: true,
		about: "They become live again at once. They are as current as the live ones.",
		when:  func(p map[string]any) bool { return !building(p) && p["kept"] != nil },
	},
}

func float(n any) float64 {
	f, _ := strconv.ParseFloat(textOf(n), 64) // 0 without one
	return f
}

// perSecond returns a number of events a second as display text.
func (l language) perSecond(n any) string {
	if n == nil {
		return l.t("none")
	}
	return l.tf("%s events a second", unsigned(n, 0))
}

// buildState returns the state of a rebuild in one word.
func buildState(build map[string]any) string {
	switch {
	case textOf(build["error"]) != "":
		return "parked"
	case build["paused"] == true:
		return "paused"
	default:
		return textOf(build["phase"])
	}
}

// Begun returns the generation of the rebuild that the visitor started, "" for none.
func (d *desk) Begun() string { return d.r.URL.Query().Get("rebuild") }

// Stopped returns a table of the events at which a projection is parked.
func (d *desk) Stopped(p map[string]any) display {
	stopped, _ := p["stopped"].([]map[string]any)
	return d.tableOf(parkedResource(), stopped)
}

// projection returns the page's projection, with the events at which it is parked.
func (d *desk) projection() (map[string]any, *problem) {
	p := map[string]any{}
	if _, refused := d.ask("get-projection", request{vars: []string{d.id}}, &p); refused != nil {
		return nil, refused
	}
	var parked, stopped []map[string]any
	d.read("list-parked", request{}, &parked)
	for _, one := range parked {
		if textOf(one["name"]) == d.id && one["kind"] != "reactor" {
			stopped = append(stopped, one)
		}
	}
	p["stopped"] = stopped
	return p, nil
}

// rebuild shows the cost of a rebuild, and the form that starts it.
func (d *desk) rebuild(in sent) page {
	of := d.visit.desk(d.of.parent, false)
	of.id = d.parent
	p := of.found()
	if building(p) && in.status == 0 {
		return page{redirect: d.of.parent.address("", d.parent)}
	}
	var cost map[string]any
	d.read("rebuild-projection", request{vars: []string{d.parent}, query: url.Values{"dry_run": {"true"}}}, &cost)
	b := &recordPage{deskPage: d.page(in)}
	b.Title, b.Forms = d.lang.tf("Rebuild %s", d.parent), d.forms(in, nil)
	b.Values = []display{
		{Label: d.lang.t("Events to read"), Text: unsigned(cost["events"], 0)},
		{Label: d.lang.t("It takes about"), Text: d.lang.lasting(cost["seconds"])},
		{Label: d.lang.t("Rate"), Text: d.lang.perSecond(cost["rate"])},
		{Label: d.lang.t("Disk until it is over"), Text: d.lang.tf("%s MB more", fmt.Sprintf("%.1f", float(cost["bytes"])/1e6))},
	}
	for i := range b.Forms {
		b.Forms[i].Open = true
	}
	return page{template: "record", title: b.Title, status: in.status, body: b}
}
