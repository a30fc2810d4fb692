// Package campaign is a template message to many contacts: immediately, at a time, repeatedly, in steps, or to each contact that triggers
// it. Streams of blocks have its recipients, and each message has its own stream.
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
	event.Of[AudienceCompleted]("CampaignAudienceCompleted", 1),
	event.Of[Paused]("CampaignPaused", 1),
	event.Of[Resumed]("CampaignResumed", 1),
	event.Of[Finished]("CampaignRunFinished", 1),
	event.Of[Failed]("CampaignFailed", 1),
	event.Of[Cancelled]("CampaignCancelled", 1),
)

// Errors that commands return.
var (
	ErrNotFound  = fault.New(fault.NotFound, "Campaign not found") // callers without access receive it too
	ErrCompleted = fault.New(fault.Conflict, "Campaign is completed")
)

// The types of campaigns.
const (
	Broadcast = "broadcast"
	drip      = "drip"
	Triggered = "trigger"
	Survey    = "survey"
)

// The statuses of campaigns.
const (
	Draft        = "draft"
	Scheduled    = "scheduled"
	Active       = "active"
	Stopped      = "paused"
	Completed    = "completed"
	StatusFailed = "failed"
)

// all is the audience of all contacts.
const all = "all"

// Plan has the messages and the audience of a campaign.
type Plan struct {
	Name       string            `json:"name"`
	Type       string            `json:"type"`
	Template   int64             `json:"template"`
	Channel    int64             `json:"channel"` // channel of the template
	Audience   string            `json:"audience"`
	List       int64             `json:"list,omitempty"` // 0: all contacts
	Schedule   string            `json:"schedule,omitempty"`
	At         *time.Time        `json:"at,omitempty"`
	Params     template.Values   `json:"params,omitempty"`
	Steps      []Step            `json:"steps,omitempty"` // all steps of a drip
	Trigger    *TriggerCondition `json:"trigger,omitempty"`
	Recurrence *Recurrence       `json:"recurrence,omitempty"`

	Confirmation int64 `json:"confirmation,omitempty"` // confirmation of balances with the recipients and values; 0: none
}

// Step is one message of a drip.
type Step struct {
	TemplateID     int64           `json:"templateId" minimum:"1" doc:"ID of the template"`
	DelayHours     int             `json:"delayHours,omitempty" minimum:"0" maximum:"8760" doc:"Delay in hours after the previous step, or the start"`
	TemplateParams template.Values `json:"templateParams,omitempty" doc:"Values of the template's parameters"`
}

// TriggerCondition is the event of a contact that triggers a campaign.
type TriggerCondition struct {
	Event   string `json:"event" enum:"contact_created,message_received,keyword" doc:"Event that triggers the campaign"`
	Keyword string `json:"keyword,omitempty" maxLength:"100" doc:"Text of the whole message; case does not matter"`
}

// Sequence returns the steps of a campaign of any type.
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

// State is the state that decisions and responses require.
type State struct {
	Plan

	Status   string // empty: the campaign does not exist
	Next     *time.Time
	Run      int // the newest run; 0: none
	Started  time.Time
	Known    bool // the blocks have the whole audience of the run
	Insisted bool // a user has resumed the run
	Until    *time.Time
	Reason   string // reason of a pause or a failure; a text of Bahi
}

// Created records a new campaign and the time of its first run.
type Created struct {
	Plan

	Next *time.Time `json:"next,omitempty"`
}

// Started records the start of a run.
type Started struct {
	Run  int        `json:"run"`
	At   time.Time  `json:"at"`
	Next *time.Time `json:"next,omitempty"` // time of the next run, if planned
}

// AudienceCompleted records that the blocks have all recipients of a run.
type AudienceCompleted struct {
	Run    int `json:"run"`
	Blocks int `json:"blocks"`
}

// Paused records a pause.
type Paused struct {
	Reason string     `json:"reason"`
	Until  *time.Time `json:"until,omitempty"` // nil: until a user resumes
}

// Resumed records the end of a pause.
type Resumed struct {
	Insisted bool `json:"insisted"` // a user has resumed it
}

// Finished records that all messages of a run have a final result.
type Finished struct {
	Run int `json:"run"`
}

// Failed records that no message could be sent.
type Failed struct {
	Reason string `json:"reason"`
}

// Cancelled records that no further messages are sent.
type Cancelled struct{}

// Evolve creates the campaign.
func (e Created) Evolve(State) State {
	s := State{Plan: e.Plan, Status: Draft, Next: e.Next}
	if e.Next != nil {
		s.Status = Scheduled
	}
	return s
}

// Evolve starts a run.
func (e Started) Evolve(s State) State {
	s.Status, s.Run, s.Started, s.Next, s.Known, s.Insisted, s.Until, s.Reason = Active, e.Run, e.At, e.Next, s.Type == Triggered,
		false, nil, ""
	return s
}

// Evolve marks the audience as complete.
func (e AudienceCompleted) Evolve(s State) State {
	s.Known = true
	return s
}

// Evolve pauses the campaign.
func (e Paused) Evolve(s State) State {
	s.Status, s.Reason, s.Until = Stopped, e.Reason, e.Until
	return s
}

// Evolve resumes the campaign.
func (e Resumed) Evolve(s State) State {
	s.Status, s.Reason, s.Until, s.Insisted = Active, "", nil, e.Insisted
	return s
}

// Evolve ends the run, and the campaign after its last run.
func (Finished) Evolve(s State) State {
	s.Status = Completed
	if s.Next != nil {
		s.Status = Scheduled
	}
	return s
}

// Evolve sets the failure and its reason.
func (e Failed) Evolve(s State) State {
	s.Status, s.Reason = StatusFailed, e.Reason
	return s
}

// Evolve ends the campaign.
func (Cancelled) Evolve(s State) State {
	s.Status, s.Next, s.Until, s.Reason = Completed, nil, nil, ""
	return s
}

// Send starts a campaign immediately, or resumes it. It does not change the plan of later runs.
type Send struct {
	Now time.Time
}

// Decide refuses a completed campaign. It returns no events for a running one.
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

// RunDue starts a planned run, or ends a pause. It starts one run even if several were missed.
type RunDue struct {
	Now  time.Time
	Zone *time.Location
}

// Decide returns no events if nothing is due.
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

// Advance records the progress of a run. It has no effect on a campaign that is not active or has a different run.
type Advance struct {
	Run    int
	Blocks int // more than 0: the audience is complete

	Pause string // reason of a pause
	Until *time.Time
	Fail  string // reason of a failure
	Done  bool   // all messages have a final result
}

// Decide records the progress.
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

// Cancel cancels a campaign. Unsent messages are never sent.
type Cancel struct{}

// Decide returns no events for a completed campaign.
func (Cancel) Decide(s State) ([]event.Event[State], error) {
	switch s.Status {
	case "":
		return nil, ErrNotFound
	case Completed:
		return nil, nil
	}
	return []event.Event[State]{Cancelled{}}, nil
}

// MatchesTrigger reports whether an event of a contact triggers the campaign.
func (s State) MatchesTrigger(what, text string) bool {
	if s.Type != Triggered || s.Status != Active || s.Trigger == nil {
		return false
	}
	return s.Trigger.Event == what && what != "keyword" || what == "message_received" && s.Trigger.Event == "keyword" &&
		folded(text) == folded(s.Trigger.Keyword)
}
