package campaign

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/messaging/template"
	"bahi/domain/person"
)

// Audience is "all", or the id of a list as a text or a number.
type Audience string

// UnmarshalJSON accepts a text or a number.
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

// Create creates a campaign.
type Create struct {
	Name           string            `json:"name" maxLength:"400" doc:"Name of the campaign"`
	Type           string            `json:"type" enum:"broadcast,drip,trigger,survey" doc:"Type of the campaign"`
	TemplateID     int64             `json:"templateId" minimum:"1" doc:"ID of an approved template; for a drip, that of the first step"`
	Audience       Audience          `json:"audience" doc:"all, or the id of a contact list"`
	Schedule       string            `json:"schedule,omitempty" enum:"immediate,scheduled,recurring" doc:"Timing; absent or immediate: the campaign starts on send"`
	ScheduledAt    string            `json:"scheduledAt,omitempty" maxLength:"40" doc:"Time of the first run; without an offset, in the time zone of the workspace"`
	TemplateParams template.Values   `json:"templateParams,omitempty" doc:"Value of each placeholder; {{name}} and {{phone}} stand for the contact's"`
	Steps          []Step            `json:"steps,omitempty" maxItems:"20" doc:"All steps of a drip"`
	Trigger        *TriggerCondition `json:"trigger,omitempty" doc:"Event that triggers a campaign of type trigger"`
	Recurrence     *Recurrence       `json:"recurrence,omitempty" doc:"Recurrence of a recurring campaign; absent: weekly"`

	Now       time.Time                `json:"-"`
	Zone      *time.Location           `json:"-"`
	Templates map[int64]template.State `json:"-"` // the named templates of the workspace
	HasList   bool                     `json:"-"` // the list exists in the workspace
	Autosend  bool                     `json:"-"` // a campaign without a time starts immediately (CONTRACT.md D22)
}

// ListID returns the id of the audience's list, 0 for all contacts.
func (c Create) ListID() (id int64, ok bool) {
	if c.Audience == all {
		return 0, true
	}
	id, err := strconv.ParseInt(string(c.Audience), 10, 64)
	return id, err == nil && id > 0
}

// Named returns the ids of the campaign's templates.
func (c Create) Named() (ids []int64) {
	ids = []int64{c.TemplateID}
	for _, s := range c.Steps {
		ids = append(ids, s.TemplateID)
	}
	return ids
}

// maxParams is the maximum number of values of a step. A template may ignore some.
const maxParams = 50

// Decide normalises the plan, or returns all faults.
func (c Create) Decide(State) ([]event.Event[State], error) {
	name, err := person.Name("name", c.Name)
	wrong := []error{err}
	refuse := func(field, message string) {
		wrong = append(wrong, fault.Wrong(field, message))
	}
	list, ok := c.ListID()
	if !ok || list != 0 && !c.HasList {
		refuse("audience", "expected all or the id of a contact list")
	}
	p := Plan{
		Name: name, Type: c.Type, Template: c.TemplateID, Channel: c.Templates[c.TemplateID].Channel, Audience: string(c.Audience), List: list,
		Schedule: c.Schedule, Params: c.TemplateParams, Steps: c.Steps, Trigger: c.Trigger,
	}
	typed := slices.Contains([]string{Broadcast, drip, Triggered, Survey}, c.Type) // else the type itself is refused
	switch {
	case typed && c.Type != drip && len(c.Steps) > 0:
		refuse("steps", "only a drip has steps")
	case len(c.Steps) > 0 && c.Steps[0].TemplateID != c.TemplateID:
		refuse("steps[0].templateId", "must be templateId")
	}
	if len(c.Steps) > 0 && len(c.TemplateParams) > 0 && !maps.Equal(c.Steps[0].TemplateParams, c.TemplateParams) {
		refuse("steps[0].templateParams", "must be templateParams")
	}
	for i, s := range p.Sequence() {
		at := ""
		if len(p.Steps) > 0 {
			at = fmt.Sprintf("steps[%d].", i)
		}
		wrong = append(wrong, c.check(at, s, p.Channel))
	}
	switch t := c.Trigger; {
	case typed && c.Type != Triggered && t != nil:
		refuse("trigger", "only a trigger has it")
	case c.Type == Triggered && t == nil:
		refuse("trigger", "is required")
	case t != nil && t.Event != "keyword" && !slices.Contains([]string{"contact_created", "message_received"}, t.Event): // refused itself
	case t != nil && (t.Event == "keyword") != (folded(t.Keyword) != ""):
		refuse("trigger.keyword", "allowed only with the event keyword")
	}
	next, err := c.plan(&p)
	if err := fault.Join(append(wrong, err)...); err != nil {
		return nil, err
	}
	events := []event.Event[State]{Created{Plan: p, Next: next}}
	if c.Autosend && next == nil {
		events = append(events, Started{Run: 1, At: c.Now.UTC().Truncate(time.Microsecond)}) // the precision of the tables
	}
	return events, nil
}

// Parties is the audience of a confirmation of balances.
const Parties = "parties"

// Begin creates and starts a campaign of a confirmation. Blocks already have the recipients.
type Begin struct {
	Plan

	Template template.State
	Blocks   int
	Now      time.Time
}

// Decide returns the faults of the template and its values.
func (c Begin) Decide(State) ([]event.Event[State], error) {
	switch {
	case c.Template.Channel == 0, c.Template.Channel != c.Channel:
		return nil, fault.Wrong("templateId", "Template not found")
	case !c.Template.Sendable():
		return nil, fault.Wrong("templateId", "the template is not approved")
	}
	at := c.Now.UTC().Truncate(time.Microsecond) // the precision of the tables
	return []event.Event[State]{Created{Plan: c.Plan}, Started{Run: 1, At: at}, AudienceCompleted{Run: 1, Blocks: c.Blocks}}, nil
}

// check returns the faults of a step. at is the prefix of its field names.
func (c Create) check(at string, s Step, channel int64) error {
	var wrong []error
	refuse := func(field, message string) {
		wrong = append(wrong, fault.Wrong(at+field, message))
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

// plan sets the schedule and returns the time of the first run.
func (c Create) plan(p *Plan) (next *time.Time, err error) {
	var wrong []error
	refuse := func(field, message string) {
		wrong = append(wrong, fault.Wrong(field, message))
	}
	timed := c.Schedule == "scheduled" || c.Schedule == "recurring"
	untimed := c.Schedule == "" || c.Schedule == "immediate" // another schedule is refused itself
	at, readable := local(c.ScheduledAt, c.Zone)
	switch {
	case untimed && c.ScheduledAt != "":
		refuse("scheduledAt", "only a scheduled or recurring campaign has a time")
	case timed && !readable:
		refuse("scheduledAt", "expected a time like 2026-12-01T09:30:00+05:30")
	case timed && !at.After(c.Now):
		refuse("scheduledAt", "must be in the future")
	case timed:
		p.At, next = &at, &at
	}
	switch {
	case (untimed || c.Schedule == "scheduled") && c.Recurrence != nil:
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

// folded returns a text in the form for comparing keywords.
func folded(text string) string { return strings.Join(strings.Fields(person.Folded(text)), " ") }
