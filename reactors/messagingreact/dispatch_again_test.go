package messagingreact_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/commands/messagingcmd"
	"bahi/domain/messaging/campaign"
	"bahi/domain/messaging/contact"
	"bahi/domain/patch"
	"bahi/eventstore"
	"bahi/readmodels"
	"bahi/readmodels/messagingview"
)

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
