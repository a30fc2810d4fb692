package messaginghttp_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/commands/messagingcmd"
	"bahi/domain/event"
)

// A message and its consequences are one append: the contact, its unique values, consent, a merge.
func TestAMessageThatComesInIsOneTransaction(t *testing.T) {
	t.Parallel()
	o, _, sales := openSales(t)
	receive := func(text string, from messagingcmd.Sender) (types []string) {
		out := o.Receives(messagingcmd.InboundMessage{Sender: from, Channel: sales.ID, Text: text})
		const most = 16
		var written []event.Stored
		for e := range o.Events(int64(out.Position) - most) {
			if e.Position <= out.Position {
				written = append(written, e)
			}
		}
		for n := range written {
			e := written[len(written)-1-n]
			var meta event.Meta
			require.NoError(t, json.Unmarshal(e.Meta, &meta))
			if meta.More != n {
				break
			}
			types = append([]string{e.Type}, types...)
		}
		return types
	}
	require.Equal(t,
		[]string{"RequestAccepted", "MessagingContactAdded", "MessagingContactReached", "MessagingSenderClaimed", "MessageReceived"},
		receive("Hello", messagingcmd.Sender{UserID: "IN.1", Name: "Asha"}))
	require.Equal(t,
		[]string{"RequestAccepted", "MessagingContactAdded", "MessagingPhoneClaimed", "MessageReceived"},
		receive("STOP", messagingcmd.Sender{From: "919812345671", Name: "Asha Rao"}))
	require.Equal(t,
		[]string{
			"RequestAccepted", "MessagingContactAbsorbed", "MessagingContactEdited", "MessagingContactMerged", "MessagingPhoneClaimed",
			"MessageReceived",
		},
		receive("Hello again", messagingcmd.Sender{From: "919812345671", UserID: "IN.1"}))
	require.Equal(t,
		[]string{"RequestAccepted", "MessageReceived"},
		receive("And again", messagingcmd.Sender{From: "919812345671", UserID: "IN.1"}))
}
