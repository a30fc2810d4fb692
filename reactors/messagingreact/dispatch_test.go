package messagingreact_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"bahi/commands"
	"bahi/commands/messagingcmd"
	"bahi/domain/messaging/campaign"
	"bahi/domain/messaging/channel"
	"bahi/domain/messaging/contact"
	"bahi/domain/messaging/network"
	"bahi/domain/patch"
	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/reactors"
	"bahi/reactors/messagingreact"
	"bahi/readmodels/messagingview"
)

func TestMain(m *testing.M) { apptest.Main(m) }

// counted is a network that counts its messages.
type counted struct {
	messagingcmd.Networks

	mu     sync.Mutex
	sent   map[string]int // by message
	answer func(nth int) error
	lists  string // the status of all templates; empty: their own
	health network.Health
	failed error // error of requests for the health
}

// Health implements [messagingcmd.Networks].
func (n *counted) Health(context.Context, network.Account) (network.Health, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.health, n.failed
}

// Templates implements [messagingcmd.Networks].
func (n *counted) Templates(ctx context.Context, a network.Account) ([]network.Template, error) {
	all, err := n.Networks.Templates(ctx, a)
	all = slices.Clone(all) // the sandbox has one list for all
	for i := range all {
		all[i].Status = cmp.Or(n.lists, all[i].Status)
	}
	return all, err
}

// says sets the channel health that the network reports.
func (n *counted) says(h network.Health, failed error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.health, n.failed = h, failed
}

func (n *counted) Send(_ context.Context, _ network.Account, m network.Message) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.sent[m.ID]++
	if n.answer != nil {
		if err := n.answer(len(n.sent)); err != nil {
			return "", err
		}
	}
	return "w." + m.ID, nil
}

func (n *counted) total() (sum int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, times := range n.sent {
		sum += times
	}
	return sum
}

type idle struct{}

func (idle) Add(context.Context, reactors.Args) error { return nil }

// fixture is a test's own dispatcher. Its campaigns are on a channel that the shared system finds locked, so no other process sends them.
type fixture struct {
	*messagingreact.Dispatcher

	t    *testing.T
	o    *apptest.Server
	net  *counted
	req  commands.Request
	clip messagingview.Template
}

func open(t *testing.T, contacts int) *fixture {
	t.Helper()
	o := apptest.Share(t)
	d := &fixture{t: t, o: o, net: &counted{sent: map[string]int{}}, req: commands.Request{Workspace: uuid.MustParse(o.Home)}}
	copied := *o.Sys.Campaigns
	flow, messages, channels := *copied.Campaigns, *copied.Messages, *copied.Messages.Channels
	d.net.Networks = channels.Networks
	channels.Networks = d.net
	messages.Channels, flow.Messages = &channels, &messages
	copied.Campaigns, copied.Queue, copied.Pause = &flow, idle{}, time.Millisecond
	copied.Alone = func(ctx context.Context, _ int64, do func(context.Context) error) (bool, error) { return true, do(ctx) }
	d.Dispatcher = &copied

	c := o.Bearer(o.Key(o.Home, `{"messaging":"write"}`).Key)
	c.POST("/api/channels", `{"name":"Sales","type":"chat"}`).Status(201)
	all := apitest.Read[[]messagingview.Template](c.GET("/api/chat/templates").Status(200))
	d.clip = all[0]
	var adding errgroup.Group
	adding.SetLimit(8)
	for i := range contacts {
		adding.Go(func() error {
			out, err := messagingcmd.AddContact(t.Context(), o.Sys.Commands, d.req,
				contact.Add{Name: "x", Addresses: contact.Addresses{Phone: patch.Set(fmt.Sprintf("9812%06d", 100001+i))}})
			if err == nil {
				_, err = messagingcmd.EditContact(t.Context(), o.Sys.Commands, d.req, contact.Edit{ID: out.ID, OptIn: patch.Set(true)})
			}
			return err
		})
	}
	require.NoError(t, adding.Wait())
	return d
}

// begin starts a campaign that the shared system's own jobs do not send.
func (d *fixture) begin(steps ...campaign.Step) (id string) {
	d.t.Helper()
	locked, release := make(chan struct{}), make(chan struct{})
	go func() {
		_, _ = d.o.Sys.Campaigns.Alone(context.WithoutCancel(d.t.Context()), d.clip.ChannelID, func(context.Context) error {
			close(locked)
			<-release
			return nil
		})
	}()
	<-locked
	d.t.Cleanup(func() { close(release) })
	return d.start(steps...)
}

// start starts a campaign on a channel that is locked: a broadcast, or a drip of steps.
func (d *fixture) start(steps ...campaign.Step) (id string) {
	d.t.Helper()
	plan := campaign.Create{Name: "x", Type: "broadcast", TemplateID: d.clip.ID, Audience: "all"}
	if len(steps) > 0 {
		plan.Type, plan.Steps = "drip", steps
	}
	out, err := d.Create(d.t.Context(), d.req, plan)
	require.NoError(d.t, err)
	_, err = commands.Handle(d.t.Context(), d.Commands, d.req, campaign.Kind, out.ID, campaign.Send{Now: time.Now().UTC()})
	require.NoError(d.t, err)
	return out.ID
}

func (d *fixture) dispatch(id string) {
	d.t.Helper()
	_, err := d.Dispatch(d.t.Context(), id, time.Minute)
	require.NoError(d.t, err)
}

func (d *fixture) stats(id string) messagingview.Campaign {
	d.t.Helper()
	n, err := strconv.ParseInt(id, 10, 64)
	require.NoError(d.t, err)
	c, err := d.Views.Campaign(d.t.Context(), nil, d.req.Workspace, n)
	require.NoError(d.t, err)
	return c
}

func TestSeveralNodesSendEachMessageOnce(t *testing.T) {
	t.Parallel()
	d := open(t, 150)
	id := d.begin()
	var nodes errgroup.Group
	for range 4 { // without the lock that keeps them apart
		nodes.Go(func() error { _, err := d.Dispatch(t.Context(), id, time.Minute); return err })
	}
	require.NoError(t, nodes.Wait())
	require.Eventually(t, func() bool {
		d.dispatch(id)
		return d.stats(id).Status == campaign.Completed
	}, time.Minute, 10*time.Millisecond)
	require.Equal(t, 150, d.net.total())
	require.Len(t, d.net.sent, 150)
	require.Equal(t, messagingview.CampaignStats{Total: 150, Sent: 150}, d.stats(id).Stats)
}

func TestAMessageInDoubtIsSentOnceMore(t *testing.T) {
	t.Parallel()
	d := open(t, 3)
	id := d.begin()
	d.net.answer = func(int) error { return &network.Failure{Reason: network.Unknown} }
	d.dispatch(id)
	require.Equal(t, messagingview.CampaignStats{Total: 3}, d.stats(id).Stats)
	d.dispatch(id)
	require.Equal(t, 3, d.net.total(), "ten minutes are not over")
	d.Doubt = time.Nanosecond
	d.dispatch(id) // the second call has no known result either, so the messages fail
	require.Equal(t, 6, d.net.total())
	require.Equal(t, messagingview.CampaignStats{Total: 3, Failed: 3}, d.stats(id).Stats)
	require.Equal(t, campaign.Completed, d.stats(id).Status)
}

func TestAStepWaitsForTheOneBefore(t *testing.T) {
	t.Parallel()
	d := open(t, 3)
	id := d.begin(campaign.Step{TemplateID: d.clip.ID}, campaign.Step{TemplateID: d.clip.ID})
	d.net.answer = func(int) error { return &network.Failure{Reason: network.Unknown} }
	d.dispatch(id)
	require.Equal(t, 3, d.net.total(), "the second step is due, but the result of the first is unknown")
	d.net.answer, d.Doubt = nil, time.Nanosecond
	d.dispatch(id)
	require.Equal(t, 9, d.net.total(), "the first step once more, then the second")
	require.Equal(t, messagingview.CampaignStats{Total: 6, Sent: 6}, d.stats(id).Stats)
	require.Equal(t, campaign.Completed, d.stats(id).Status)
}

// A recipient of a moment ago waits, and no other recipient does.
func TestAPersonWhoHasToWaitHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	d := open(t, 40)
	id := d.begin()
	refused := 0
	d.net.answer = func(int) error {
		if refused++; refused < 3 { // the first two, or the first one twice
			return &network.Failure{Reason: network.Throttled, Code: network.PairLimit}
		}
		return nil
	}
	d.dispatch(id)
	require.Equal(t, messagingview.CampaignStats{Total: 40, Sent: 40}, d.stats(id).Stats)
	require.Equal(t, campaign.Completed, d.stats(id).Status)
	require.Equal(t, 42, d.net.total())
	for e := range d.o.Events(0) {
		number, _ := strings.CutPrefix(e.Stream, "message-")
		if _, ours := d.net.sent["msg_"+number]; ours && e.Type == "MessageFailed" {
			require.NotContains(t, string(e.Data), `"held"`, "it was sent with the others")
		}
	}
	// A recipient whom the network never accepts pauses the campaign in the end, like every throttle that does not clear.
	d.net.answer = func(int) error { return &network.Failure{Reason: network.Throttled, Code: network.PairLimit} }
	id = d.start()
	d.dispatch(id)
	require.Equal(t, campaign.Stopped, d.stats(id).Status)
	require.NotNil(t, d.stats(id).PausedUntil)
}

// An aggregator omits our ids from its receipts, so two copies of a message could not be distinguished.
func TestAnAggregatorsMessageInDoubtIsNotSentAgain(t *testing.T) {
	t.Parallel()
	d := open(t, 3)
	c := d.o.Bearer(d.o.Key(d.o.Home, `{"messaging":"write"}`).Key)
	c.PATCH(fmt.Sprintf("/api/channels/%d", d.clip.ChannelID), `{"settings":{"dialect":"envelope_v2","appName":"MuteApp"}}`).Status(200)
	id := d.begin()
	d.net.answer = func(int) error { return &network.Failure{Reason: network.Unknown} }
	d.Doubt = time.Nanosecond
	require.Eventually(t, func() bool {
		d.dispatch(id)
		return d.stats(id).Status == campaign.Completed
	}, time.Minute, 10*time.Millisecond)
	require.Equal(t, 3, d.net.total())
	require.Equal(t, messagingview.CampaignStats{Total: 3, Failed: 3}, d.stats(id).Stats)
}

func TestWhoLeavesIsPassedOver(t *testing.T) {
	t.Parallel()
	d := open(t, 130)
	id := d.begin()
	errLast := errors.New("the process dies")
	left := false
	d.net.answer = func(nth int) error {
		if nth == 1 && !left { // while the first hundred are sent
			left = true
			people, err := d.Views.Audience(t.Context(), nil, d.req.Workspace, 0, 0, 200)
			if err != nil {
				return errLast
			}
			_, err = messagingcmd.EditContact(t.Context(), d.Commands, d.req,
				contact.Edit{ID: strconv.FormatInt(people[120].ID, 10), OptIn: patch.Set(false)})
			return err
		}
		return nil
	}
	d.dispatch(id)
	require.Equal(t, messagingview.CampaignStats{Total: 129, Sent: 129, Skipped: 1}, d.stats(id).Stats)
	require.Equal(t, 129, d.net.total())
}

// If another contact absorbs a contact between two steps, it gets the remaining steps.
func TestADripFollowsAMergedContact(t *testing.T) {
	t.Parallel()
	d := open(t, 0)
	c := d.o.Bearer(d.o.Key(d.o.Home, `{"messaging":"write"}`).Key)
	other := apitest.Read[messagingview.Channel](c.POST("/api/channels", `{"name":"Other","type":"chat"}`).Status(201))
	wrote := func(id, from string) error {
		_, err := d.Messages.Receive(context.WithoutCancel(t.Context()), messagingcmd.InboundMessage{
			Sender: messagingcmd.Sender{UserID: "IN.1", From: from}, Channel: other.ID, Text: "hello", ProviderID: id, SentAt: time.Now(),
		})
		return err
	}
	require.NoError(t, wrote("a", "")) // the older contact, without a phone
	out, err := messagingcmd.AddContact(t.Context(), d.Commands, d.req,
		contact.Add{Name: "x", Addresses: contact.Addresses{Phone: patch.Set("9812345678")}})
	require.NoError(t, err)
	all, err := d.Views.Audience(t.Context(), nil, d.req.Workspace, 0, 0, 9)
	require.NoError(t, err)
	require.Len(t, all, 2)
	for _, p := range all {
		_, err := messagingcmd.EditContact(t.Context(), d.Commands, d.req, contact.Edit{ID: strconv.FormatInt(p.ID, 10), OptIn: patch.Set(true)})
		require.NoError(t, err)
	}
	d.net.answer = func(nth int) error {
		if nth > 1 {
			return nil
		}
		return wrote("b", "919812345678")
	}
	id := d.begin(campaign.Step{TemplateID: d.clip.ID}, campaign.Step{TemplateID: d.clip.ID})
	d.dispatch(id)
	gone, err := commands.Load(t.Context(), d.Commands.Fresh(), contact.Kind, out.ID)
	require.NoError(t, err)
	require.Equal(t, all[0].ID, gone.State.Into)
	require.Equal(t, messagingview.CampaignStats{Total: 2, Sent: 2, Skipped: 1}, d.stats(id).Stats)
	require.Equal(t, 2, d.net.total())
}

func TestACampaignPausesForWhatItsNetworkSaysAndGoesOnBySend(t *testing.T) {
	t.Parallel()
	d := open(t, 6)
	d.Messages.Sandboxed = func(network.Account) bool { return false } // no process asks for its health
	d.Rate = 0
	id := d.begin()
	goOn := func() {
		t.Helper()
		d.send(id)
	}
	dispatched := func() messagingview.Campaign {
		t.Helper()
		for range 2 { // a job with a used-up budget ends, and the next one detects that
			d.dispatch(id)
		}
		return d.stats(id)
	}
	paused := func(why string, sent int64) messagingview.Campaign {
		t.Helper()
		k := dispatched()
		require.Equal(t, []any{campaign.Stopped, why, messagingview.CampaignStats{Total: 6 * min(1, sent), Sent: sent}, int(sent)},
			[]any{k.Status, *k.Reason, k.Stats, d.net.total()})
		return k
	}
	const refused, most = "The network lets the channel send nothing, or warns of its quality",
		"The channel has written to as many people as its network allows in a day"
	d.net.says(network.Health{CanSend: "available", Quality: "red"}, nil)
	require.Nil(t, paused(refused, 0).PausedUntil)
	goOn() // sending again overrides the warning
	d.net.says(network.Health{CanSend: "blocked"}, nil)
	paused(refused, 0)
	goOn()
	d.net.says(network.Health{}, &network.Failure{Reason: network.Restricted, Code: 368})
	require.Nil(t, paused("The network has restricted the account (368)", 0).PausedUntil)
	goOn()
	d.net.says(network.Health{CanSend: "available", Quality: "red", MessagingLimit: "TIER_4"}, nil)
	k := paused(most, 4)
	require.WithinDuration(t, time.Now().Add(24*time.Hour), *k.PausedUntil, time.Hour)
	goOn()
	paused(most, 4)
	goOn()
	d.net.says(network.Health{CanSend: "available", MessagingLimit: "TIER_1K"}, nil)
	k = dispatched()
	require.Equal(t, []any{campaign.Completed, messagingview.CampaignStats{Total: 6, Sent: 6}, 6}, []any{k.Status, k.Stats, d.net.total()})
	for m, times := range d.net.sent {
		require.Equal(t, 1, times, m)
	}

	// Without credentials a campaign that has sent nothing fails, and can continue later.
	id = d.start()
	d.net.says(network.Health{}, &network.Failure{Reason: network.Credentials, Code: 190})
	require.Equal(t, campaign.StatusFailed, dispatched().Status)
	goOn()
	d.net.says(network.Health{CanSend: "available"}, nil)
	require.Equal(t, messagingview.CampaignStats{Total: 6, Sent: 6}, dispatched().Stats)
}

func TestADeletedChannelIsNoLine(t *testing.T) {
	t.Parallel()
	d := open(t, 1)
	id := d.begin()
	_, err := d.Delete(t.Context(), d.req, strconv.FormatInt(d.clip.ChannelID, 10))
	require.NoError(t, err)
	d.dispatch(id)
	require.Equal(t, "The channel was deleted", *d.stats(id).Reason)
	require.Zero(t, d.net.total())

	// This holds even if the campaign is paused, has sent something, or is sent again.
	d = open(t, 6)
	d.Messages.Sandboxed = func(network.Account) bool { return false }
	d.net.says(network.Health{CanSend: "available", MessagingLimit: "TIER_4"}, nil)
	id = d.begin()
	for range 2 {
		d.dispatch(id)
	}
	require.Equal(t, []any{campaign.Stopped, int64(4)}, []any{d.stats(id).Status, d.stats(id).Stats.Sent})
	_, err = d.Delete(t.Context(), d.req, strconv.FormatInt(d.clip.ChannelID, 10))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return d.stats(id).Status == campaign.StatusFailed }, time.Minute, 10*time.Millisecond)
	d.send(id)
	d.dispatch(id)
	require.Equal(t, campaign.StatusFailed, d.stats(id).Status)
	_, err = d.Line(t.Context(), d.req.Workspace, campaign.Plan{Channel: 1 << 40})
	require.ErrorAs(t, err, new(messagingcmd.UnsendableError))
	require.NotErrorIs(t, err, channel.ErrNotFound)
}

func TestATemplateThatIsNoLongerApprovedStopsTheCampaign(t *testing.T) {
	t.Parallel()
	d := open(t, 1)
	id := d.begin()
	d.net.lists = "PAUSED"
	d.Campaigns.Templates = &messagingcmd.Templates{Channels: d.Messages.Channels, Listed: d.Views} // as in a process that has not asked yet
	d.dispatch(id)
	c := d.stats(id)
	require.Equal(t, []string{campaign.StatusFailed, "The template " + d.clip.Name + " is not approved: PAUSED"},
		[]string{c.Status, *c.Reason})
	require.Zero(t, d.net.total())
}
