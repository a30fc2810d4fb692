package messaginghttp_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/commands/messagingcmd"
	"bahi/domain/messaging/message"
	"bahi/internal/test/apptest"
)

// A network reports several messages in one call: one of them twice, some unknown. Several calls may report the same message.
func TestReceiptsThatComeTogether(t *testing.T) {
	t.Parallel()
	o := apptest.StartAs(t, aggregated(t))
	c := agent(o, apptest.Home)
	sales := channelOf(t, c, `{"name":"Sales","type":"chat","apiKey":"k","settings":{"dialect":"envelope_v2","appName":"WorkshopApp",`+
		`"senderId":"917"}}`)
	other := channelOf(t, c, `{"name":"Other","type":"chat","apiKey":"k","settings":{"dialect":"envelope_v2","appName":"OtherApp",`+
		`"senderId":"918"}}`)
	heard(t, o, sales.ID, "919812345678", "w1", time.Now())
	for range 3 { // ee-1 to ee-3
		c.POST("/api/chat/send", text("919812345678", sales.ID)).Status(200)
	}
	asha := appears(t, c, "919812345678")
	news := func(channel int64, id, status string) messagingcmd.DeliveryReceipt {
		return messagingcmd.DeliveryReceipt{Receipt: message.Receipt{Status: status}, Channel: channel, IDs: []string{id}}
	}
	told := []messagingcmd.DeliveryReceipt{
		news(sales.ID, "ee-1", "delivered"), news(sales.ID, "ee-1", "read"), news(sales.ID, "ee-1", "sent"), news(sales.ID, "ee-9", "read"),
		news(other.ID, "ee-3", "read"), news(sales.ID, "ee-3\x00", "read"),
		{Receipt: message.Receipt{Status: "read"}, Channel: sales.ID, IDs: []string{"gBEG", "ee-2"}},
	}
	var (
		all    sync.WaitGroup
		become [4][]messagingcmd.ReceiptResult
		errs   [4]error
	)
	for i := range become {
		all.Go(func() { become[i], errs[i] = o.Sys.Messages.Receipts(t.Context(), told) })
	}
	all.Wait()
	require.NoError(t, errors.Join(errs[:]...))
	for _, heard := range become {
		var known []bool
		for _, h := range heard {
			known = append(known, h.Known)
			require.Equal(t, h.Known, h.Subject != "")
		}
		require.Equal(t, []bool{true, true, true, false, false, false, true}, known)
	}
	untilRead(t, c, asha.ID, 2)
	c.PATCH(at(asha.ID), `{"optIn":true}`).Status(200)
	_, err := o.Sys.Messages.Receipts(t.Context(),
		[]messagingcmd.DeliveryReceipt{{Receipt: message.Receipt{Status: "failed", Code: 131050}, Channel: sales.ID, IDs: []string{"ee-3"}}})
	require.NoError(t, err)
	require.Contains(t, c.GET(at(asha.ID)).Status(200).Text, `"optIn":false`)
	statuses := map[string]int{}
	for _, m := range conversation(t, c, asha.ID, "") {
		statuses[m.Status]++
	}
	require.Equal(t, map[string]int{"received": 1, "read": 2, "failed": 1}, statuses)
	last, err := o.Sys.Messages.Receipts(t.Context(), []messagingcmd.DeliveryReceipt{news(sales.ID, "gBEG", "read")})
	require.NoError(t, err)
	require.True(t, last[0].Known, "the network's id was told with the aggregator's")

	c.POST("/api/chat/send", text("919812345678", sales.ID)).Status(200)
	_, err = o.Sys.Messages.Receipts(t.Context(), []messagingcmd.DeliveryReceipt{
		{Receipt: message.Receipt{Status: "failed", Code: 7, Title: "a\x00b", Details: "c\x00"}, Channel: sales.ID,
			IDs: []string{"ee-4", "g\x00"}},
	})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return conversation(t, c, asha.ID, "")[0].Status == "failed" }, time.Minute, 10*time.Millisecond)
}
