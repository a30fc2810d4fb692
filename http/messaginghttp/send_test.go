package messaginghttp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/commands/messagingcmd"
	"bahi/domain/event"
	"bahi/domain/messaging/channel"
	"bahi/domain/messaging/contact"
	"bahi/domain/messaging/message"
	"bahi/domain/messaging/network"
	"bahi/internal/test/apitest"
)

// recordingNetwork is a network that records the phones to which it sends.
type recordingNetwork struct {
	messagingcmd.Networks
	to []string
}

// Send implements [messagingcmd.Networks].
func (n *recordingNetwork) Send(ctx context.Context, a network.Account, m network.Message) (string, error) {
	n.to = append(n.to, m.To)
	return n.Networks.Send(ctx, a, m)
}

// A message is decided again if what the decision read changes before the append. The rate limit counts it once.
func TestAMessageIsSentAsItsContactAndChannelAreThen(t *testing.T) {
	t.Parallel()
	for name, what := range map[string]struct {
		changes func(c *apitest.Client, who, on int64)
		toPhone bool // the message is to a phone, not to a contact
		to      []string
		want    error
	}{
		"nothing": {
			changes: func(*apitest.Client, int64, int64) {},
			to:      []string{"919812345678"},
		},
		"another phone": {
			changes: func(c *apitest.Client, who, _ int64) { c.PATCH(at(who), `{"phone":"9812345670"}`).Status(200) },
			to:      []string{"919812345670"},
		},
		"the contact is deleted": {
			changes: func(c *apitest.Client, who, _ int64) { c.DELETE(at(who)).Status(204) },
			want:    contact.ErrNotFound,
		},
		"the phone's contact is deleted": {
			changes: func(c *apitest.Client, who, _ int64) { c.DELETE(at(who)).Status(204) },
			toPhone: true,
			want:    (&network.Failure{Reason: network.WindowClosed}).Fault(),
		},
		"the channel is deleted": {
			changes: func(c *apitest.Client, _, on int64) {
				c.DELETE("/api/channels/" + strconv.FormatInt(on, 10)).Status(204)
			},
			toPhone: true,
			want:    channel.ErrNotFound,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, c, sales := openSales(t)
			asha := made(t, c, `{"name":"Asha","phone":"9812345678"}`)
			heard(t, o, sales.ID, "919812345678", "w1", time.Now())
			messages, channels := *o.Sys.Messages, *o.Sys.Messages.Channels
			net := &recordingNetwork{Networks: channels.Networks}
			channels.Networks, messages.Channels = net, &channels
			messages.Sandboxed = func(network.Account) bool { return false }
			admitted := 0
			admit := func(int64) error {
				if admitted++; admitted == 1 {
					what.changes(c, asha.ID, sales.ID)
				}
				return nil
			}
			req := commands.Request{Workspace: uuid.MustParse(o.Home)}
			var err error
			if what.toPhone {
				_, err = messages.Send(t.Context(), req, message.Draft{Channel: sales.ID, To: "919812345678", Text: "Hello"}, admit)
			} else {
				_, err = messages.SendTo(t.Context(), req, asha.ID, message.ToContact{ChannelID: sales.ID, Text: "Hello"}, admit)
			}
			require.ErrorIs(t, err, what.want)
			require.Equal(t, what.to, net.to)
			require.Equal(t, 1, admitted)
		})
	}
}

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
		[]string{"RequestAccepted", "MessagingContactAdded", "MessagingContactSenderAdded", "MessagingSenderClaimed", "MessageReceived"},
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

// dyingNetwork is a network after whose response the process ends.
type dyingNetwork struct {
	messagingcmd.Networks

	calls *int
	ends  bool
}

func (n dyingNetwork) Send(ctx context.Context, a network.Account, m network.Message) (string, error) {
	*n.calls++
	id, err := n.Networks.Send(ctx, a, m)
	if n.ends {
		panic("the process ends")
	}
	return id, err
}

// The process ends after the call of the network, before it has recorded the response. The outcome is unknown, so a retry with the same key
// never calls again, and a receipt settles the message.
func TestAfterACrashAMessageIsLookedUpBeforeItIsSent(t *testing.T) {
	t.Parallel()
	o, c, sales := openSales(t)
	heard(t, o, sales.ID, "919812345671", "c1", time.Now())
	calls := 0
	send := func(ends bool) (commands.Outcome[message.State], error) {
		channels, f := *o.Sys.Messages.Channels, *o.Sys.Messages
		channels.Networks = dyingNetwork{o.Sys.Messages.Networks, &calls, ends}
		f.Channels = &channels
		req := commands.Request{Workspace: uuid.MustParse(o.Home), Operation: "send-text", Key: "crash"}
		return f.Send(t.Context(), req, message.Draft{Channel: sales.ID, To: "919812345671", Text: "Yes"}, func(int64) error { return nil })
	}
	require.Panics(t, func() { _, _ = send(true) })
	require.Equal(t, 1, calls)
	for range 2 {
		out, err := send(false)
		require.Equal(t, (&network.Failure{Reason: network.Unknown}).Fault(), err)
		require.True(t, out.Replayed)
	}
	who := appears(t, c, "919812345671")
	talk := conversation(t, c, who.ID, "")
	require.Len(t, talk, 2)
	require.Equal(t, "queued", talk[0].Status)
	number, err := message.Number("messageId", talk[0].ID)
	require.NoError(t, err)

	_, err = o.Sys.Messages.Receipts(t.Context(),
		[]messagingcmd.DeliveryReceipt{{Receipt: message.Receipt{Status: "delivered"}, Channel: sales.ID, IDs: []string{"wamid.c"},
			Callback: talk[0].ID}})
	require.NoError(t, err)
	out, err := send(false)
	require.NoError(t, err)
	require.Equal(t, []string{strconv.FormatInt(number, 10), "delivered"}, []string{out.ID, out.State.Status})
	require.Equal(t, 1, calls, fmt.Sprint("calls of the network: ", calls))
}
