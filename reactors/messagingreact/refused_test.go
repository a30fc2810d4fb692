package messagingreact_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/commands/messagingcmd"
	"bahi/domain/messaging/campaign"
	"bahi/domain/messaging/channel"
	"bahi/domain/messaging/contact"
	"bahi/domain/messaging/network"
	"bahi/domain/patch"
	"bahi/eventstore"
	"bahi/internal/test/pgtest"
	"bahi/readmodels"
	"bahi/readmodels/messagingview"
)

func (d *fixture) recipients(id, status string) []messagingview.CampaignRecipient {
	d.t.Helper()
	n, err := strconv.ParseInt(id, 10, 64)
	require.NoError(d.t, err)
	all, total, err := d.Views.CampaignRecipients(d.t.Context(), nil, d.req.Workspace, readmodels.Page{Number: 1, Size: 200}, n,
		messagingview.RecipientFilter{Status: status})
	require.NoError(d.t, err)
	require.Len(d.t, all, int(total))
	return all
}

// send makes a campaign continue, as a person does.
func (d *fixture) send(id string) {
	d.t.Helper()
	_, err := commands.Handle(d.t.Context(), d.Commands, d.req, campaign.Kind, id, campaign.Send{Now: time.Now().UTC()})
	require.NoError(d.t, err)
}

// A campaign fails if its network refuses every message, however few there are and for whatever reason. Sending it again retries each of
// them.
func TestACampaignOfWhichEveryMessageIsRefusedFails(t *testing.T) {
	t.Parallel()
	for audience, reason := range map[int]network.Reason{1: network.Recipient, 3: network.Refused, 4: network.WindowClosed,
		6: network.Content} {
		d := open(t, audience)
		d.Messages.Sandboxed = func(network.Account) bool { return false }
		id := d.begin()
		d.net.answer = func(int) error { return &network.Failure{Reason: reason, Code: 132012, Title: "No"} }
		d.dispatch(id)
		require.Equal(t, campaign.StatusFailed, d.stats(id).Status, "%d recipients", audience)
		require.NotEmpty(t, *d.stats(id).Reason)
		require.EqualValues(t, audience, d.stats(id).Stats.Failed)
		failed := d.recipients(id, "failed")
		require.Len(t, failed, audience)
		require.Equal(t, []string{(&network.Failure{Reason: reason, Code: 132012}).Error(), "No", "x"},
			[]string{*failed[0].Reason, *failed[0].Error.Title, *failed[0].Name})

		d.net.answer = nil
		d.send(id)
		require.EqualValues(t, 0, d.stats(id).Stats.Failed, "they are open again")
		require.Len(t, d.recipients(id, "open"), audience)
		d.dispatch(id)
		require.Equal(t, campaign.Completed, d.stats(id).Status)
		require.Equal(t, messagingview.CampaignStats{Total: int64(audience), Sent: int64(audience)}, d.stats(id).Stats)
		require.Equal(t, 2*audience, d.net.total())
	}
}

func TestOneRefusedTextStopsNoCampaign(t *testing.T) {
	t.Parallel()
	d := open(t, 3)
	id := d.begin()
	d.net.answer = func(nth int) error {
		if nth == 2 {
			return &network.Failure{Reason: network.Content}
		}
		return nil
	}
	d.dispatch(id)
	require.Equal(t, campaign.Completed, d.stats(id).Status)
	require.Equal(t, messagingview.CampaignStats{Total: 3, Sent: 2, Failed: 1}, d.stats(id).Stats)
	require.Len(t, d.recipients(id, "sent"), 2)
	require.Len(t, d.recipients(id, ""), 3)
}

// Three steps are due since an outage. The second one is sent. The third one comes the usual number of days later.
func TestAStepKeepsItsDelayAfterAnOutage(t *testing.T) {
	t.Parallel()
	d := open(t, 2)
	id := d.begin(campaign.Step{TemplateID: d.clip.ID}, campaign.Step{TemplateID: d.clip.ID, DelayHours: 24},
		campaign.Step{TemplateID: d.clip.ID, DelayHours: 24})
	dispatch := func() messagingview.CampaignStats {
		d.dispatch(id)
		return d.stats(id).Stats
	}
	table := pgtest.Value[string](t, d.o.Sys.Pool, `select schemaname || '.recipient' from pg_tables where tablename = 'recipient'`)
	pass := func(hours int) {
		pgtest.Exec(t, d.o.Sys.Pool, fmt.Sprintf(`update %[1]s set due_at = due_at - interval '%[2]d hours',
			called_at = called_at - interval '%[2]d hours'
			where campaign_id = %[3]s`, table, hours, id))
	}
	require.Equal(t, messagingview.CampaignStats{Total: 6, Sent: 2}, dispatch())
	pass(100)
	require.Equal(t, messagingview.CampaignStats{Total: 6, Sent: 4}, dispatch())
	pass(23)
	require.Equal(t, messagingview.CampaignStats{Total: 6, Sent: 4}, dispatch())
	pass(1)
	require.Equal(t, messagingview.CampaignStats{Total: 6, Sent: 6}, dispatch())
}

// Postponed messages wait: no list shows them as failed.
func TestAMessageThatWaitsHasNotFailed(t *testing.T) {
	t.Parallel()
	d := open(t, 3)
	d.Messages.Sandboxed = func(network.Account) bool { return false }
	id := d.begin()
	d.net.answer = func(int) error { return &network.Failure{Reason: network.Restricted, Code: 368} }
	d.dispatch(id)
	require.Equal(t, campaign.Stopped, d.stats(id).Status)
	require.Equal(t, messagingview.CampaignStats{Total: 3}, d.stats(id).Stats)
	require.Empty(t, d.recipients(id, "failed"))
	for _, r := range d.recipients(id, "open") {
		talk, err := d.Views.Messages(t.Context(), nil, d.req.Workspace, r.ContactID, 0, 9)
		require.NoError(t, err)
		require.Len(t, talk, 1)
		require.Equal(t, "queued", talk[0].Status)
	}
	_, err := commands.Handle(t.Context(), d.Commands, d.req, campaign.Kind, id, campaign.Cancel{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		require.NoError(t, d.RunDue(t.Context(), time.Now()))
		return d.stats(id).Stats == messagingview.CampaignStats{Skipped: 3}
	}, time.Minute, 10*time.Millisecond)
	for _, r := range d.recipients(id, "skipped") {
		talk, err := d.Views.Messages(t.Context(), nil, d.req.Workspace, r.ContactID, 0, 9)
		require.NoError(t, err)
		require.Equal(t, []string{"failed", "campaign_passed_over"}, []string{talk[0].Status, talk[0].Error.Code})
	}
}

// A channel with a wrong sender id is refused whatever it sends: its campaign must not use up the whole audience.
func TestACampaignWhoseChannelIsRefusedStops(t *testing.T) {
	t.Parallel()
	d := open(t, 12)
	d.Messages.Sandboxed = func(network.Account) bool { return false }
	d.Rate = 6
	id := d.begin()
	d.net.answer = func(int) error { return &network.Failure{Reason: network.Refused, Code: 33} }
	state := func() (status, of string) {
		t.Helper()
		d.dispatch(id)
		l, err := commands.Load(t.Context(), d.Commands.Fresh(), channel.Kind, strconv.FormatInt(d.clip.ChannelID, 10))
		require.NoError(t, err)
		return d.stats(id).Status, l.State.Status
	}
	status, of := state()
	require.Equal(t, []string{campaign.StatusFailed, channel.Failed}, []string{status, of})
	require.Equal(t, "The network refused the request (33)", *d.stats(id).Reason)
	require.Equal(t, messagingview.CampaignStats{Total: 12, Failed: 6}, d.stats(id).Stats)

	d.net.answer = nil
	d.send(id)
	status, of = state()
	require.Equal(t, []string{campaign.Completed, channel.Connected}, []string{status, of}, "and the channel's limits are recorded")
	require.Equal(t, messagingview.CampaignStats{Total: 12, Sent: 12}, d.stats(id).Stats)
}

// RunDue reads the campaigns of all workspaces, so these two tests wait for each other.
func TestWhatIsLeftWithANetworkIsSettled(t *testing.T) {
	t.Parallel()
	t.Run("of a cancelled campaign", cancelled)
	t.Run("of a campaign that has lost its channel", unchannelled)
}

func cancelled(t *testing.T) {
	t.Helper()
	d := open(t, 3)
	id := d.begin()
	d.net.answer = func(int) error { return &network.Failure{Reason: network.Unknown} }
	d.dispatch(id)
	_, err := commands.Handle(t.Context(), d.Commands, d.req, campaign.Kind, id, campaign.Cancel{})
	require.NoError(t, err)
	require.NoError(t, d.RunDue(t.Context(), time.Now()))
	require.Equal(t, messagingview.CampaignStats{Total: 3}, d.stats(id).Stats, "a receipt may come for ten minutes")
	d.Doubt = time.Nanosecond
	require.Eventually(t, func() bool { // its reads may lag behind
		return d.RunDue(t.Context(), time.Now()) == nil && d.stats(id).Stats == messagingview.CampaignStats{Total: 3, Failed: 3}
	}, time.Minute, 10*time.Millisecond)
	require.Equal(t, 3, d.net.total(), "nothing is sent again")
}

func unchannelled(t *testing.T) {
	t.Helper()
	d := open(t, 7)
	d.Messages.Sandboxed = func(network.Account) bool { return false }
	d.Rate = 3
	id := d.begin()
	d.net.answer = func(nth int) error {
		if nth == 3 { // during the third call, the last of the first batch
			_, err := d.Delete(t.Context(), d.req, strconv.FormatInt(d.clip.ChannelID, 10))
			require.NoError(t, err)
		}
		return &network.Failure{Reason: network.Unknown}
	}
	d.dispatch(id)
	require.Eventually(t, func() bool { return d.stats(id).Status == campaign.StatusFailed }, time.Minute, 10*time.Millisecond)
	called := int64(d.net.total())
	require.Less(t, called, int64(7))
	require.NoError(t, d.RunDue(t.Context(), time.Now()))
	require.Equal(t, messagingview.CampaignStats{Total: 7}, d.stats(id).Stats, "a receipt may come for ten minutes")
	d.Doubt = time.Nanosecond
	require.Eventually(t, func() bool {
		return d.RunDue(t.Context(), time.Now()) == nil && d.stats(id).Stats == messagingview.CampaignStats{Total: 7, Failed: called}
	}, time.Minute, 10*time.Millisecond)
	require.NoError(t, d.RunDue(t.Context(), time.Now()))
	require.Equal(t, messagingview.CampaignStats{Total: 7, Failed: called}, d.stats(id).Stats, "the others stay open")
	require.EqualValues(t, called, d.net.total(), "nothing is sent again")
}

// An unreachable network asks for longer pauses than a job has time for.
func TestACampaignThatIsPutOffPausesAlsoIfThatTakesLongerThanAJob(t *testing.T) {
	t.Parallel()
	d := open(t, 12)
	d.Messages.Sandboxed = func(network.Account) bool { return false }
	id := d.begin()
	d.net.answer = func(int) error { return &network.Failure{Reason: network.Unreached, After: 300 * time.Millisecond} }
	require.Eventually(t, func() bool { // the first job may have time only for the audience
		_, err := d.Dispatch(t.Context(), id, time.Second)
		require.NoError(t, err)
		return d.stats(id).Status != campaign.Active
	}, time.Minute, time.Millisecond)
	k := d.stats(id)
	require.Equal(t, campaign.Stopped, k.Status)
	require.Equal(t, "The network cannot be reached", *k.Reason)
	require.WithinDuration(t, time.Now().Add(time.Hour), *k.PausedUntil, 10*time.Minute)
	require.Equal(t, messagingview.CampaignStats{Total: 12}, k.Stats)
}

// interruptedLog is a log in which something else happens once before messages are appended.
type interruptedLog struct {
	eventstore.Store

	before func()
}

// AppendEach implements [eventstore.Store].
func (m *interruptedLog) AppendEach(ctx context.Context, all []eventstore.Transaction) []eventstore.Result {
	before := m.before
	m.before = func() {}
	before()
	return m.Store.AppendEach(ctx, all)
}

// A contact that opts out after the tables were read gets no message, nor does anybody after the end of the campaign, the channel or
// the template.
func TestACampaignsMessagesAreDecidedAgainAfterAChange(t *testing.T) {
	t.Parallel()
	for name, what := range map[string]struct {
		change func(d *fixture, id string) error
		sent   int
		status string
	}{
		"a contact opts out": {sent: 2, status: campaign.Completed, change: func(d *fixture, _ string) error {
			audience, err := readmodels.Complete(func(at *readmodels.At) ([]messagingview.Person, error) {
				return d.Views.Audience(d.t.Context(), at, d.req.Workspace, 0, 0, 1)
			})
			if err != nil {
				return err
			}
			_, err = messagingcmd.EditContact(d.t.Context(), d.o.Sys.Commands, d.req,
				contact.Edit{ID: strconv.FormatInt(audience[0].ID, 10), OptIn: patch.Set(false)})
			return err
		}},
		"the campaign is paused": {status: campaign.Stopped, change: func(d *fixture, id string) error {
			_, err := commands.Handle(d.t.Context(), d.o.Sys.Commands, d.req, campaign.Kind, id, campaign.Advance{Run: 1, Pause: "Stop"})
			return err
		}},
		"the channel is deleted": {status: campaign.StatusFailed, change: func(d *fixture, _ string) error {
			_, err := d.o.Sys.Messages.Channels.Delete(d.t.Context(), d.req, strconv.FormatInt(d.clip.ChannelID, 10))
			return err
		}},
		"the network pauses the template": {status: campaign.StatusFailed, change: func(d *fixture, _ string) error {
			d.net.lists = "PAUSED"
			channels := *d.Messages.Channels
			channels.Commands = d.o.Sys.Commands
			asked := messagingcmd.Templates{Channels: &channels, Listed: d.Views}
			_, err := asked.Refresh(d.t.Context(), d.req.Workspace, []int64{d.clip.ChannelID})
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := open(t, 3)
			id := d.begin()
			d.Messages.Channels.Commands = commands.New(
				&interruptedLog{d.o.Sys.Store, func() { require.NoError(t, what.change(d, id)) }}, d.o.Sys.Vault, time.Now)
			require.Eventually(t, func() bool {
				d.dispatch(id)
				return d.stats(id).Status == what.status
			}, time.Minute, 10*time.Millisecond)
			require.Equal(t, what.sent, d.net.total())
		})
	}
}
