package pages

import (
	"fmt"

	"bahi/http/api"
)

const operatePath = Path + "/operate"

// operateResources returns the resources of operators.
func operateResources() []*resource {
	all := []*resource{
		projectionResource(), eventResource(), jobResource(), parkedResource(), webhookResource(), outboxResource(), workspaceResource(),
		markResource(),
	}
	for _, r := range all {
		r.sections = operateSections
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

// operatePage is the content of the first page of operators.
type operatePage struct {
	Sections                []place
	Said, Tone              string // text of the state, and its CSS class
	Needs                   []choice
	Facts                   []display
	Projections, Workspaces *listPage
}

// operateNeeds has the text and the address of each condition that needs an operator.
var operateNeeds = []struct{ what, Label, link string }{
	{what: "parked", Label: "Stopped at an event", link: "/parked"},
	{what: "differs", Label: "Rebuilds that differ and wait for you", link: "/projections"},
	{what: "discarded", Label: "Jobs that were given up", link: "/jobs?state=discarded"},
	{what: "webhooks", Label: "Calls of providers that could not be handled", link: "/webhooks?verdict=parked"},
	{what: "retryable", Label: "Jobs that failed and are tried again", link: "/jobs?state=retryable"},
	{what: "paused", Label: "Paused projections and rebuilds", link: "/projections"},
}

// operate shows the conditions that need an operator.
func (v *visit) operate() page {
	if !v.who.Permissions.Operator {
		return v.deny(api.ErrNotPermitted)
	}
	var s map[string]any
	v.read("get-status", request{}, &s)
	b := operatePage{Sections: operateSections(v), Said: v.lang.t("All is well."), Tone: "done"}
	needs := entriesOf(s["needs"])
	if len(needs) > 0 {
		b.Said, b.Tone = v.lang.t("This needs you:"), "warn"
	}
	for _, n := range needs {
		for _, known := range operateNeeds {
			if known.what == n["what"] {
				b.Needs = append(b.Needs, choice{Value: operatePath + known.link, Text: v.lang.t(known.Label) + ": " + unsigned(n["count"], 0)})
			}
		}
	}
	b.Facts = []display{
		{Label: v.lang.t("Newest event"), Text: unsigned(s["head"], 0), Link: operatePath + "/events"},
		{Label: v.lang.t("Recorded"), Moment: textOf(s["recorded_at"])},
	}
	for _, state := range []string{"available", "scheduled", "running", "retryable", "discarded"} {
		if count := unsigned(inner(s, "jobs")[state], 0); count != "" {
			text := count + " · " + v.lang.t(wordOf(state))
			b.Facts = append(b.Facts, display{Label: v.lang.t("Jobs"), Text: text, Link: operatePath + "/jobs?state=" + state})
		}
	}
	if kept := nonzero(inner(s, "outbox")["mail"]); kept != nil {
		text := v.lang.tf("%s not sent: no SMTP_URL", unsigned(kept, 0))
		b.Facts = append(b.Facts, display{Label: v.lang.t("Mails"), Text: text, Link: operatePath + "/outbox?port=mail"})
	}
	b.Projections = v.desk(projectionResource(), false).table(rowsListed)
	b.Workspaces = v.desk(workspaceResource(), false).table(5)
	return page{template: "operate", title: "Operate", body: b}
}

// table returns the first records of a list.
func (d *desk) table(size int) *listPage {
	rows, total, refused := d.rows(d.listQuery(), 1, size)
	if refused != nil {
		d.deny(refused)
	}
	b := &listPage{deskPage: d.page(sent{}), Total: total}
	d.draw(b, rows)
	return b
}

// tableOf returns records of another resource as a table.
func (d *desk) tableOf(of *resource, rows []map[string]any) (all display) {
	other, b := d.visit.desk(of, false), listPage{}
	other.parent, other.refs = d.id, d.refs
	other.draw(&b, rows)
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
