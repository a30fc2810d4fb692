package pages

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// opsEvent is an event of the log.
type opsEvent struct {
	Position json.Number     `json:"position"`
	Stream   string          `json:"stream"`
	Revision json.Number     `json:"revision"`
	ID       string          `json:"id"`
	Type     string          `json:"type"`
	At       string          `json:"recorded_at"`
	Meta     json.RawMessage `json:"metadata"`
	Data     json.RawMessage `json:"data"`
}

// eventFilters are the parameters of list-events by which people search, in the order of the form.
var eventFilters = []string{"stream", "category", "type", "actor", "workspace", "from_time", "to_time", "to_position"}

// clockLayouts are the forms of a time in the workshop's zone.
var clockLayouts = []string{"2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02 15:04", time.DateOnly}

// clock returns the RFC 3339 time of a time in the workshop, and other texts unchanged. A time without seconds ends with its minute, a day
// with its last second.
func (v *visit) clock(text string, end bool) string {
	for i, layout := range clockLayouts {
		t, err := time.ParseInLocation(layout, text, v.Zone)
		switch {
		case err != nil:
			continue
		case end && layout == time.DateOnly:
			t = t.AddDate(0, 0, 1).Add(-time.Microsecond)
		case end && i != 1:
			t = t.Add(time.Minute - time.Microsecond)
		}
		return t.Format(time.RFC3339Nano)
	}
	return text
}

// events shows events of the log, the newest first.
func (v *visit) events() (page, error) {
	asked, query, given := v.r.URL.Query(), url.Values{"newest_first": {"true"}, "limit": {"50"}}, map[string]any{}
	b := operatePage{Address: operatePath + "/events", Here: operatePath + "/events"}
	b.Label = v.lang.t("All that has happened, the newest first. A search looks at a part of the log at a time.")
	for _, name := range eventFilters {
		value := strings.TrimSpace(asked.Get(name))
		if value == "" {
			continue
		}
		given[name], b.Asked = value, true
		if name == "from_time" || name == "to_time" {
			value = v.clock(value, name == "to_time")
		}
		query.Set(name, value)
	}
	if before := asked.Get("before"); before != "" {
		query.Set("to_position", before)
	}
	d, err := v.document()
	if err != nil {
		return page{}, err
	}
	o, _ := d.operation("list-events")
	inputs := &schema{}
	for _, name := range eventFilters {
		for _, p := range o.Params {
			if p.Name == name {
				one := *p.schema
				if one.Description = ""; one.Kind == "area" {
					one.Kind = "text"
				}
				inputs.Properties = append(inputs.Properties, property{name, &one})
			}
		}
	}
	var found []opsEvent
	out, err := v.call("list-events", request{query: query}, &found)
	refused, status := refusal(err), 0
	if refused != nil && refused.Status == http.StatusUnprocessableEntity {
		status, err = refused.Status, nil
	} else if err != nil {
		return page{}, err
	}
	faults := map[string]string{}
	for path, message := range refused.faults() {
		faults[strings.TrimPrefix(path, "query.")] = message
	}
	b.Filters = inputs.fields("", given, faults, 0)
	for i := range b.Filters {
		if strings.HasSuffix(b.Filters[i].Key, "_time") {
			b.Filters[i].Kind = "moment"
		}
	}
	if b.Wrong = misplaced(b.Filters, faults); refused != nil && len(faults) == 0 {
		b.Wrong = []string{refused.Detail}
	}
	b.Tables = []opsTable{{}}
	for _, e := range found {
		b.Tables[0].Lines = append(b.Tables[0].Lines, v.eventLine(e))
	}
	next, _, _ := strings.Cut(strings.TrimPrefix(out.Header.Get("Link"), "<"), ">")
	if older, err := url.Parse(next); err == nil && next != "" {
		asked.Set("before", older.Query().Get("to_position"))
		b.Older = operatePath + "/events?" + asked.Encode()
	}
	return page{template: "operate", title: "Events", status: status, body: b}, err
}

func (v *visit) eventLine(e opsEvent) opsLine {
	var meta opsRecord
	_ = json.Unmarshal(e.Meta, &meta) // of another program: nothing is shown
	by := func(name, value string) string { return operatePath + "/events?" + url.Values{name: {value}}.Encode() }
	actor := meta.text("actor")
	return opsLine{Cells: []opsCell{
		{Label: "Position", Text: unsigned(e.Position, 0), Link: operatePath + "/events/" + e.Position.String()}, {Label: "Type", Text: e.Type},
		{Label: "Stream", Text: e.Stream, Link: by("stream", e.Stream), Code: true}, {Label: "Recorded", Moment: e.At},
		{Label: "Actor", Text: actor, Link: by("actor", actor), Code: true}, {Label: "Reason", Text: meta.text("reason")},
	}}
}

// event shows an event with its payload, its metadata and the proof that it is in the log.
func (v *visit) event() (page, error) {
	position := v.r.PathValue("position")
	var found []opsEvent
	_, err := v.call("list-events", request{query: url.Values{"from_position": {position}, "to_position": {position}}}, &found)
	if refused := refusal(err); refused != nil && refused.Status == http.StatusUnprocessableEntity || err == nil && len(found) != 1 {
		return page{}, errNoPage
	}
	if err != nil {
		return page{}, err
	}
	e := found[0]
	var meta opsRecord
	_ = json.Unmarshal(e.Meta, &meta) // of another program: only its text is shown
	line := v.eventLine(e)
	b := operatePage{Up: up("events", "Events")}
	b.Facts = slices.DeleteFunc(line.Cells, func(c opsCell) bool { return c.Label == "Type" || c.Label == "Reason" && c.Text == "" })
	b.Facts[0].Link = ""
	b.Facts = append(b.Facts, opsCell{Label: "Revision", Text: e.Revision.String()})
	if in := meta.text("workspace"); in != "" {
		b.Facts = append(b.Facts, opsCell{Label: "Workspace", Text: in, Code: true, Link: operatePath + "/workspaces?q=" + url.QueryEscape(in)})
	}
	b.Links = []choice{{Value: operatePath + "/events?before=" + url.QueryEscape(position), Text: v.lang.t("The log up to here")}}
	var proof struct {
		Index json.Number `json:"index"`
		Size  json.Number `json:"size"`
	}
	of := url.Values{"position": {position}}
	if _, err := v.call("prove-inclusion", request{query: of}, &proof); err == nil {
		text := v.lang.tf("leaf %s of a tree of %s events", proof.Index.String(), unsigned(proof.Size, 0))
		b.Facts = append(b.Facts, opsCell{Label: "Signed", Text: text})
		of.Set("format", "tlog-proof")
		b.Links = append(b.Links, choice{Value: "/audit/proof/inclusion?" + of.Encode(), Text: v.lang.t("Proof that it is in the log")})
	} else {
		b.Facts = append(b.Facts, opsCell{Label: "Signed", Text: v.lang.t("no checkpoint has it yet")})
	}
	b.Texts = []opsCell{{Label: "Payload", Text: indent(e.Data)}, {Label: "Metadata", Text: indent(e.Meta)}}
	return page{template: "operate", title: e.Type, body: b}, nil
}
