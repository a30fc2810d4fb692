package messagingreact

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/commands/messagingcmd"
	"bahi/domain/event"
	"bahi/domain/messaging/campaign"
	"bahi/domain/messaging/channel"
	"bahi/domain/messaging/contact"
	"bahi/domain/messaging/message"
	"bahi/domain/patch"
	"bahi/reactors"
	"bahi/readmodels"
	"bahi/readmodels/messagingview"
)

// Campaigns sends started campaigns, and those that contacts trigger.
var Campaigns = reactors.Define("campaigns",
	reactors.On(func(q *reactors.Queue, e event.Recorded[campaign.Started]) { dispatch(q, e.StreamID()) }),
	reactors.On(func(q *reactors.Queue, e event.Recorded[campaign.Resumed]) { dispatch(q, e.StreamID()) }),
	reactors.On(func(q *reactors.Queue, e event.Recorded[campaign.Frozen]) {
		if e.Data.Block < 0 {
			dispatch(q, strconv.FormatInt(e.Data.Campaign, 10))
		}
	}),
	reactors.On(func(q *reactors.Queue, e event.Recorded[contact.Edited]) {
		if e.Data.OptIn.State == patch.Given && e.Data.OptIn.Value && !e.Data.Imported { // imports never trigger (CONTRACT.md N8)
			q.Add(triggerCampaigns{Contact: e.StreamID()})
		}
	}),
	reactors.On(func(q *reactors.Queue, e event.Recorded[message.Received]) {
		q.Add(triggerCampaigns{Contact: strconv.FormatInt(e.Data.Contact, 10), Message: e.StreamID()})
	}),
	reactors.On(func(q *reactors.Queue, e event.Recorded[channel.Deleted]) {
		q.Add(failCampaigns{Channel: e.StreamID()})
	}),
)

func dispatch(q *reactors.Queue, id string) { q.Add(dispatchCampaign{Campaign: id}) }

// dispatchCampaign sends the due messages of a campaign.
type dispatchCampaign struct {
	Campaign string `json:"campaign"`
	Slot     int64  `json:"slot,omitempty"` // set by the sweep; distinguishes its job from a dead process's job
}

// Kind implements [reactors.Args].
func (dispatchCampaign) Kind() string { return "dispatch_campaign" }

// triggerCampaigns checks whether a contact triggers campaigns: by a message or, without one, by consent.
type triggerCampaigns struct {
	Contact string `json:"contact"`
	Message string `json:"message,omitempty"`
}

// Kind implements [reactors.Args].
func (triggerCampaigns) Kind() string { return "trigger_campaigns" }

// failCampaigns ends the campaigns of a deleted channel.
type failCampaigns struct {
	Channel string `json:"channel"`
}

// Kind implements [reactors.Args].
func (failCampaigns) Kind() string { return "fail_campaigns" }

// AdvanceCampaigns starts planned runs, ends pauses, and continues campaigns of dead processes.
type AdvanceCampaigns struct{}

// Kind implements [reactors.Args].
func (AdvanceCampaigns) Kind() string { return "advance_campaigns" }

const (
	// TendInterval is the interval of AdvanceCampaigns.
	TendInterval = 5 * time.Second

	// tendTimeout is short, so that another process continues a dead one's campaigns within a minute.
	tendTimeout = 10 * time.Second

	// slot is the interval at which the sweep adds a job for an active campaign. The job ends at once if another one sends the campaign.
	slot = 15 * time.Second

	// slice is the maximum time for which a job sends. Then other campaigns of the channel may send, and all campaigns if more than
	// MaxConcurrent are active.
	slice      = 45 * time.Second
	sliceAtEnd = 3 * time.Minute // a job that does not end is lost
)

// Workers returns the workers of campaigns.
func (d *Dispatcher) Workers() reactors.Workers {
	policy := reactors.Policy{Timeout: sliceAtEnd, MaxConcurrent: d.MaxConcurrent}
	return reactors.Workers{
		reactors.Work(policy, func(ctx context.Context, job reactors.Job[dispatchCampaign]) error {
			more, err := d.Dispatch(ctx, job.Args.Campaign, slice)
			if err == nil && more {
				err = reactors.Snooze(0)
			}
			return err
		}),
		reactors.WorkIf(reactors.Policy{},
			func(ctx context.Context, asOf event.Position, all []reactors.Wanted[triggerCampaigns]) ([]bool, error) {
				return ofEach(all, func(w reactors.Wanted[triggerCampaigns]) uuid.UUID { return w.Workspace },
					func(w reactors.Wanted[triggerCampaigns]) ([]int64, error) {
						return d.Views.Triggers(ctx, new(readmodels.At).AsKnownAt(asOf), w.Workspace)
					})
			}, d.trigger),
		reactors.Work(reactors.Policy{}, d.fail),
		reactors.Work(reactors.Policy{MaxConcurrent: 1, Timeout: tendTimeout},
			func(ctx context.Context, _ reactors.Job[AdvanceCampaigns]) error {
				return d.RunDue(ctx, d.Commands.Now())
			}),
	}
}

// RunDue starts planned runs, ends pauses, adds jobs for active campaigns, and settles messages of ended ones.
func (d *Dispatcher) RunDue(ctx context.Context, now time.Time) error {
	due, err := d.Views.DueCampaigns(ctx, nil, now, d.unansweredSince(now))
	var failed []error
	for _, c := range due {
		id := strconv.FormatInt(c.ID, 10)
		if c.Status == campaign.Active {
			failed = append(failed, d.Queue.Add(ctx, dispatchCampaign{Campaign: id, Slot: now.Unix() / int64(slot.Seconds())}))
			continue
		}
		if c.Status == campaign.Completed || c.Status == campaign.StatusFailed {
			failed = append(failed, d.giveUp(ctx, c, now))
			continue
		}
		_, err := commands.Handle(ctx, d.Commands, as(id, c.Workspace), campaign.Kind, id, campaign.RunDue{Now: now, Zone: d.Zone})
		failed = append(failed, err)
	}
	return errors.Join(append(failed, err)...)
}

// unansweredSince returns the time before which a message without a response must have been sent to count as unanswered.
func (d *Dispatcher) unansweredSince(now time.Time) time.Time {
	return now.Add(-cmp.Or(d.Doubt, doubtAfter))
}

// giveUp settles the unsettled messages of a campaign that is cancelled or has lost its channel. No job sends its messages again.
func (d *Dispatcher) giveUp(ctx context.Context, c messagingview.DueCampaign, now time.Time) error {
	due := now
	if c.Status == campaign.StatusFailed { // unsent messages stay open until a person cancels the campaign
		due = time.Time{}
	}
	left, err := d.Views.CampaignWork(ctx, nil, c.Workspace, c.ID,
		messagingview.Due{Now: due, UnansweredSince: d.unansweredSince(now), Limit: chunkSize})
	for _, m := range left {
		_, failed := commands.Handle(ctx, d.Commands, as(strconv.FormatInt(c.ID, 10), c.Workspace), message.Kind, strconv.FormatInt(m.ID, 10),
			message.Resend{Contact: m.Contact, Unwanted: true})
		err = errors.Join(err, failed)
	}
	return err
}

// fail ends the campaigns of a deleted channel.
func (d *Dispatcher) fail(ctx context.Context, job reactors.Job[failCampaigns]) error {
	number := event.Number(job.Args.Channel)
	l, err := commands.Load(ctx, d.Commands.Fresh(), channel.Kind, job.Args.Channel)
	if err != nil {
		return err
	}
	ids, err := readmodels.Complete(func(at *readmodels.At) ([]int64, error) { return d.Views.CampaignsOn(ctx, at, l.Workspace, number) })
	for _, n := range ids {
		id := strconv.FormatInt(n, 10)
		c, loading := commands.Load(ctx, d.Commands.Fresh(), campaign.Kind, id)
		if err = errors.Join(err, loading); err == nil {
			_, err = commands.Handle(ctx, d.Commands, as(id, l.Workspace), campaign.Kind, id,
				campaign.Advance{Run: c.State.Run, Fail: messagingcmd.ErrNoChannel.Error()})
		}
	}
	return err
}

// trigger adds a contact to the campaigns that it has triggered.
func (d *Dispatcher) trigger(ctx context.Context, job reactors.Job[triggerCampaigns]) error {
	number := event.Number(job.Args.Contact)
	who, err := commands.Load(ctx, d.Commands.Fresh(), contact.Kind, job.Args.Contact)
	if err != nil || who.State.Status == "" || !who.State.OptIn || who.State.PhoneKey == "" {
		return err
	}
	what, text := "contact_created", ""
	if job.Args.Message != "" {
		m, err := commands.Load(ctx, d.Commands.Fresh(), message.Kind, job.Args.Message)
		if err != nil {
			return err
		}
		said, err := commands.Reveal(ctx, d.Commands, m.State.Said)
		if err != nil {
			return err
		}
		what = "message_received"
		if shown := said.Shown(); shown != nil {
			text = *shown
		}
	}
	ids, err := readmodels.Complete(func(at *readmodels.At) ([]int64, error) { return d.Views.Triggers(ctx, at, who.Workspace) })
	for _, n := range ids {
		id := strconv.FormatInt(n, 10)
		c, loading := commands.Load(ctx, d.Commands.Fresh(), campaign.Kind, id)
		if err := errors.Join(err, loading); err != nil {
			return err
		}
		if !c.State.MatchesTrigger(what, text) || c.State.List != 0 && !slices.Contains(who.State.Lists, c.State.List) {
			continue
		}
		f := campaign.Freeze{Frozen: campaign.Frozen{
			Campaign: n, Run: c.State.Run, Block: -1, Channel: c.State.Channel, Contacts: []int64{number}, Last: number, End: true,
			At: d.Commands.Now().UTC(), Delays: c.State.Delays(),
		}}
		if what == "contact_created" {
			if who.CreatedAt.Before(c.State.Started) {
				continue
			}
		} else {
			f.Again = campaign.TriggerCooldown
		}
		if err := d.freeze(ctx, as(id, who.Workspace), campaign.TriggeredName(id, number), f); err != nil && !errors.Is(err, errNotActive) {
			return err
		}
	}
	return err
}

// Values returns further replacements in a confirmation's messages, by message, as pairs of old and new texts.
type Values func(ctx context.Context, confirmation int64, language string, messages []int64) (map[int64][]string, error)

// values returns the [Values] of messages, nil if the campaign is no confirmation.
func (s *sending) values(ctx context.Context, work []messagingview.Recipient) (map[int64][]string, error) {
	p := s.campaign.State.Plan
	if p.Confirmation == 0 {
		return nil, nil
	}
	messages := make([]int64, len(work))
	for i, w := range work {
		messages[i] = w.ID
	}
	return s.Values(ctx, p.Confirmation, s.templates[p.Template].Language, messages)
}
