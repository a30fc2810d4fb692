package ledgerhttp_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/commands/ledgercmd"
	"bahi/http/opshttp"
	"bahi/internal/app"
	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/internal/test/llmtest"
	"bahi/readmodels/ledgerview"
	"bahi/readmodels/opsview"
)

const (
	gatewayPath = "/gateway_incoming_webhook"
	asha        = "919812345678"
)

// chat is a system that accepts messages from one phone.
type chat struct {
	*apptest.Server

	gateway *apitest.Client
}

func openChat(t *testing.T, change ...func(*app.Settings)) chat {
	t.Helper()
	with := apptest.Settings(t, apptest.Database(t))
	for _, c := range change {
		c(&with)
	}
	with.Outside.AllowedPhones = []string{"+91 98123 45678"}
	o := apptest.StartAs(t, with)
	info, err := os.Stat(filepath.Join(with.Data, "keys", "gateway.token"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	return chat{o, o.Anonymous().With("X-Gateway-Token", o.Token("gateway"), "Content-Type", "application/json")}
}

// message is an envelope with a text.
func message(id, from, text string, at time.Time) string {
	return fmt.Sprintf(`{"type":"message","timestamp":%d,"payload":{"id":%q,"source":%q,"type":"text","payload":{"text":%q}}}`,
		at.UnixMilli(), id, from, text)
}

// settled waits until a number of calls have a verdict.
func (c chat) settled(count int) (calls []opsview.Webhook) {
	c.T.Helper()
	require.Eventually(c.T, func() bool {
		c.Operator().GET("/ops/webhooks").Status(200).JSON(&calls)
		waiting := 0
		for _, call := range calls {
			if call.Verdict == "waiting" {
				waiting++
			}
		}
		return len(calls) == count && waiting == 0
	}, time.Minute, 10*time.Millisecond)
	return calls
}

func (c chat) drafts() []ledgerview.OrderDraft {
	c.T.Helper()
	return apitest.Read[[]ledgerview.OrderDraft](c.Operator().GET("/order-drafts").Status(200))
}

// outbox waits for a number of replies.
func (c chat) outbox(count int) (all []opshttp.Message) {
	c.T.Helper()
	require.Eventually(c.T, func() bool {
		c.Operator().GET("/ops/outbox?port=gateway").Status(200).JSON(&all)
		return len(all) == count
	}, time.Minute, 10*time.Millisecond)
	return all
}

func TestMessageBecomesADraftAndIsConfirmedOnce(t *testing.T) {
	t.Parallel()
	c := openChat(t)
	now := time.Now()
	first := message("ABEG1", asha, "slip 214\nparty: Ramesh\npayal 250 gm 4 pcs\nring 20.5 gm", now)
	for _, token := range []string{"", "x", strings.Repeat("A", 43)} {
		c.Anonymous().With("X-Gateway-Token", token).POST(gatewayPath, first).Problem(401, "Webhook proof missing or wrong")
	}
	require.Empty(t, c.gateway.POST(gatewayPath, first).Status(200).Text)
	c.gateway.POST(gatewayPath, first).Status(200)
	c.gateway.POST(gatewayPath, message("ABEG1", asha, "changed by the sender", now)).Status(200)
	c.gateway.POST(gatewayPath, message("ABEG2", "919800000000", "payal 9 kg", now)).Status(200)                // not listed
	c.gateway.POST(gatewayPath, message("ABEG3", asha, "payal 1 kg", now.Add(-25*time.Hour))).Status(200)       // too old for a reply
	c.gateway.POST(gatewayPath, `{"type":"message-event","payload":{"id":"x","type":"delivered"}}`).Status(200) // no message
	c.gateway.POST(gatewayPath, `{"nonsense":`).Status(200)                                                     // unreadable
	c.gateway.POST(gatewayPath, `{"type":"message","payload":{"id":"7","source":"`+asha+`","type":"location","payload":{}}}`).Status(200)
	verdicts := map[string]int{}
	for _, call := range c.settled(6) {
		verdicts[call.Verdict]++
		if call.Effect != nil {
			require.Regexp(t, `^order draft \d+$`, *call.Effect)
		}
	}
	require.Equal(t, map[string]int{"handled": 2, "ignored": 3, "parked": 1}, verdicts)

	drafts := c.drafts()
	require.Len(t, drafts, 2)
	d := drafts[0]
	if *d.Entries[0].Item != "payal" || len(d.Entries) == 1 {
		d = drafts[1]
	}
	require.Equal(t, []any{"+" + asha, "slip 214\nparty: Ramesh\npayal 250 gm 4 pcs\nring 20.5 gm"}, []any{*d.Phone, *d.Raw})
	require.Regexp(t, `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$`, d.CreatedAt)
	require.Len(t, d.Entries, 2)
	e := d.Entries[0]
	require.Equal(t, []any{"payal", "250", int64(4), "Ramesh", "214", "rules"},
		[]any{*e.Item, e.Weight.String(), *e.Quantity, *e.Client, *e.Slip, e.Parser})
	require.Nil(t, d.Entries[1].Quantity)

	replies := c.outbox(1)
	want := fmt.Sprintf("Order draft %d received: 2 items, 270.5 g. Our staff will confirm it.", d.ID)
	require.Equal(t, []any{"+" + asha, want, "kept", d.ID}, []any{replies[0].To, replies[0].Text, replies[0].Status, *replies[0].Draft})

	path := fmt.Sprint("/order-drafts/", d.ID)
	c.Operator().GET(path).Status(200)
	c.Operator().With("If-Match", `"0"`).DELETE(path).Problem(412, "It was changed since you read it") // the reply was recorded since
	c.Operator().DELETE(path).Status(204)
	c.Operator().DELETE(path).Problem(404, "Order draft not found")
}

// The webhook's response does not wait for the model. If the model cannot read a message, the rules read it.
func TestMessageIsReadByTheModelAndOtherwiseByRules(t *testing.T) {
	t.Parallel()
	model := llmtest.New(t,
		llmtest.Says(`{"slip_number": "214", "entries": [{"item_name": "payal", "weight": 250, "quantity": 4, "client_name": "Ramesh"}]}`),
		llmtest.Refuses(),
		llmtest.Says(`{"slip_number": null, "entries": []}`))
	c := openChat(t, func(s *app.Settings) { s.Outside.ModelURL, s.Outside.ModelName = model.URL, "m" })
	read := func(id, text string) ledgerview.OrderDraft {
		t.Helper()
		before := len(c.drafts())
		c.gateway.POST(gatewayPath, message(id, asha, text, time.Now())).Status(200)
		var all []ledgerview.OrderDraft
		require.Eventually(t, func() bool { all = c.drafts(); return len(all) > before }, time.Minute, 10*time.Millisecond)
		return all[before]
	}
	d := read("ABEG1", "slip 214 Ramesh bhai ke liye payal, wazan 250 gm, 4 pcs")
	require.Equal(t, []any{"payal", "250", int64(4), "Ramesh", "214", "model"},
		[]any{*d.Entries[0].Item, d.Entries[0].Weight.String(), *d.Entries[0].Quantity, *d.Entries[0].Client, *d.Entries[0].Slip,
			d.Entries[0].Parser})
	for i, id := range []string{"ABEG2", "ABEG3"} {
		d = read(id, "ring 20.5 gm")
		require.Equal(t, []string{"ring", "rules"}, []string{*d.Entries[0].Item, d.Entries[0].Parser})
		require.Len(t, model.Asked(), 2+i)
	}
	c.gateway.POST(gatewayPath, message("ABEG3", asha, "ring 20.5 gm", time.Now())).Status(200)
	c.settled(3)
	require.Len(t, model.Asked(), 3, "a repetition asks nobody")
}

// The network may name a person only by a user id, after the person has written with the phone.
func TestUserWhoWroteWithAListedPhoneIsKnownWithoutIt(t *testing.T) {
	t.Parallel()
	c := openChat(t)
	wrote := func(id, phone, text string) {
		t.Helper()
		c.gateway.POST(gatewayPath, fmt.Sprintf(`{"type":"message","payload":{"id":%q,"source":%q,"sender":{"userId":"IN.777"},"type":"text",`+
			`"payload":{"text":%q}}}`, id, phone, text)).Status(200)
	}
	wrote("1", "", "payal 250 gm")
	require.Equal(t, "ignored", c.settled(1)[0].Verdict, "nobody knows who that is")
	wrote("2", asha, "ring 5 gm")
	heard := c.settled(2)[0].ID
	wrote("3", "", "chain 20 gm")
	c.settled(3)
	all := c.drafts()
	require.Len(t, all, 2)
	require.Equal(t, "+"+asha, *all[1].Phone)
	for _, id := range []string{"new", "newer"} { // the same person, with another number
		wrote(id, "919000000001", "bali 6 gm")
	}
	c.settled(5)
	all = c.drafts()
	require.Len(t, all, 4)
	require.Equal(t, "+919000000001", *all[3].Phone)
	_, err := ledgercmd.EraseSender(t.Context(), commands.Request{Workspace: c.Sys.Home}, c.Sys.Commands, asha)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		phone, err := ledgercmd.PhoneOf(t.Context(), c.Sys.Books, "IN.777")
		require.NoError(t, err)
		return phone == ""
	}, time.Minute, 10*time.Millisecond)
	wrote("4", "", "nath 8 gm")
	wrote("5", asha, "nath 8 gm")
	require.Equal(t, "ignored", c.settled(7)[0].Verdict)
	all = c.drafts()
	require.Len(t, all, 4)
	require.Equal(t, []any{(*string)(nil), (*string)(nil), "5"}, []any{all[0].Phone, all[0].Raw, all[0].Entries[0].Weight.String()},
		"what was weighed stays")
	require.Eventually(t, func() bool { // once the sender's key is destroyed
		_, err := c.Sys.Inbox.Sweep(t.Context())
		require.NoError(t, err)
		body, err := c.Sys.Inbox.Body(t.Context(), heard)
		require.NoError(t, err)
		return body == nil
	}, time.Minute, 10*time.Millisecond)
}
