package messaginghttp_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/commands/messagingcmd"
	"bahi/domain/messaging/message"
	"bahi/domain/messaging/network"
)

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
