package messagingreact

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"bahi/commands"
	"bahi/commands/messagingcmd"
	"bahi/domain/actor"
	"bahi/domain/event"
	"bahi/domain/messaging/campaign"
	"bahi/domain/messaging/channel"
	"bahi/domain/messaging/contact"
	"bahi/domain/messaging/message"
	"bahi/domain/messaging/network"
	"bahi/domain/messaging/template"
	"bahi/eventstore/signal"
	"bahi/reactors"
	"bahi/readmodels"
	"bahi/readmodels/messagingview"
)

// Dispatcher sends the messages of campaigns.
//
// Each recipient's message is a stream whose name is fixed when the audience is frozen. Only the process that creates the stream calls the
// network. After a crash, or in parallel, another process finds the stream and does not call. So a message is sent twice only if there was
// no response for ten minutes, and then once more (CONTRACT.md N1).
type Dispatcher struct {
	*messagingcmd.Campaigns

	Views         *messagingview.Views
	Queue         reactors.Adder
	Alone         Alone
	Values        Values
	MaxConcurrent int     // maximum number of campaigns sent at the same time
	Rate          float64 // messages per second per channel; 0: unlimited

	Doubt time.Duration // time after which a message without a response is sent again; 0: 10 minutes
	Pause time.Duration // time before a throttled message is retried, if the network does not specify; 0: a second
}

// Alone runs do unless another caller, on any node, runs it for the same channel. It returns false if it did not run.
type Alone func(ctx context.Context, channel int64, do func(context.Context) error) (ran bool, err error)

const (
	blockSize  = 1000 // contacts examined for a block
	chunkSize  = 100  // messages recorded before their calls
	callers    = 16   // concurrent calls
	patience   = 5    // number of throttles by a network before the campaign pauses
	doubtAfter = 10 * time.Minute
	day        = 24 * time.Hour
	throttled  = time.Hour // pause after a throttle that does not clear
)

func as(campaign string, workspace uuid.UUID) commands.Request {
	return commands.Request{Actor: actor.Actor{Type: "campaign", ID: campaign, Workspace: workspace}, Workspace: workspace}
}

// sending is one job's part of a campaign.
type sending struct {
	*Dispatcher

	id        string
	number    int64
	req       commands.Request
	campaign  commands.Loaded[campaign.State]
	line      messagingcmd.CampaignChannel
	templates map[int64]template.State
	reads     commands.Reads // revisions of the campaign, its channel and its templates
	pace      *rate.Limiter
	budget    int64 // number of people to whom the network still allows messages; -1: unlimited
	putOff    int   // number of throttles in a row
	delivered int   // messages that the network accepted
	worked    bool  // this job has recorded that the network accepts messages
}

// Dispatch sends the due messages of a campaign, for some time. It reports whether there may be more to send.
func (d *Dispatcher) Dispatch(ctx context.Context, id string, within time.Duration) (more bool, err error) {
	l, err := commands.Load(ctx, d.Commands.Fresh(), campaign.Kind, id)
	if err != nil || l.State.Status != campaign.Active {
		return false, err
	}
	s := &sending{Dispatcher: d, id: id, number: event.Number(id), req: as(id, l.Workspace), campaign: l,
		pace: rate.NewLimiter(rate.Inf, 1), budget: -1}
	end := d.Commands.Now().Add(within)
	_, err = d.Alone(ctx, l.State.Channel, func(ctx context.Context) (err error) {
		more, err = s.run(ctx, end)
		return err
	})
	return more, err
}

// run opens the channel, freezes the audience, and sends until the end of the job's time.
func (s *sending) run(ctx context.Context, end time.Time) (more bool, err error) {
	if ready, err := s.open(ctx); err != nil || !ready {
		return false, err
	}
	if err := s.freezeAudience(ctx); err != nil {
		if errors.Is(err, errNotActive) {
			return false, nil
		}
		return false, err
	}
	for after := int64(0); ; {
		if goOn, err := s.read(ctx); err != nil || !goOn {
			return false, err
		}
		if s.putOff == 0 && !s.Commands.Now().Before(end) || ctx.Err() != nil { // wait out a throttle here: the next job would count from 0
			return true, nil //nolint:nilerr // there is more to send, and no time for it
		}
		work, err := s.work(ctx, after)
		switch {
		case err != nil:
			return false, err
		case len(work) == 0 && after > 0: // postponed messages are first
			after = 0
			continue
		case len(work) == 0:
			return false, s.finish(ctx)
		}
		after = work[len(work)-1].ID
		if goOn, err := s.send(ctx, work); err != nil || !goOn {
			return false, err
		}
	}
}

// read reads the campaign, its channel and its templates again. It returns false if the campaign is no longer active, the channel was
// deleted, or a template must not be sent.
func (s *sending) read(ctx context.Context) (goOn bool, err error) {
	s.reads = s.Commands.Reads()
	l, err := commands.Load(ctx, s.Commands.Fresh(), campaign.Kind, s.id)
	if err != nil || l.State.Status != campaign.Active || l.State.Run != s.campaign.State.Run {
		return false, err
	}
	id := strconv.FormatInt(s.line.Account.Channel, 10)
	of, err := commands.Load(ctx, s.Commands.Fresh(), channel.Kind, id)
	if err != nil {
		return false, err
	}
	if of.State.Type == "" {
		return false, s.lost(ctx)
	}
	s.reads = s.reads.And(campaign.Kind.Stream(s.id), l.Revision).And(channel.Kind.Stream(id), of.Revision)
	return s.approved(ctx)
}

// approved loads the templates. If one must not be sent, it pauses or ends the campaign and returns false.
func (s *sending) approved(ctx context.Context) (is bool, err error) {
	s.templates, s.reads, err = s.TemplatesOf(ctx, s.campaign.State.Plan, s.reads)
	if unsendable, is := errors.AsType[messagingcmd.UnsendableError](err); is {
		return false, s.halt(ctx, unsendable.Error(), nil, true)
	}
	return err == nil, err
}

// lost ends the campaign of a deleted channel.
func (s *sending) lost(ctx context.Context) error {
	_, err := commands.Handle(ctx, s.Commands, s.req, campaign.Kind, s.id,
		campaign.Advance{Run: s.campaign.State.Run, Fail: messagingcmd.ErrNoChannel.Error()})
	return err
}

// open loads the channel and its limits. If they forbid sending, it pauses or ends the campaign and returns false.
func (s *sending) open(ctx context.Context) (ready bool, err error) {
	s.line, err = s.Line(ctx, s.req.Workspace, s.campaign.State.Plan)
	if errors.Is(err, messagingcmd.ErrNoChannel) {
		return false, s.lost(ctx)
	}
	if err != nil {
		return false, err
	}
	if is, err := s.approved(ctx); err != nil || !is || s.line.Sandboxed {
		return is, err
	}
	if s.Rate > 0 {
		s.pace = rate.NewLimiter(rate.Limit(s.Rate), 1)
	}
	h, failed := s.AccountHealth(ctx, s.line)
	switch {
	case failed != nil && failed.Reason != network.HealthUnsupported && failed.Reason.Stops():
		return false, s.stopped(ctx, failed)
	case h.CanSend == "blocked", h.Quality == "red" && !s.campaign.State.Insisted:
		return false, s.halt(ctx, "The network lets the channel send nothing, or warns of its quality", nil, false)
	}
	most, limited := tier(h.MessagingLimit)
	if !limited {
		return true, nil
	}
	now := s.Commands.Now()
	called, first, err := s.Views.Called(ctx, nil, s.req.Workspace, s.line.Account.Channel, now.Add(-day))
	if s.budget = most - called; err == nil && s.budget <= 0 && first != nil {
		return false, s.halt(ctx, "The channel has written to as many people as its network allows in a day", new(first.Add(day)), false)
	}
	return true, err
}

// tier returns the people to whom a channel may write in a day. word is the network's name of the tier: TIER_250, TIER_2K, TIER_UNLIMITED.
func tier(word string) (people int64, limited bool) {
	digits, thousands := strings.CutSuffix(strings.TrimPrefix(word, "TIER_"), "K")
	people, err := strconv.ParseInt(digits, 10, 32)
	if thousands {
		people *= 1000
	}
	return people, err == nil && people > 0
}

// work returns the next messages. If it finds none, it reads again at the log's head, for newly frozen ones.
func (s *sending) work(ctx context.Context, after int64) ([]messagingview.Recipient, error) {
	limit, now := chunkSize, s.Commands.Now()
	if s.pace.Limit() != rate.Inf {
		limit = max(1, min(limit, int(s.pace.Limit()))) // so that consent and status are at most a second old
	}
	if s.budget >= 0 {
		limit = min(limit, int(s.budget))
	}
	if limit == 0 { // the budget is used up; the next job pauses
		return nil, nil
	}
	read := func(at *readmodels.At) ([]messagingview.Recipient, error) {
		return s.Views.CampaignWork(ctx, at, s.req.Workspace, s.number,
			messagingview.Due{Now: now, UnansweredSince: s.unansweredSince(now), After: after, Limit: limit})
	}
	work, err := read(nil)
	if err == nil && len(work) == 0 {
		work, err = readmodels.Complete(read)
	}
	return work, err
}

// errAllRefused ends a run in which the network refused every message, however few its recipients are (CONTRACT.md R10).
const errAllRefused messagingcmd.UnsendableError = "The network has refused every message: the list of recipients has the reasons"

// finish ends the run if all its messages are settled or all were refused. Otherwise the sweep checks again.
func (s *sending) finish(ctx context.Context) error {
	run := s.campaign.State.Run
	end, err := readmodels.Complete(func(at *readmodels.At) (messagingview.CampaignEnd, error) {
		return s.Views.CampaignEnd(ctx, at, s.req.Workspace, s.number, run)
	})
	switch {
	case err != nil:
	case end.Refused && s.campaign.State.Type != campaign.Triggered: // the network may accept the message to the next contact
		_, err = commands.Handle(ctx, s.Commands, s.req, campaign.Kind, s.id, campaign.Advance{Run: run, Fail: errAllRefused.Error()})
	case end.Settled:
		_, err = commands.Handle(ctx, s.Commands, s.req, campaign.Kind, s.id, campaign.Advance{Run: run, Done: true})
	}
	return err
}

// halt pauses the campaign, or ends it if the reason is final and nothing was sent.
func (s *sending) halt(ctx context.Context, why string, until *time.Time, final bool) error {
	c := campaign.Advance{Run: s.campaign.State.Run, Pause: why, Until: until}
	if final {
		stats, err := readmodels.Complete(func(at *readmodels.At) (messagingview.Campaign, error) {
			return s.Views.Campaign(ctx, at, s.req.Workspace, s.number)
		})
		if err != nil {
			return err
		}
		if stats.Stats.Sent == 0 && s.delivered == 0 {
			c.Fail = why
		}
	}
	_, err := commands.Handle(ctx, s.Commands, s.req, campaign.Kind, s.id, c)
	return err
}

// stopped pauses or ends the campaign after a failure of the whole channel.
func (s *sending) stopped(ctx context.Context, failed *network.Failure) error {
	if err := s.Learn(ctx, s.line, failed); err != nil {
		return err
	}
	var until *time.Time
	if failed.Reason.Retryable() && failed.Reason != network.Unconfigured {
		until = new(s.Commands.Now().Add(max(throttled, failed.After)))
	}
	final := failed.Reason == network.Credentials || failed.Reason == network.Unconfigured || failed.Reason == network.Refused
	return s.halt(ctx, failed.Error(), until, final)
}

// letter is a message that this process has claimed.
type letter struct {
	commands.StreamCommand[message.State]

	to   messagingview.Person
	call network.Message
}

// send claims messages, calls the network for the claimed ones, and records the results.
func (s *sending) send(ctx context.Context, work []messagingview.Recipient) (goOn bool, err error) {
	var letters []letter
	writing := s.Commands.Yield()
	defer writing.Rest(ctx)
	err = writing.Do(func() (err error) {
		letters, err = s.claim(ctx, work)
		return err
	})
	if err != nil || len(letters) == 0 {
		return err == nil, err
	}
	var (
		mu         sync.Mutex
		stop, pair *network.Failure
		content    int
		refused    = map[int]int{} // by the network's code
		early      int             // messages too soon after another one to the same person
		calls      errgroup.Group
	)
	calls.SetLimit(callers)
	settled := make([]commands.StreamCommand[message.State], len(letters))
	for i, l := range letters {
		settled[i] = l.StreamCommand
		mu.Lock()
		held := stop != nil
		mu.Unlock()
		if held || s.pace.Wait(ctx) != nil {
			settled[i].Command = message.RecordSendResult{Contact: l.to.ID, Failure: &network.Failure{Reason: network.CampaignStopped}}
			continue
		}
		calls.Go(func() error {
			said := s.Call(ctx, s.req, s.line, l.call, l.to.ID)
			settled[i].Command = said
			mu.Lock()
			defer mu.Unlock()
			switch f := said.Failure; {
			case f == nil:
				s.delivered++
			case f.Code == network.PairLimit: // the others need not wait
				early, pair = early+1, f
			case f.Reason.Stops() && (stop == nil || stop.Reason.Retryable()):
				stop = f
			case f.Reason == network.Content:
				content++
			case f.Reason == network.Refused:
				if refused[f.Code]++; refused[f.Code] == len(letters) && len(letters) >= patience { // the cause is not the recipients
					stop = f
				}
			}
			return nil
		})
	}
	_ = calls.Wait() // each has its own failure
	ctx = context.WithoutCancel(ctx)
	if err := writing.Do(func() error { return s.note(ctx, settled) }); err != nil {
		return false, err
	}
	if s.budget >= 0 {
		s.budget = max(0, s.budget-int64(len(letters)))
	}
	if early == len(letters) { // no other recipient is left
		stop = pair
	}
	switch {
	case content == len(letters) && content >= patience: // the template is wrong, not a value of one recipient
		return false, s.halt(ctx, "The network does not accept the template's messages", nil, true)
	case stop == nil:
		s.putOff = 0
		return true, s.works(ctx)
	case !stop.Reason.Retryable() || stop.Reason == network.Unconfigured || s.putOff == patience:
		return false, s.stopped(ctx, stop)
	}
	s.wait(ctx, stop)
	return true, nil
}

// works records that the channel's network accepts messages again, if the channel's stored health differs.
func (s *sending) works(ctx context.Context) error {
	if s.delivered == 0 || s.worked {
		return nil
	}
	s.worked = true
	return s.Learn(ctx, s.line, nil)
}

// wait pauses sending, longer each time.
func (s *sending) wait(ctx context.Context, stop *network.Failure) {
	pause := max(cmp.Or(s.Pause, time.Second)<<s.putOff, min(stop.After, sliceAtEnd/10))
	s.putOff++
	_ = signal.Sleep(ctx, pause)
}

// claim records that messages are about to be sent. It returns those that no other process has claimed. It leaves out those whose contact,
// campaign or channel has changed meanwhile.
func (s *sending) claim(ctx context.Context, work []messagingview.Recipient) ([]letter, error) {
	contacts := make([]int64, len(work))
	for i, w := range work {
		contacts[i] = w.Contact
	}
	people, err := readmodels.Complete(func(at *readmodels.At) (map[int64]messagingview.Person, error) {
		return s.Views.Persons(ctx, at, s.req.Workspace, contacts)
	})
	if err != nil {
		return nil, err
	}
	answered, err := s.answered(ctx, work, contacts)
	if err != nil {
		return nil, err
	}
	values, err := s.values(ctx, work)
	if err != nil {
		return nil, err
	}
	ones, letters := make([]commands.StreamCommand[message.State], len(work)), make([]letter, len(work))
	for i, w := range work {
		id := strconv.FormatInt(w.ID, 10)
		p := people[w.Contact]
		unwanted := !p.Reachable() || w.Step > 0 && answered[w.Contact]
		step := s.campaign.State.Sequence()[w.Step]
		filled, text := s.templates[step.TemplateID].Filled(step.TemplateParams, p.Name, p.Phone, values[w.ID]...)
		letters[i] = letter{to: p, call: network.Message{ID: message.Name(id), To: p.Phone, Text: text, Template: &filled}}
		switch {
		case w.State != "open":
			l, err := commands.Load(ctx, s.Commands.Fresh(), message.Kind, id)
			if err != nil {
				return nil, err
			}
			ones[i] = commands.StreamCommand[message.State]{Loaded: l, ID: id, Command: message.Resend{
				Contact: w.Contact, Unwanted: unwanted, Mute: cmp.Or(s.line.Account.Dialect, "cloud") != "cloud",
				Refused: w.State == "held" && l.Position < s.campaign.Position, // refused before a person resumed the campaign
			}}
		case unwanted:
			ones[i] = commands.Begins(id, message.Skip{Contact: w.Contact})
		default:
			ones[i] = commands.Begins(id, message.Queue{Contact: w.Contact,
				Draft: message.Draft{Channel: s.line.Account.Channel, To: p.Phone, Text: text, Template: step.TemplateID}})
		}
		if ones[i].Reads = s.reads; p.ID != 0 {
			ones[i].Reads = s.reads.And(contact.Kind.Stream(strconv.FormatInt(p.ID, 10)), p.Revision)
		}
	}
	done, err := commands.HandleEach(ctx, s.Commands, s.req, message.Kind, ones)
	if err != nil {
		return nil, err
	}
	var mine []letter
	for i, d := range done {
		if d.Changed && d.State.Status == message.Waiting {
			letters[i].StreamCommand = commands.StreamCommand[message.State]{Loaded: d.Loaded, ID: ones[i].ID}
			mine = append(mine, letters[i])
		}
	}
	return mine, nil
}

// answered returns the contacts that have replied since the run began. It returns nil if no message is a further step.
func (s *sending) answered(ctx context.Context, work []messagingview.Recipient, contacts []int64) (map[int64]bool, error) {
	if !slices.ContainsFunc(work, func(w messagingview.Recipient) bool { return w.Step > 0 }) {
		return nil, nil
	}
	return readmodels.Complete(func(at *readmodels.At) (map[int64]bool, error) {
		return s.Views.WroteSince(ctx, at, s.req.Workspace, s.line.Account.Channel, contacts, s.campaign.State.Started)
	})
}

// note records the results of calls. If a receipt was recorded first, the command decides again on the newer state.
func (s *sending) note(ctx context.Context, settled []commands.StreamCommand[message.State]) error {
	if err := commands.HandleAll(ctx, s.Commands, s.req, message.Kind, settled); err != nil {
		return fmt.Errorf("record results of a campaign's messages: %w", err)
	}
	for _, one := range settled {
		if c, is := one.Command.(message.RecordSendResult); is && c.Failure != nil {
			if err := s.OptedOut(ctx, s.req, c.Contact, c.Failure.Code); err != nil {
				return err
			}
		}
	}
	return nil
}
