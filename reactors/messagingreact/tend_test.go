package messagingreact_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/domain/messaging/campaign"
	"bahi/domain/messaging/network"
	"bahi/readmodels/messagingview"
)

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
	_, err := d.Dispatch(t.Context(), id, time.Minute)
	require.NoError(t, err)
	_, err = commands.Handle(t.Context(), d.Commands, d.req, campaign.Kind, id, campaign.Cancel{})
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
		if nth == 3 { // while the last one of the first three is called
			_, err := d.Delete(t.Context(), d.req, strconv.FormatInt(d.clip.ChannelID, 10))
			require.NoError(t, err)
		}
		return &network.Failure{Reason: network.Unknown}
	}
	_, err := d.Dispatch(t.Context(), id, time.Minute)
	require.NoError(t, err)
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
	for i := 0; i < 4 && d.stats(id).Status == campaign.Active; i++ { // the first may find time for the audience only
		_, err := d.Dispatch(t.Context(), id, time.Second)
		require.NoError(t, err)
	}
	k := d.stats(id)
	require.Equal(t, campaign.Stopped, k.Status)
	require.Equal(t, "The network cannot be reached", *k.Reason)
	require.WithinDuration(t, time.Now().Add(time.Hour), *k.PausedUntil, 10*time.Minute)
	require.Equal(t, messagingview.CampaignStats{Total: 12}, k.Stats)
}
