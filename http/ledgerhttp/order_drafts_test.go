package ledgerhttp_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
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

// review is a workspace with a client and a draft of two entries.
type review struct {
	clerk  *apitest.Client
	client int64
	draft  ledgerview.OrderDraft
	path   string
}

func openReview(t *testing.T, text string) review {
	t.Helper()
	o := apptest.Share(t)
	r := review{clerk: o.Clerk(o.Home)}
	r.client = made(r.clerk, "/client", `{"name":"Ramesh Jewellers"}`)
	id, _, err := ledgercmd.ReceiveDraft(t.Context(), commands.Request{Workspace: uuid.MustParse(o.Home)}, o.Sys.Books,
		ledgercmd.Message{ID: uuid.NewString(), From: asha, Text: text, At: time.Now().Add(-25 * time.Hour)})
	require.NoError(t, err)
	r.path = "/order-drafts/" + id
	r.clerk.GET(r.path).Status(200).JSON(&r.draft)
	return r
}

func (r review) entry(i int) string { return fmt.Sprint(r.path, "/entries/", r.draft.Entries[i].ID) }

func TestDraftIsReviewedAndConverted(t *testing.T) {
	t.Parallel()
	r := openReview(t, "party: ramesh jewelers\npayal 250 gm 4 pcs\nring 5")
	first := r.clerk.GET(r.path).Status(200)
	require.Equal(t, `"0"`, first.Header("ETag"))
	first.Contains(`"client_id":null,"date":null,"delivery_date":null,"notes":null`, `"slip_number":null,"parser":"rules","confidence":0.95`,
		fmt.Sprintf(`"client_proposals":[{"client_id":%d,"name":"Ramesh Jewellers","confidence":0.833}]`, r.client))
	require.Regexp(t, `"created_at":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d",`, first.Text)

	r.clerk.POST(r.path+"/convert", nil).Problem(409, "Order draft is not ready").Contains(`"field":"entries[0].client_id"`,
		`"field":"entries[0].slip_number"`, `"field":"entries[1].client_id"`, `"field":"entries[1].slip_number"`)
	r.clerk.PUT(r.entry(1), `{"item_name": "toe ring", "weight": 5.5, "quantity": null, "slip_number": "A-1"}`).Status(200).
		Contains(`"item_name":"toe ring","weight":5.5,"quantity":null,"client_id":null,"client_name":"ramesh jewelers","slip_number":"A-1"`)
	edited := r.clerk.PUT(r.path, fmt.Sprintf(`{"client_id": %d, "date": "2025-03-01", "delivery_date": "2025-03-09", "notes": " by Holi ", `+
		`"phone_number": "+91 98123 45670"}`, r.client)).Status(200)
	require.Equal(t, `"2"`, edited.Header("ETag"))
	read := r.clerk.GET(r.path).Status(200)
	require.JSONEq(t, edited.Text, read.Text, "a write answers what a read does")
	read.Contains(`"phone_number":"+919812345670"`, `"notes":"by Holi"`, `"client_name":"Ramesh Jewellers"`)
	r.clerk.PUT(r.path, read.Text).Status(200).Contains(`"revision":2`)
	unread := r.clerk.PUT(r.path, `{"phone_number": "ask at the shop"}`).Status(200).Contains(`"phone_number":"ask at the shop"`,
		`"warnings":["phone_number \"ask at the shop\" is not a readable telephone number: it is stored as a text, and not used"]`)
	require.JSONEq(t, unread.Text, r.clerk.GET(r.path).Status(200).Text)
	r.clerk.PUT(r.path, unread.Text).Status(200).Contains(`"revision":3`)

	r.clerk.POST(r.path+"/recalculate_slip_numbers", nil).Status(200).Contains(`"slip_number":"1"`)
	r.clerk.With("Bahi-Dry-Run", "true").POST(r.path+"/convert", nil).Status(200).Contains(`"orders":[{"client_id":`,
		`"client_name":"Ramesh Jewellers"`)
	converted := r.clerk.POST(r.path+"/convert", `{"delivery_date": "2025-03-10"}`).Status(200)
	converted.Contains(fmt.Sprintf(`"draft_id":%d`, r.draft.ID), `"slip_number":"1","date":"2025-03-01","delivery_date":"2025-03-10"`,
		`"status":"open"`, `"pending_weight":255.5`,
		`"item_name":"payal","weight":250,"making_charge":0,"quantity":4}`)
	r.clerk.PUT(r.entry(0), `{"weight": 1}`).Problem(404, "Order draft not found")
	require.Equal(t, "[]\n", r.clerk.GET("/order-drafts").Status(200).Text)

	var became struct{ Orders []ledgerview.ClientOrder }
	picked(converted, &became)
	r.clerk.GET(fmt.Sprint("/client-order/", became.Orders[0].ID)).Status(200).Contains(`"revision":0`, `"quantity":4`)
}

func TestADraftIsFoundByItsSlipAndHasTheWorkspacesEntriesAlone(t *testing.T) {
	t.Parallel()
	r := openReview(t, "payal 250 gm slip 1\nring 5 gm slip 2\nchain 20 gm slip 3")
	require.Contains(t, r.clerk.GET("/order-drafts?slip_number=2").Status(200).Text, `"slip_number":"3"`)
	require.Equal(t, "[]", r.clerk.GET("/order-drafts?slip_number=4").Status(200).Text[:2])
	stranger := openReview(t, "ring 5 gm")
	stranger.clerk.PUT(stranger.entry(0), `{"client_id": 999999999}`).Problem(422, "Validation error").Contains(`"field":"client_id"`)
	stranger.clerk.PUT(stranger.path+"/entries/"+fmt.Sprint(r.draft.Entries[0].ID), `{"weight": 1}`).
		Problem(404, "Order draft entry not found")
	r.clerk.PUT(r.path, fmt.Sprintf(`{"client_id": %d}`, r.client)).Status(200)
	r.clerk.DELETE(fmt.Sprint("/client/", r.client)).Status(204)
	r.clerk.POST(r.path+"/convert", nil).Problem(409, "Order draft is not ready").
		Contains(`"field":"entries[0].client_id"`, `"field":"entries[1].client_id"`, `"field":"entries[2].client_id"`)
}
