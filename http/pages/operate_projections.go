package pages

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// opsProjection is a projection as operators see it.
type opsProjection struct {
	Name       string      `json:"name"`
	Version    json.Number `json:"version"`
	Generation json.Number `json:"generation"`
	State      string      `json:"state"`
	Position   json.Number `json:"position"`
	Head       json.Number `json:"head"`
	LagEvents  json.Number `json:"lag_events"`
	LagSeconds float64     `json:"lag_seconds"`
	Rate       json.Number `json:"rate"`
	Skipped    json.Number `json:"skipped"`
	Build      *opsBuild   `json:"build"`
	Kept       *struct {
		Generation json.Number `json:"generation"`
		Until      string      `json:"until"`
	} `json:"kept"`
}

// opsBuild is a rebuild that goes on.
type opsBuild struct {
	Generation  json.Number `json:"generation"`
	Phase       string      `json:"phase"`
	Done        json.Number `json:"done"`
	Total       json.Number `json:"total"`
	Percent     float64     `json:"percent"`
	Rate        json.Number `json:"rate"`
	ETA         *float64    `json:"eta_seconds"`
	Paused      bool        `json:"paused"`
	Throttle    json.Number `json:"throttle"`
	Error       string      `json:"error"`
	Differences []struct {
		Table string      `json:"table"`
		Count json.Number `json:"count"`
		Rows  []opsRecord `json:"rows"`
	} `json:"differences"`
}

// state returns the state of the rebuild in one word.
func (b *opsBuild) state() string {
	switch {
	case b.Error != "":
		return "parked"
	case b.Paused:
		return "paused"
	default:
		return b.Phase
	}
}

func (v *visit) behind(p opsProjection) string {
	if p.LagEvents == "0" {
		return v.lang.t("up to date")
	}
	return v.lang.tf("%s events, %s", unsigned(p.LagEvents, 0), v.lasting(p.LagSeconds))
}

func (v *visit) projectionTable(all []opsProjection) opsTable {
	t := opsTable{Label: "Projections", Narrow: true}
	for _, p := range all {
		state := v.stateChip("State", p.State)
		if p.Build != nil {
			state = v.stateChip("State", p.Build.state())
			state.Text = fmt.Sprintf("%s: %s %.0f %%", v.lang.t("Rebuild"), state.Text, p.Build.Percent)
		}
		t.Lines = append(t.Lines, opsLine{Cells: []opsCell{
			{Label: "Name", Text: p.Name, Link: operatePath + "/projections/" + url.PathEscape(p.Name)}, state, {Label: "Behind", Text: v.behind(p)},
		}})
	}
	return t
}

func (v *visit) projections() (page, error) {
	var all []opsProjection
	if _, err := v.call("list-projections", request{}, &all); err != nil {
		return page{}, err
	}
	b := operatePage{Here: operatePath + "/projections", Again: 5, Tables: []opsTable{v.projectionTable(all)}}
	b.Tables[0].Label = ""
	return page{template: "operate", title: "Projections", body: b}, nil
}

// steering are the operations on a projection by the word that its forms send.
var steering = map[string]string{
	"pause": "pause-projection", "resume": "resume-projection", "cancel": "cancel-rebuild", "accept": "accept-rebuild",
	"rollback": "rollback-projection", "throttle": "throttle-rebuild", "retry": "retry-projection", "skip": "skip-event",
}

func (v *visit) projection() (page, error) { return v.showProjection(nil) }

// showProjection shows a projection with what can be done with it now, and what was refused.
func (v *visit) showProjection(refused *problem) (page, error) {
	name := v.r.PathValue("name")
	var p opsProjection
	if _, err := v.call("get-projection", request{vars: []string{name}}, &p); err != nil {
		return page{}, err
	}
	var parked []opsRecord
	if _, err := v.call("list-parked", request{}, &parked); err != nil {
		return page{}, err
	}
	b := operatePage{Up: up("projections", "Projections"), Facts: []opsCell{
		v.stateChip("State", p.State), {Label: "Behind", Text: v.behind(p)},
		{Label: "Position", Text: v.lang.tf("%s of %s", unsigned(p.Position, 0), unsigned(p.Head, 0))},
		{Label: "Rate", Text: v.lang.tf("%s events a second", unsigned(p.Rate, 0))}, {Label: "Version", Text: p.Version.String()},
		{Label: "Live generation", Text: p.Generation.String()}, {Label: "Skipped events", Text: unsigned(p.Skipped, 0)},
	}}
	status := 0
	if refused != nil {
		b.Wrong, status = []string{detail(refused)}, refused.Status
	}
	if p.Kept != nil {
		b.Facts = append(b.Facts, opsCell{Label: "Kept for a rollback until", Moment: p.Kept.Until})
	}
	v.outcome(&b, p)
	if p.Build != nil {
		b.Stream = "/ops/projections/" + url.PathEscape(name) + "/progress"
		v.progress(&b, p.Build)
	} else if p.LagEvents != "0" {
		b.Again = 5
	}
	stopped := opsTable{Label: "Stopped at an event"}
	for _, one := range parked {
		if one.text("name") == name && one.text("kind") != "reactor" {
			stopped.Lines = append(stopped.Lines, v.parkedLine(one, "retry", "skip", one.text("kind")))
		}
	}
	if len(stopped.Lines) > 0 {
		b.Fixed = append([]opsTable{stopped}, b.Fixed...)
	}
	b.Forms = p.forms()
	return page{template: "operate", title: p.Name, status: status, body: b}, nil
}

// outcome says what has become of the rebuild that the visitor began.
func (v *visit) outcome(b *operatePage, p opsProjection) {
	begun := v.r.URL.Query().Get("rebuild")
	kept := p.Kept != nil && p.Kept.Generation.String() == begun
	switch {
	case begun == "" || p.Build != nil && p.Build.Generation.String() == begun:
	case p.Generation.String() == begun:
		b.Said, b.Tone = v.lang.t("The rebuild is over. Its tables are live."), "done"
	case !kept && p.Build == nil:
		b.Said, b.Tone = v.lang.t("The rebuild was cancelled."), "warn"
	}
}

// progress adds what is known of a rebuild.
func (v *visit) progress(b *operatePage, build *opsBuild) {
	b.Said, b.Tone = v.lang.tf("A rebuild goes on: %s.", v.stateWord(build.state())), "done"
	switch {
	case build.Error != "":
		b.Said, b.Tone = v.lang.t("The rebuild has stopped at an event."), "wrong"
	case build.Phase == "differs":
		b.Said, b.Tone = v.lang.t("The new tables differ from the live ones. Accept them, or cancel the rebuild."), "warn"
	case build.Paused:
		b.Tone = "warn"
	}
	b.Progress = fmt.Sprintf("%.1f", build.Percent)
	limit := v.lang.t("none")
	if build.Throttle != "" {
		limit = v.lang.tf("%s events a second", unsigned(build.Throttle, 0))
	}
	left, done := "–", v.lang.tf("%s of %s", unsigned(build.Done, 0), unsigned(build.Total, 0))
	if build.ETA != nil {
		left = v.lasting(*build.ETA)
	}
	b.Facts = append([]opsCell{
		{Label: "Rebuilt", Text: fmt.Sprintf("%s · %.0f %%", done, build.Percent)},
		{Label: "Time left", Text: left}, {Label: "Rate of the rebuild", Text: v.lang.tf("%s events a second", unsigned(build.Rate, 0))},
		{Label: "Limit of the rebuild", Text: limit},
	}, b.Facts...)
	for _, d := range build.Differences {
		t := opsTable{Label: "Rows that only one of the two has", Count: d.Table + " · " + unsigned(d.Count, 0)}
		for _, r := range d.Rows {
			where := opsCell{Label: "Only in", Text: v.lang.t("the live tables")}
			if r.text("where") == "log" {
				where.Text = v.lang.t("the new tables")
			}
			t.Lines = append(t.Lines, opsLine{Cells: []opsCell{where, {Label: "Values", Text: compact(r["row"]), Code: true}}})
		}
		b.Fixed = append(b.Fixed, t)
	}
}

// forms returns what can be done with a projection.
func (p opsProjection) forms() (can []opsForm) {
	b, built := p.Build, p.Generation != "0"
	decides := b != nil && b.Phase == "differs"
	if decides {
		can = append(can, opsForm{
			Name: "Accept the new tables", Do: "accept", Danger: true,
			Label: "They become live although they differ. The old ones are kept for a rollback.",
		})
	}
	switch {
	case b != nil && b.Paused:
		can = append(can, opsForm{Name: "Resume the rebuild", Do: "resume", Main: true})
	case b != nil && !decides:
		can = append(can, opsForm{Name: "Pause the rebuild", Do: "pause"})
	case b == nil && p.State == "paused":
		can = append(can, opsForm{Name: "Resume", Do: "resume", Main: true})
	}
	if b != nil && !decides {
		can = append(can, opsForm{
			Name: "Limit the rate", Label: "A limit leaves capacity for requests. Without a number there is no limit.", Do: "throttle",
			Field: "events_per_second", Value: b.Throttle.String(),
		})
	}
	if b != nil && built {
		can = append(can, opsForm{
			Name: "Cancel the rebuild", Label: "Its tables are dropped. The live ones stay as they are.", Do: "cancel", Danger: true,
		})
	}
	if b == nil && built {
		address := operatePath + "/projections/" + url.PathEscape(p.Name) + "/rebuild"
		can = append(can, opsForm{Name: "Rebuild", Address: address, Main: p.State == "live"})
		if p.State != "paused" {
			can = append(can, opsForm{Name: "Pause", Label: "What it shows falls behind the log until it is resumed.", Do: "pause"})
		}
	}
	if b == nil && p.Kept != nil {
		can = append(can, opsForm{
			Name: "Go back to the tables before the rebuild", Do: "rollback", Danger: true,
			Label: "They become live again at once. They are as current as the live ones.",
		})
	}
	return can
}

// steer runs an operation on a projection.
func (v *visit) steer() (page, error) {
	form, name := v.r.PostForm, v.r.PathValue("name")
	operation, known := steering[form.Get("do")]
	if !known {
		return page{}, errNoPage
	}
	in := request{vars: []string{name}, reason: strings.TrimSpace(form.Get("reason"))}
	switch form.Get("do") {
	case "skip":
		in.body = map[string]any{"position": number(form.Get("position"), ""), "reason": in.reason}
	case "throttle":
		in.body = map[string]any{"events_per_second": nil}
		if limit := strings.TrimSpace(form.Get("events_per_second")); limit != "" {
			in.body = map[string]any{"events_per_second": number(limit, "")}
		}
	}
	out, err := v.call(operation, in, nil)
	if refused := refusal(err); refused != nil && (refused.Status == http.StatusConflict || refused.Status == http.StatusUnprocessableEntity) {
		return v.showProjection(refused)
	}
	if err != nil {
		return page{}, err
	}
	return page{redirect: v.operated(out)}, nil
}

// estimate shows what a rebuild would cost, and the form that begins it.
func (v *visit) estimate() (page, error) { return v.showEstimate(map[string]any{}, nil) }

func (v *visit) showEstimate(body map[string]any, refused *problem) (page, error) {
	name := v.r.PathValue("name")
	s, err := v.schemaOf("rebuild-projection")
	if err != nil {
		return page{}, err
	}
	var p opsProjection
	if _, err := v.call("get-projection", request{vars: []string{name}}, &p); err != nil {
		return page{}, err
	}
	if p.Build != nil {
		return page{redirect: operatePath + "/projections/" + url.PathEscape(name)}, nil
	}
	b := operatePage{
		Up:     append(up("projections", "Projections"), choice{Value: operatePath + "/projections/" + url.PathEscape(name), Text: name}),
		Label:  "New tables are filled from the log while the live ones serve reads. Then they are compared, and replace the live ones.",
		Fields: s.fields("", body, refused.faults(), 0), Main: opsForm{Name: "Start the rebuild", Address: v.r.URL.Path},
	}
	status := 0
	if refused != nil {
		status = refused.Status
		if b.Wrong = misplaced(b.Fields, refused.faults()); len(refused.Errors) == 0 {
			b.Wrong = []string{refused.Detail}
		}
	}
	var cost struct {
		Events  json.Number `json:"events"`
		Rate    json.Number `json:"rate"`
		Seconds float64     `json:"seconds"`
		Bytes   json.Number `json:"bytes"`
	}
	_, err = v.call("rebuild-projection", request{vars: []string{name}, query: url.Values{"dry_run": {"true"}}}, &cost)
	if err != nil {
		return page{}, err
	}
	bytes, _ := strconv.ParseFloat(cost.Bytes.String(), 64)
	b.Facts = []opsCell{
		{Label: "Events to read", Text: unsigned(cost.Events, 0)}, {Label: "It takes about", Text: v.lasting(cost.Seconds)},
		{Label: "Rate", Text: v.lang.tf("%s events a second", unsigned(cost.Rate, 0))},
		{Label: "Disk until it is over", Text: v.lang.tf("%s MB more", fmt.Sprintf("%.1f", bytes/1e6))},
	}
	return page{template: "operate", title: v.lang.tf("Rebuild %s", name), status: status, body: b}, nil
}

// rebuild begins a rebuild.
func (v *visit) rebuild() (page, error) {
	s, err := v.schemaOf("rebuild-projection")
	if err != nil {
		return page{}, err
	}
	body, name := s.read(v.r.PostForm, false), v.r.PathValue("name")
	var p opsProjection
	_, err = v.call("rebuild-projection", request{vars: []string{name}, body: body}, &p)
	if refused := refusal(err); refused != nil && refused.Status == http.StatusUnprocessableEntity {
		return v.showEstimate(body, refused)
	} else if refused != nil && refused.Status == http.StatusConflict {
		return v.showProjection(refused)
	}
	if err != nil {
		return page{}, err
	}
	to := operatePath + "/projections/" + url.PathEscape(name)
	if p.Build != nil {
		to += "?rebuild=" + p.Build.Generation.String()
	}
	return page{redirect: to}, nil
}
