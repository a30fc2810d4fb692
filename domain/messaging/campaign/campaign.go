// Package campaign is a template message to many contacts: at once, at a time or again and again, in steps, or to each who gives a cause.
// Its recipients are streams of blocks, and its messages streams of their own.
package campaign

import (
	"time"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/messaging/template"
)

// Kind registers the events of streams campaign-<number>. Stored names are permanent.
var Kind = event.NewKind("campaign",
	event.Of[Created]("CampaignCreated", 1),
	event.Of[Started]("CampaignStarted", 1),
	event.Of[AudienceCompleted]("CampaignAudienceKnown", 1),
	event.Of[Paused]("CampaignPaused", 1),
	event.Of[Resumed]("CampaignResumed", 1),
	event.Of[Finished]("CampaignRunFinished", 1),
	event.Of[Failed]("CampaignFailed", 1),
	event.Of[Cancelled]("CampaignCancelled", 1),
)

// The refusals.
var (
	ErrNotFound  = fault.New(fault.NotFound, "Campaign not found") // those who may not know that it exists get it too
	ErrCompleted = fault.New(fault.Conflict, "Campaign is completed")
)

// The types.
const (
	Broadcast = "broadcast"
	Drip      = "drip"
	Triggered = "trigger"
	Survey    = "survey"
)

// The statuses.
const (
	Draft        = "draft"
	Scheduled    = "scheduled"
	Active       = "active"
	Stopped      = "paused"
	Completed    = "completed"
	StatusFailed = "failed"
)

// All is the audience of every contact.
const All = "all"

// Plan is what a campaign sends to whom.
type Plan struct {
	Name       string            `json:"name"`
	Type       string            `json:"type"`
	Template   int64             `json:"template"`
	Channel    int64             `json:"channel"` // the template's
	Audience   string            `json:"audience"`
	List       int64             `json:"list,omitempty"` // 0: everybody
	Schedule   string            `json:"schedule,omitempty"`
	At         *time.Time        `json:"at,omitempty"`
	Params     template.Values   `json:"params,omitempty"`
	Steps      []Step            `json:"steps,omitempty"` // of a drip, all of them
	Trigger    *TriggerCondition `json:"trigger,omitempty"`
	Recurrence *Recurrence       `json:"recurrence,omitempty"`

	Confirmation int64 `json:"confirmation,omitempty"` // of balances, whose recipients and values it has
}

// Step is one message of a drip.
type Step struct {
	TemplateID     int64           `json:"templateId" minimum:"1" doc:"ID of the template"`
	DelayHours     int             `json:"delayHours,omitempty" minimum:"0" maximum:"8760" doc:"After the step before, or the start"`
	TemplateParams template.Values `json:"templateParams,omitempty" doc:"Values of the template's parameters"`
}

// TriggerCondition is what a contact does to be written to.
type TriggerCondition struct {
	Event   string `json:"event" enum:"contact_created,message_received,keyword" doc:"Event that triggers the campaign"`
	Keyword string `json:"keyword,omitempty" maxLength:"100" doc:"The whole message, in any case"`
}

// Sequence returns the steps of any campaign.
func (p Plan) Sequence() []Step {
	if len(p.Steps) > 0 {
		return p.Steps
	}
	return []Step{{TemplateID: p.Template, TemplateParams: p.Params}}
}

// Delays returns the hours from the start to each step.
func (p Plan) Delays() (all []int) {
	sum := 0
	for _, s := range p.Sequence() {
		sum += s.DelayHours
		all = append(all, sum)
	}
	return all
}

// State is what decisions and answers need.
type State struct {
	Plan

	Status   string // empty: there is no campaign
	Next     *time.Time
	Run      int // the newest; 0: none
	Started  time.Time
	Known    bool // the whole audience of the run is in blocks
	Insisted bool // a person has resumed the run
	Until    *time.Time
	Reason   string // of a pause or a failure, in our words
}

// Created records a new campaign, and when it first runs.
type Created struct {
	Plan

	Next *time.Time `json:"next,omitempty"`
}

// Started records that a run begins.
type Started struct {
	Run  int        `json:"run"`
	At   time.Time  `json:"at"`
	Next *time.Time `json:"next,omitempty"` // the run after it, as far as it is planned
}

// AudienceCompleted records that all recipients of a run are in blocks.
type AudienceCompleted struct {
	Run    int `json:"run"`
	Blocks int `json:"blocks"`
}

// Paused records that nothing is sent for now.
type Paused struct {
	Reason string     `json:"reason"`
	Until  *time.Time `json:"until,omitempty"` // nil: until a person sends it
}

// Resumed records that it goes on.
type Resumed struct {
	Insisted bool `json:"insisted"` // a person wants it
}

// Finished records that each recipient of a run is settled.
type Finished struct {
	Run int `json:"run"`
}

// Failed records that nothing could be sent.
type Failed struct {
	Reason string `json:"reason"`
}

// Cancelled records that nothing more is to be sent.
type Cancelled struct{}

// Evolve begins the campaign.
func (e Created) Evolve(State) State {
	s := State{Plan: e.Plan, Status: Draft, Next: e.Next}
	if e.Next != nil {
		s.Status = Scheduled
	}
	return s
}

// Evolve begins a run.
func (e Started) Evolve(s State) State {
	s.Status, s.Run, s.Started, s.Next, s.Known, s.Insisted, s.Until, s.Reason = Active, e.Run, e.At, e.Next, s.Type == Triggered,
		false, nil, ""
	return s
}

// Evolve notes it.
func (e AudienceCompleted) Evolve(s State) State {
	s.Known = true
	return s
}

// Evolve pauses it.
func (e Paused) Evolve(s State) State {
	s.Status, s.Reason, s.Until = Stopped, e.Reason, e.Until
	return s
}

// Evolve goes on.
func (e Resumed) Evolve(s State) State {
	s.Status, s.Reason, s.Until, s.Insisted = Active, "", nil, e.Insisted
	return s
}

// Evolve ends the run, and the campaign if it was the last.
func (Finished) Evolve(s State) State {
	s.Status = Completed
	if s.Next != nil {
		s.Status = Scheduled
	}
	return s
}

// Evolve ends it with a reason.
func (e Failed) Evolve(s State) State {
	s.Status, s.Reason = StatusFailed, e.Reason
	return s
}

// Evolve ends it.
func (Cancelled) Evolve(s State) State {
	s.Status, s.Next, s.Until, s.Reason = Completed, nil, nil, ""
	return s
}

// Send starts a campaign at once, or lets it go on. The plan of later runs stays.
type Send struct {
	Now time.Time
}

// Decide refuses a campaign that is over. It passes over one that is under way.
func (c Send) Decide(s State) ([]event.Event[State], error) {
	switch s.Status {
	case "":
		return nil, ErrNotFound
	case Completed:
		return nil, ErrCompleted
	case Active:
		return nil, nil
	case Draft, Scheduled:
		next := s.Next
		if s.Recurrence == nil {
			next = nil
		}
		return []event.Event[State]{Started{Run: s.Run + 1, At: c.Now, Next: next}}, nil
	default:
		if s.Run == 0 { // it failed before its first run
			return []event.Event[State]{Started{Run: 1, At: c.Now}}, nil
		}
		return []event.Event[State]{Resumed{Insisted: true}}, nil
	}
}

// RunDue does what is due: it begins a planned run, once however many were missed, or ends a pause.
type RunDue struct {
	Now  time.Time
	Zone *time.Location
}

// Decide passes over a campaign of which nothing is due.
func (c RunDue) Decide(s State) ([]event.Event[State], error) {
	due := func(at *time.Time) bool { return at != nil && !at.After(c.Now) }
	switch {
	case s.Status == Scheduled && due(s.Next):
		e := Started{Run: s.Run + 1, At: c.Now}
		if s.Recurrence != nil {
			e.Next = s.Recurrence.Next(*s.At, c.Now, c.Zone)
		}
		return []event.Event[State]{e}, nil
	case s.Status == Stopped && due(s.Until):
		return []event.Event[State]{Resumed{}}, nil
	}
	return nil, nil
}

// Advance notes how far the run is. It passes over a campaign that is not active, or is at another run.
type Advance struct {
	Run    int
	Blocks int // more than 0: the audience is known

	Pause string // why it has to pause
	Until *time.Time
	Fail  string // why nothing can be sent
	Done  bool   // each recipient is settled
}

// Decide notes it.
func (c Advance) Decide(s State) ([]event.Event[State], error) {
	waits := (s.Status == Scheduled || s.Status == Stopped) && c.Fail != ""
	switch {
	case s.Run != c.Run || s.Status != Active && !waits:
		return nil, nil
	case c.Fail != "":
		return []event.Event[State]{Failed{Reason: c.Fail}}, nil
	case c.Pause != "":
		return []event.Event[State]{Paused{Reason: c.Pause, Until: c.Until}}, nil
	case c.Done && s.Type != Triggered:
		return []event.Event[State]{Finished{Run: c.Run}}, nil
	case c.Blocks > 0 && !s.Known:
		return []event.Event[State]{AudienceCompleted{Run: c.Run, Blocks: c.Blocks}}, nil
	}
	return nil, nil
}

// Cancel ends a campaign. What was not sent is never sent.
type Cancel struct{}

// Decide passes over a campaign that is over.
func (Cancel) Decide(s State) ([]event.Event[State], error) {
	switch s.Status {
	case "":
		return nil, ErrNotFound
	case Completed:
		return nil, nil
	}
	return []event.Event[State]{Cancelled{}}, nil
}

// MatchesTrigger reports whether what a contact did is a cause to write to them.
func (s State) MatchesTrigger(what, text string) bool {
	if s.Type != Triggered || s.Status != Active || s.Trigger == nil {
		return false
	}
	return s.Trigger.Event == what && what != "keyword" || what == "message_received" && s.Trigger.Event == "keyword" &&
		folded(text) == folded(s.Trigger.Keyword)
}
