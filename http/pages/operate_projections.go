package pages

import (
	"fmt"
	"net/url"
	"strconv"
)

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
			word: "rebuild", title: "Rebuild", list: "list-projections", own: (*desk).rebuild, flat: true, without: []string{"dry_run"},
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
