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
	var status map[string]any
	v.read("get-status", request{}, &status)
	return page{template: "operate", title: "Operate", body: map[string]any{
		"Sections": operateSections(v), "Status": status,
		"Projections": v.desk(projectionResource(), false).table(rowsListed), "Workspaces": v.desk(workspaceResource(), false).table(5),
	}}
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
