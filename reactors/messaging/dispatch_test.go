package messaging_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"bahi/commands"
	flows "bahi/commands/messaging"
	"bahi/domain/messaging/campaign"
	"bahi/domain/messaging/channel"
	"bahi/domain/messaging/contact"
	"bahi/domain/messaging/network"
	"bahi/domain/patch"
	"bahi/internal/app/apptest"
	"bahi/reactors"
	"bahi/reactors/messaging"
	views "bahi/readmodels/messaging"
)

func TestMain(m *testing.M) { apptest.Main(m) }

// counted is a network that counts what it is sent.
type counted struct {
	flows.Networks

	mu     sync.Mutex
	sent   map[string]int // by message
	answer func(nth int) error
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

// desk is a dispatcher of a test's own, whose jobs nobody else does: its campaigns are on a channel that the shared system finds locked.
type desk struct {
	*messaging.Dispatcher

	t    *testing.T
	o    *apptest.Office
	net  *counted
	req  commands.Request
	clip views.Template
}

func open(t *testing.T, contacts int) *desk {
	t.Helper()
	o := apptest.Share(t)
	d := &desk{t: t, o: o, net: &counted{sent: map[string]int{}}, req: commands.Request{Workspace: uuid.MustParse(o.Home)}}
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
	var all []views.Template
	c.GET("/api/chat/templates").Status(200).JSON(&all)
	d.clip = all[0]
	var adding errgroup.Group
	adding.SetLimit(8)
	for i := range contacts {
		adding.Go(func() error {
			out, err := flows.AddContact(t.Context(), o.Sys.Commands, d.req, contact.Add{Name: "x", Reach: contact.Reach{Phone: patch.Set(fmt.Sprintf("9812%06d", 100001+i))}})
			if err == nil {
				_, err = flows.EditContact(t.Context(), o.Sys.Commands, d.req, contact.Edit{ID: out.ID, OptIn: patch.Set(true)})
			}
			return err
		})
	}
	require.NoError(t, adding.Wait())
	return d
}

// begin starts a campaign, of which the shared system's own jobs send nothing.
func (d *desk) begin() (id string) {
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
	out, err := d.Create(d.t.Context(), d.req, campaign.Create{Name: "x", Type: "broadcast", TemplateID: d.clip.ID, Audience: "all"})
	require.NoError(d.t, err)
	_, err = commands.Handle(d.t.Context(), d.Commands, d.req, campaign.Kind, out.ID, campaign.Send{Now: time.Now().UTC()})
	require.NoError(d.t, err)
	return out.ID
}

func (d *desk) stats(id string) views.Campaign {
	d.t.Helper()
	n, err := strconv.ParseInt(id, 10, 64)
	require.NoError(d.t, err)
	c, err := d.Views.Campaign(d.t.Context(), d.req.Workspace, n)
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
		_, err := d.Dispatch(t.Context(), id, time.Minute)
		require.NoError(t, err)
		return d.stats(id).Status == campaign.Completed
	}, time.Minute, 10*time.Millisecond)
	require.Equal(t, 150, d.net.total())
	require.Len(t, d.net.sent, 150)
	require.Equal(t, views.CampaignStats{Total: 150, Sent: 150}, d.stats(id).Stats)
}

func TestAMessageInDoubtIsSentOnceMore(t *testing.T) {
	t.Parallel()
	d := open(t, 3)
	id := d.begin()
	d.net.answer = func(int) error { return &network.Failure{Reason: network.Unknown} }
	_, err := d.Dispatch(t.Context(), id, time.Minute)
	require.NoError(t, err)
	require.Equal(t, views.CampaignStats{Total: 3}, d.stats(id).Stats)
	_, err = d.Dispatch(t.Context(), id, time.Minute)
	require.NoError(t, err)
	require.Equal(t, 3, d.net.total(), "ten minutes are not over")
	d.Doubt = time.Nanosecond
	_, err = d.Dispatch(t.Context(), id, time.Minute) // once more, and again in doubt: they are given up
	require.NoError(t, err)
	require.Equal(t, 6, d.net.total())
	require.Equal(t, views.CampaignStats{Total: 3, Failed: 3}, d.stats(id).Stats)
	require.Equal(t, campaign.Completed, d.stats(id).Status)
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
			people, err := d.Views.Audience(t.Context(), d.req.Workspace, 0, 0, 200)
			if err != nil {
				return errLast
			}
			_, err = flows.EditContact(t.Context(), d.Commands, d.req, contact.Edit{ID: strconv.FormatInt(people[120].ID, 10), OptIn: patch.Set(false)})
			return err
		}
		return nil
	}
	_, err := d.Dispatch(t.Context(), id, time.Minute)
	require.NoError(t, err)
	require.Equal(t, views.CampaignStats{Total: 129, Sent: 129, Skipped: 1}, d.stats(id).Stats)
	require.Equal(t, 129, d.net.total())
}

func TestADeletedChannelIsNoLine(t *testing.T) {
	t.Parallel()
	d := open(t, 1)
	id := d.begin()
	_, err := d.Delete(t.Context(), d.req, strconv.FormatInt(d.clip.ChannelID, 10))
	require.NoError(t, err)
	_, err = d.Dispatch(t.Context(), id, time.Minute)
	require.NoError(t, err)
	require.Equal(t, "The channel was deleted", *d.stats(id).Reason)
	require.Zero(t, d.net.total())
	_, err = d.Line(t.Context(), d.req.Workspace, campaign.Plan{Channel: 1 << 40})
	require.ErrorAs(t, err, new(flows.NoLineError))
	require.NotErrorIs(t, err, channel.ErrNotFound)
}
