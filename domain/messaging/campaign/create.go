package campaign

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/messaging/template"
	"bahi/domain/person"
)

// Audience is all, or the number of a list, as a text or as a number.
type Audience string

// UnmarshalJSON reads both.
func (a *Audience) UnmarshalJSON(data []byte) error {
	if text := string(data); !strings.HasPrefix(text, `"`) {
		*a = Audience(text)
		return nil
	}
	var text string
	err := json.Unmarshal(data, &text)
	*a = Audience(text)
	return err
}

// Create makes a campaign.
type Create struct {
	Name           string            `json:"name" maxLength:"400" doc:"Name of the campaign"`
	Type           string            `json:"type" enum:"broadcast,drip,trigger,survey" doc:"Type of the campaign"`
	TemplateID     int64             `json:"templateId" minimum:"1" doc:"An approved template; of a drip, that of its first step"`
	Audience       Audience          `json:"audience" doc:"all, or the id of a contact list"`
	Schedule       string            `json:"schedule,omitempty" enum:"immediate,scheduled,recurring" doc:"Absent, and immediate: no timer, it waits for send"`
	ScheduledAt    string            `json:"scheduledAt,omitempty" maxLength:"40" doc:"Without an offset, on the clock of the workspace"`
	TemplateParams template.Values   `json:"templateParams,omitempty" doc:"A value for each placeholder; {{name}} and {{phone}} in it are the contact's"`
	Steps          []Step            `json:"steps,omitempty" maxItems:"20" doc:"Of a drip: the whole sequence"`
	Trigger        *TriggerCondition `json:"trigger,omitempty" doc:"Of a trigger: what a contact does to be written to"`
	Recurrence     *Recurrence       `json:"recurrence,omitempty" doc:"Of a recurring one; absent: every week"`

	Now       time.Time                `json:"-"`
	Zone      *time.Location           `json:"-"`
	Templates map[int64]template.State `json:"-"` // those of the workspace that are named
	HasList   bool                     `json:"-"` // the list is one of the workspace
	Autosend  bool                     `json:"-"` // one without a time begins at once (CONTRACT.md D22)
}

// ListID returns the list that is the audience, 0 for everybody.
func (c Create) ListID() (id int64, ok bool) {
	if c.Audience == All {
		return 0, true
	}
	id, err := strconv.ParseInt(string(c.Audience), 10, 64)
	return id, err == nil && id > 0
}

// Named returns the templates that the campaign sends.
func (c Create) Named() (ids []int64) {
	ids = []int64{c.TemplateID}
	for _, s := range c.Steps {
		ids = append(ids, s.TemplateID)
	}
	return ids
}

// maxParams bounds the values of a step, of which a template may leave some unread.
const maxParams = 50

// Decide puts the plan in order, or returns all that is wrong with it.
func (c Create) Decide(State) ([]event.Event[State], error) {
	name, err := person.Name("name", c.Name)
	wrong := []error{err}
	refuse := func(field, message string) {
		wrong = append(wrong, fault.Fields(fault.Field{Field: field, Message: message}))
	}
	list, ok := c.ListID()
	if !ok || list != 0 && !c.HasList {
		refuse("audience", "expected all or the id of a contact list")
	}
	p := Plan{
		Name: name, Type: c.Type, Template: c.TemplateID, Channel: c.Templates[c.TemplateID].Channel, Audience: string(c.Audience), List: list,
		Schedule: c.Schedule, Params: c.TemplateParams, Steps: c.Steps, Trigger: c.Trigger,
	}
	switch {
	case c.Type != Drip && len(c.Steps) > 0:
		refuse("steps", "only a drip has steps")
	case len(c.Steps) > 0 && c.Steps[0].TemplateID != c.TemplateID:
		refuse("steps[0].templateId", "must be templateId")
	}
	for i, s := range p.Sequence() {
		at := ""
		if len(p.Steps) > 0 {
			at = fmt.Sprintf("steps[%d].", i)
		}
		wrong = append(wrong, c.check(at, s, p.Channel))
	}
	switch t := c.Trigger; {
	case c.Type != Triggered && t != nil:
		refuse("trigger", "only a trigger has it")
	case c.Type == Triggered && t == nil:
		refuse("trigger", "is required")
	case t != nil && (t.Event == "keyword") != (folded(t.Keyword) != ""):
		refuse("trigger.keyword", "a keyword belongs to the event keyword, and to no other")
	}
	next, err := c.plan(&p)
	if err := fault.Join(append(wrong, err)...); err != nil {
		return nil, err
	}
	events := []event.Event[State]{Created{Plan: p, Next: next}}
	if c.Autosend && next == nil {
		events = append(events, Started{Run: 1, At: c.Now.UTC().Truncate(time.Microsecond)}) // as tables keep it
	}
	return events, nil
}

// Parties is the audience of a confirmation of balances.
const Parties = "parties"

// Begin makes a campaign of a confirmation, and starts it. Its recipients are in blocks already.
type Begin struct {
	Plan

	Template template.State
	Blocks   int
	Now      time.Time
}

// Decide returns what is wrong with the template, or with its values.
func (c Begin) Decide(State) ([]event.Event[State], error) {
	switch {
	case c.Template.Channel == 0, c.Template.Channel != c.Channel:
		return nil, fault.Fields(fault.Field{Field: "templateId", Message: "Template not found"})
	case !c.Template.Sendable():
		return nil, fault.Fields(fault.Field{Field: "templateId", Message: "the template is not approved"})
	}
	at := c.Now.UTC().Truncate(time.Microsecond) // as tables keep it
	return []event.Event[State]{Created{Plan: c.Plan}, Started{Run: 1, At: at}, AudienceCompleted{Run: 1, Blocks: c.Blocks}}, nil
}

// check returns what is wrong with a step, whose fields begin with at.
func (c Create) check(at string, s Step, channel int64) error {
	var wrong []error
	refuse := func(field, message string) {
		wrong = append(wrong, fault.Fields(fault.Field{Field: at + field, Message: message}))
	}
	t, known := c.Templates[s.TemplateID]
	switch {
	case !known:
		refuse("templateId", "Template not found")
	case !t.Sendable():
		refuse("templateId", "the template is not approved")
	case t.Channel != channel:
		refuse("templateId", "all templates of a campaign are of one channel")
	}
	if len(s.TemplateParams) > maxParams {
		refuse("templateParams", fmt.Sprintf("at most %d", maxParams))
	}
	return fault.Join(append(wrong, t.Check(at+"templateParams", s.TemplateParams))...)
}

// plan fills in when the campaign runs, and returns when it first does.
func (c Create) plan(p *Plan) (next *time.Time, err error) {
	var wrong []error
	refuse := func(field, message string) {
		wrong = append(wrong, fault.Fields(fault.Field{Field: field, Message: message}))
	}
	timed := c.Schedule == "scheduled" || c.Schedule == "recurring"
	at, readable := local(c.ScheduledAt, c.Zone)
	switch {
	case !timed && c.ScheduledAt != "":
		refuse("scheduledAt", "only a scheduled or recurring campaign has a time")
	case timed && !readable:
		refuse("scheduledAt", "expected a time like 2026-12-01T09:30:00+05:30")
	case timed && !at.After(c.Now):
		refuse("scheduledAt", "must be in the future")
	case timed:
		p.At, next = &at, &at
	}
	switch {
	case c.Schedule != "recurring" && c.Recurrence != nil:
		refuse("recurrence", "only a recurring campaign has it")
	case c.Schedule == "recurring" && c.Type == Triggered:
		refuse("schedule", "a trigger does not recur")
	case c.Schedule == "recurring":
		r := Recurrence{Every: 1, Unit: "week"}
		if given := c.Recurrence; given != nil {
			r.Every, r.Until = max(1, given.Every), given.Until
			if given.Unit != "" {
				r.Unit = given.Unit
			}
		}
		if r.Until != nil && readable && r.Until.Before(at) {
			refuse("recurrence.until", "must not be before scheduledAt")
		}
		p.Recurrence = &r
	}
	return next, fault.Join(wrong...)
}

// folded returns a text as keywords are compared.
func folded(text string) string { return strings.Join(strings.Fields(person.Folded(text)), " ") }
