package messaginghttp_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/commands/messagingcmd"
	"bahi/domain/messaging/message"
	"bahi/http/api"
	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/readmodels/messagingview"
)

// heard simulates a message from a phone to a channel.
func heard(t *testing.T, o *apptest.Server, channel int64, from, id string, at time.Time) {
	t.Helper()
	o.Receives(messagingcmd.InboundMessage{Sender: messagingcmd.Sender{From: from, Name: "Asha"}, Channel: channel, Text: "Is it ready?",
		ProviderID: id, SentAt: at})
}

func text(to string, channel int64) string {
	return fmt.Sprintf(`{"to":%q,"message":"Your order is ready","channelId":%d}`, to, channel)
}

func conversation(t *testing.T, c *apitest.Client, contact int64, query string) []messagingview.Message {
	t.Helper()
	return apitest.Read[[]messagingview.Message](c.GET(fmt.Sprintf("%s/messages%s", at(contact), query)).Status(200))
}

// untilRead waits until a number of a contact's messages are read, which the sandbox simulates.
func untilRead(t *testing.T, c *apitest.Client, contact int64, count int) {
	t.Helper()
	require.Eventually(t, func() bool {
		found := 0
		for _, m := range conversation(t, c, contact, "") {
			if m.Status == "read" {
				found++
			}
		}
		return found == count
	}, time.Minute, 10*time.Millisecond)
}

func TestAConversationInTheSandbox(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	c, stranger := agent(o, o.Home), agent(o, o.Abroad)
	sales := channelOf(t, c, `{"name":"Sales","type":"chat"}`)
	bot := channelOf(t, c, `{"name":"Bot","type":"telegram"}`)
	closed := func(a *apitest.Answer) {
		require.Contains(t, a.Problem(409, "The person has not written in the last 24 hours: only templates can be sent").Text,
			`"code":"reply_window_closed"`)
	}
	key := c.With("Idempotency-Key", "once")
	closed(key.POST("/api/chat/send", text("919812345678", sales.ID)))
	heard(t, o, sales.ID, "919812345678", "w0", time.Now().Add(-25*time.Hour))
	closed(key.POST("/api/chat/send", text("919812345678", sales.ID)))
	for range 2 {
		heard(t, o, sales.ID, "919812345678", "w1", time.Now())
	}
	sent := key.POST("/api/chat/send", text("+91 98123 45678", sales.ID)).Status(200)
	var accepted struct {
		MessageID, ProviderMessageID, Status, To string
		ChannelID                                int64
	}
	sent.JSON(&accepted)
	sent.Body(fmt.Sprintf(`{"messageId":%q,"providerMessageId":"sandbox.%s","status":"accepted","to":"919812345678","channelId":%d}`,
		accepted.MessageID, accepted.MessageID, sales.ID))
	again := key.POST("/api/chat/send", text("+91 98123 45678", sales.ID)).Status(200)
	require.Equal(t, []string{sent.Text, "true"}, []string{again.Text, again.Header("Idempotency-Replayed")})
	key.POST("/api/chat/send", text("919812345679", sales.ID)).Problem(422, "Idempotency-Key was used with another request")
	c.POST("/api/chat/send-image", fmt.Sprintf(`{"to":"919812345678","imageUrl":"https://cdn.example.org/a.jpg","channelId":%d}`,
		sales.ID)).Status(200)

	people := apitest.Read[[]messagingview.Contact](c.GET(contacts + "?search=919812345678").Status(200))
	require.Equal(t, []string{"Asha", "chat"}, []string{*people[0].Name, people[0].Source})
	asha := people[0].ID
	untilRead(t, c, asha, 2)
	talk := conversation(t, c, asha, "")
	var said []string
	for _, m := range talk {
		said = append(said, strings.Join([]string{m.Direction, m.Type, m.Status, m.By[:3]}, " "))
	}
	require.Equal(t, []string{"out image read key", "out text read key", "in text received con", "in text received con"}, said)
	require.Equal(t, []string{"Your order is ready", "https://cdn.example.org/a.jpg"}, []string{*talk[1].Text, *talk[0].MediaURL})
	require.Equal(t, talk[1:3], conversation(t, c, asha, "?limit=2&before="+talk[0].ID))

	usage := apitest.Read[[]messagingview.ChannelUsage](c.GET(fmt.Sprintf("/api/channels/%d/usage", sales.ID)).Status(200))
	require.NotEmpty(t, usage)
	counted, first := int64(0), usage[0].Day
	for _, u := range usage { // midnight may pass
		counted += u.Replies
	}
	require.EqualValues(t, 2, counted)
	c.GET(fmt.Sprintf("/api/channels/%d/usage?to=%s", sales.ID, first)).Status(200).JSON(&usage)
	require.Len(t, usage, 1)
	c.GET(fmt.Sprintf("/api/channels/%d/usage?to=2026-01-01", sales.ID)).Status(200).Body("[]")
	c.GET(fmt.Sprintf("/api/channels/%d/usage", bot.ID)).Status(200).Body("[]")

	// An unreachable phone is reported, and a new message of a contact opens the conversation again.
	heard(t, o, sales.ID, "919812345000", "w2", time.Now())
	unreachable := c.With("Idempotency-Key", "000")
	for range 2 {
		failed := unreachable.POST("/api/chat/send", text("919812345000", sales.ID)).Problem(422,
			"The network cannot reach the recipient (131026)")
		require.Contains(t, failed.Text, `"code":"recipient_failed"`)
	}
	c.GET(contacts + "?search=919812345000").Status(200).JSON(&people)
	talk = conversation(t, c, people[0].ID, "")
	require.Len(t, talk, 2)
	require.Equal(t, []string{"failed", "recipient_failed", "Message undeliverable"},
		[]string{talk[0].Status, talk[0].Error.Code, *talk[0].Error.Title})
	c.PATCH(at(asha), `{"status":"resolved"}`).Status(200)
	heard(t, o, sales.ID, "919812345678", "w3", time.Now())
	require.Contains(t, c.GET(at(asha)).Status(200).Text, `"status":"open"`)

	before := c.GET(at(asha) + "/messages").Status(200).Text
	stranger.POST("/api/chat/send", text("919812345678", sales.ID)).Problem(404, "Channel not found")
	require.Contains(t, c.POST("/api/chat/send", text("919812345678", bot.ID)).Status(409).Text, `"code":"channel_type_unsupported"`)
	c.GET(at(asha)+"/messages?before=7").Problem(422, "Validation error", "before", "expected the id of a message, as in msg_8121")
	require.Equal(t, before, c.GET(at(asha)+"/messages").Status(200).Text)
}

func TestAChannelHasALimitForUsersAndKeysTogether(t *testing.T) {
	t.Parallel()
	network := chatNetwork(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"messages":[{"id":"wamid.1"}]}`)
	})
	with := apptest.Settings(t, apptest.Database(t))
	with.Outside.ChatURL, with.Outside.FetchAllow = network.URL, []string{strings.TrimPrefix(network.URL, "http://")}
	var err error
	with.Outside.Limits, err = api.ParseLimits([]string{"BAHI_LIMIT_CHAT_SEND=3/1h"})
	require.NoError(t, err)
	o := apptest.StartAs(t, with)
	asha := o.Person("asha@example.com")
	key := agent(o, asha.Workspace)
	first := channelOf(t, key, `{"name":"Sales","type":"chat","apiKey":"good","settings":{"senderId":"PN1"}}`)
	second := channelOf(t, key, `{"name":"Repairs","type":"chat","apiKey":"good","settings":{"senderId":"PN2"}}`)
	for _, k := range []messagingview.Channel{first, second} {
		heard(t, o, k.ID, "919812345678", "w1", time.Now())
	}
	key.POST("/api/chat/send", text("919812345678", first.ID)).Status(200)
	asha.POST("/api/chat/send-image",
		fmt.Sprintf(`{"to":"919812345678","imageUrl":"https://cdn.example.org/a.jpg","channelId":%d}`, first.ID)).Status(200)
	key.POST(at(people(t, key, "")[0].ID)+"/messages", fmt.Sprintf(`{"channelId":%d,"text":"c"}`, first.ID)).Status(201)
	for _, c := range []*apitest.Client{key, asha.Client} {
		refused := c.POST("/api/chat/send", text("919812345678", first.ID)).Problem(429, "Too many requests")
		require.Equal(t, `"chat_send";q=3;w=3600`, refused.Header("RateLimit-Policy"))
		require.NotEmpty(t, refused.Header("Retry-After"))
	}
	key.POST("/api/chat/send", text("919812345678", second.ID)).Status(200)

	// A sandbox sends nothing, and has no usage.
	sandbox := channelOf(t, key, `{"name":"Sandbox","type":"chat","settings":{"dialect":"envelope_v2","appName":"Shop","senderId":"917"}}`)
	heard(t, o, sandbox.ID, "919812345678", "w1", time.Now())
	for range 4 {
		key.POST("/api/chat/send", text("919812345678", sandbox.ID)).Status(200)
	}
}

func TestAKeySendsOnceWhateverTheNetworkDoes(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	var answer atomic.Value
	o := onNetwork(t, chatNetwork(t, func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		status, body := 200, answer.Load().(string)
		_, _ = fmt.Sscanf(body, "%d", &status)
		if status == 0 {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body[4:])
	}))
	c := agent(o, apptest.Home)
	sales := channelOf(t, c, `{"name":"Sales","type":"chat","apiKey":"good","settings":{"senderId":"PN1"}}`)
	heard(t, o, sales.ID, "919812345678", "w1", time.Now())
	const accepted = `200 {"messages":[{"id":"wamid.1"}]}`
	for i, try := range []struct {
		first, then      string
		status, later    int
		code             string
		called, calledBy int64 // after the first request, and after the second
	}{
		{accepted, accepted, 200, 200, "", 1, 1},
		{`000 `, accepted, 503, 503, "provider_unknown", 1, 1},
		{`500 x`, accepted, 503, 503, "provider_unknown", 1, 1},
		{`400 {"error":{"code":131026,"message":"m"}}`, accepted, 422, 422, "recipient_failed", 1, 1},
		{`400 {"error":{"code":131047,"message":"m"}}`, accepted, 409, 409, "reply_window_closed", 1, 1},
		{`400 {"error":{"code":100,"message":"m"}}`, accepted, 502, 502, "provider_refused", 1, 1},
		{`400 {"error":{"code":131056,"message":"m"}}`, accepted, 429, 200, "provider_rate_limited", 1, 2},
		{`500 {"error":{"code":131000,"message":"m"}}`, accepted, 503, 200, "provider_unavailable", 3, 4},
	} {
		calls.Store(0)
		answer.Store(try.first)
		key := c.With("Idempotency-Key", fmt.Sprint("send ", i))
		a := key.POST("/api/chat/send", text("919812345678", sales.ID)).Status(try.status)
		require.Equal(t, try.called, calls.Load(), try.first)
		require.Contains(t, a.Text, try.code)
		if try.status == 429 {
			require.Equal(t, "6", a.Header("Retry-After"))
		}
		answer.Store(try.then)
		a = key.POST("/api/chat/send", text("919812345678", sales.ID)).Status(try.later)
		require.Equal(t, try.calledBy, calls.Load(), try.first)
		if try.later == 200 {
			require.Contains(t, a.Text, `"providerMessageId":"wamid.1"`)
		} else {
			require.Contains(t, a.Text, try.code)
		}
	}
	answer.Store(`500 x`)
	late := c.With("Idempotency-Key", "late")
	late.POST("/api/chat/send", text("919812345678", sales.ID)).Status(503)
	doubtful := conversation(t, c, appears(t, c, "919812345678").ID, "")[0]
	require.Equal(t, []string{"queued", "unknown"}, []string{doubtful.Status, doubtful.Error.Code})
	_, err := o.Sys.Messages.Receipts(t.Context(),
		[]messagingcmd.DeliveryReceipt{{Receipt: message.Receipt{Status: "sent"}, Channel: sales.ID, IDs: []string{"wamid.late"},
			Callback: doubtful.ID}})
	require.NoError(t, err)
	require.Contains(t, late.POST("/api/chat/send", text("919812345678", sales.ID)).Status(200).Text, `"providerMessageId":"wamid.late"`)

	who := appears(t, c, "919812345678").ID
	c.PATCH(at(who), `{"optIn":true}`).Status(200)
	answer.Store(`400 {"error":{"code":131050,"message":"m"}}`)
	c.POST("/api/chat/send", text("919812345678", sales.ID)).Status(422)
	require.Contains(t, c.GET(at(who)).Status(200).Text, `"optIn":false`, "the network knows that the person wants nothing")

	answer.Store(`401 {"error":{"code":190,"message":"m"}}`)
	require.Contains(t, c.POST("/api/chat/send", text("919812345678", sales.ID)).Status(502).Text, "provider_auth")
	require.Contains(t, c.GET(channelAt(sales.ID)).Status(200).Text,
		`"status":"error","lastError":"The network refused the credentials (190)"`)
	answer.Store(accepted)
	c.POST("/api/chat/send", text("919812345678", sales.ID)).Status(200)
	require.Contains(t, c.GET(channelAt(sales.ID)).Status(200).Text, `"status":"connected","lastError":null`)
}
