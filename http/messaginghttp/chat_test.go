package messaginghttp_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
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
	o.Operator().GET("/ops/outbox?page_size=1000&port=chat").Status(200).
		Contains(`"to":"+919812345678","subject":"","text":"Your order is ready"`)
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

func TestAMessageGoesOverAChannelOfAnyType(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	c, stranger := agent(o, o.Home), agent(o, o.Abroad)
	sales, mail := channelOf(t, c, `{"name":"Sales","type":"chat"}`), channelOf(t, c, `{"name":"Mail","type":"gmail","accessToken":"t"}`)
	bot, page := channelOf(t, c, `{"name":"Bot","type":"telegram","apiKey":"19:k"}`), channelOf(t, c, `{"name":"Page","type":"web"}`)
	require.NotEmpty(t, *page.Key)
	require.Nil(t, sales.Key)
	id, of, err := o.Sys.Messaging.ChannelKeyed(t.Context(), *page.Key)
	require.NoError(t, err)
	require.Equal(t, []any{page.ID, o.Home}, []any{id, of.String()})
	asha := made(t, c, `{"name":"Asha","phone":"919812345601","email":"asha@example.org"}`)
	sender := messagingcmd.Sender{UserID: "77", Name: "Meera", Social: true}
	o.Receives(messagingcmd.InboundMessage{Sender: sender, Channel: bot.ID, Text: "Hi"})
	meera := appears(t, c, "Meera")
	send := at(asha.ID) + "/messages"
	all := apitest.Read[[]messagingview.Template](c.GET(templates + "?language=en").Status(200))
	ready := all[slices.IndexFunc(all, func(k messagingview.Template) bool { return k.Name == "order_ready" })].ID

	body := fmt.Sprintf(`{"channelId":%d,"templateId":%d,"templateParams":{"1":"A-204","2":"{{name}}"}}`, sales.ID, ready)
	sent := apitest.Read[messagingview.Message](c.POST(send, body).Status(201))
	require.Equal(t, []string{"out", "template", "Order A-204 is ready for Asha"}, []string{sent.Direction, sent.Type, *sent.Text},
		"a template needs no window")
	require.Contains(t, c.POST(send, fmt.Sprintf(`{"channelId":%d,"text":"Hello"}`, sales.ID)).Status(409).Text, "reply_window_closed")
	c.POST(send, fmt.Sprintf(`{"channelId":%d,"imageUrl":"https://cdn.example.org/a.jpg","caption":"This"}`, mail.ID)).Status(201)
	c.POST(at(meera.ID)+"/messages", fmt.Sprintf(`{"channelId":%d,"text":"Namaste"}`, bot.ID)).Status(201)
	untilRead(t, c, asha.ID, 2)
	untilRead(t, c, meera.ID, 1)

	before := c.GET(send).Status(200).Text
	for body, wrong := range map[string][2]string{
		`{"channelId":%d}`:                          {"text", "expected one of text, imageUrl and templateId"},
		`{"channelId":%d,"text":"a","caption":"b"}`: {"caption", "allowed only with an image"},
		`{"channelId":%d,"templateId":999999}`:      {"templateId", "Template not found"},
	} {
		c.POST(send, fmt.Sprintf(body, sales.ID)).Problem(422, "Validation error", wrong[0], wrong[1])
	}
	for body, wrong := range map[string][2]string{
		`{"channelId":%d,"templateId":"x"}`: {"templateId", "expected a whole number"},
		`{"channelId":%d,"imageUrl":5}`:     {"imageUrl", "expected a text"},
		`{"channelId":%d,"text":5}`:         {"text", "expected a text"},
	} {
		c.POST(send, fmt.Sprintf(body, sales.ID)).Problem(422, "Validation error", wrong[0], wrong[1])
	}
	c.POST(send, `{"channelId":"x"}`).Problem(422, "Validation error", "channelId", "expected a whole number",
		"text", "expected one of text, imageUrl and templateId")
	c.POST(send, fmt.Sprintf(`{"channelId":%d,"templateId":%d}`, sales.ID, ready)).Problem(422, "Validation error", "templateParams.1",
		"must be filled", "templateParams.2", "must be filled")
	theirs := channelOf(t, stranger, `{"name":"Theirs","type":"chat"}`)
	c.POST(send, fmt.Sprintf(`{"channelId":%d,"text":"a","templateParams":{"1":"b"}}`, sales.ID)).Problem(422, "Validation error",
		"templateParams", "allowed only with a template")
	c.POST(send, fmt.Sprintf(`{"channelId":%d,"templateId":%d,"templateParams":{"1":"a\nb","2":"{{email}}","3":"c","header":" "}}`,
		theirs.ID, ready)).Problem(422, "Validation error",
		"templateParams.1", "must have no line break, no tab and at most three blanks in a row",
		"templateParams.2", "may have {{name}} and {{phone}}, but no other braces",
		"templateParams.3", "the template has no such placeholder", "templateParams.header", "the template has no such placeholder",
		"channelId", "Channel not found")
	c.POST(send, fmt.Sprintf(`{"channelId":"x","templateId":%d,"templateParams":{"1":"a","2":5,"3":"c"}}`, ready)).
		Problem(422, "Validation error", "channelId", "expected a whole number", "templateParams.2", "expected a text",
			"templateParams.3", "the template has no such placeholder")
	c.POST(send, fmt.Sprintf(`{"channelId":%d,"imageUrl":"a.jpg","caption":%q}`, page.ID, strings.Repeat("क", 1025))).
		Problem(422, "Validation error", "caption", "at most 1024 characters",
			"imageUrl", "expected an address like https://cdn.example.org/a.jpg",
			"channelId", "The channel does not reach the contact")
	c.POST(send, fmt.Sprintf(`{"channelId":%d,"templateId":%d}`, page.ID, ready)).Problem(422, "Validation error",
		"templateId", "Template not found", "channelId", "The channel does not reach the contact")
	c.POST(send, fmt.Sprintf(`{"channelId":%d,"text":"a"}`, page.ID)).Problem(422, "Validation error", "channelId",
		"The channel does not reach the contact")
	c.POST(send, fmt.Sprintf(`{"channelId":%d,"text":"a"}`, theirs.ID)).Problem(422, "Validation error", "channelId", "Channel not found")
	require.Equal(t, before, c.GET(send).Status(200).Text)
}

func TestAConversationIsReadUpToAMessage(t *testing.T) {
	t.Parallel()
	o, c, sales := openSales(t)
	empty := made(t, c, `{"name":"Nobody"}`)
	now := time.Now()
	for i := range 3 {
		heard(t, o, sales.ID, "919812345602", fmt.Sprint("r", i), now.Add(time.Duration(i-5)*time.Second))
	}
	heard(t, o, sales.ID, "919812345603", "r9", now)
	asha := appears(t, c, "919812345602")
	require.Equal(t, int64(3), asha.Unread)
	require.WithinDuration(t, now.Add(-3*time.Second), *asha.LastMessageAt, time.Millisecond)
	recent := people(t, c, "?sort=recent&limit=3")
	require.Equal(t, []string{"919812345603", "919812345602"}, []string{*recent[0].Phone, *recent[1].Phone})
	require.Equal(t, empty.ID, recent[2].ID)
	silent := made(t, c, `{"name":"Nobody else"}`) // newer than the other silent contact
	for page, first := range []int64{recent[0].ID, recent[1].ID, silent.ID, empty.ID} {
		require.Equal(t, first, people(t, c, fmt.Sprintf("?sort=recent&limit=1&page=%d", page+1))[0].ID, "page %d", page+1)
	}
	require.Equal(t, []int64{silent.ID, empty.ID},
		[]int64{people(t, c, "?sort=recent&limit=3")[2].ID, people(t, c, "?sort=recent&limit=3&page=2")[0].ID})
	require.Empty(t, people(t, c, "?sort=recent&limit=2&page=3"))
	unread := func(query string) (phones []string) {
		a := c.GET(contacts + "?unread=true" + query).Status(200)
		found := apitest.Read[[]messagingview.Contact](a)
		for _, one := range found {
			phones = append(phones, *one.Phone)
		}
		return append(phones, a.Header("X-Total-Count"))
	}
	require.Equal(t, []string{"919812345603", "919812345602", "2"}, unread("&sort=recent"))
	require.Equal(t, []string{"919812345602", "2"}, unread("&sort=recent&limit=1&page=2"))
	require.Equal(t, []string{"919812345602", "1"}, unread("&search=602"))
	require.Equal(t, []string{"0"}, unread("&sort=recent&status=resolved"))
	talk := conversation(t, c, asha.ID, "")
	read := at(asha.ID) + "/read"
	c.POST(read, fmt.Sprintf(`{"messageId":%q}`, talk[1].ID)).Status(200).Body(`{"unread":1}`)
	c.POST(read, fmt.Sprintf(`{"messageId":%q}`, talk[2].ID)).Status(200).Body(`{"unread":1}`)
	heard(t, o, sales.ID, "919812345602", "late", now.Add(-time.Hour))
	require.Equal(t, int64(1), appears(t, c, "919812345602").Unread, "a late message was read")
	c.POST(read, `{}`).Status(200).Body(`{"unread":0}`)
	require.Equal(t, []string{"919812345603", "1"}, unread(""))
	c.POST(at(empty.ID)+"/read", `{}`).Status(200).Body(`{"unread":0}`)
	c.POST(at(empty.ID)+"/read", fmt.Sprintf(`{"messageId":%q}`, talk[1].ID)).Problem(422, "Validation error", "messageId",
		"Message not found")
	c.POST(read, `{"messageId":"7"}`).Problem(422, "Validation error", "messageId", "expected the id of a message, as in msg_8121")
	require.Equal(t, int64(0), people(t, c, "?search=919812345602")[0].Unread)
}

func TestMessagesAreFollowedLive(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	c, stranger := agent(o, o.Home), agent(o, o.Abroad)
	sales, theirs := channelOf(t, c, `{"name":"Sales","type":"chat"}`), channelOf(t, stranger, `{"name":"Theirs","type":"chat"}`)
	type told struct {
		messagingview.Message

		ContactID int64 `json:"contactId"`
	}
	first, second := c.Stream("/api/messages/stream"), c.Stream("/api/messages/stream")
	heard(t, o, theirs.ID, "919812345604", "l0", time.Now())
	heard(t, o, sales.ID, "919812345604", "l1", time.Now())
	var m told
	name, id := first.Next(&m)
	require.Equal(t, []string{"message", "in", "Is it ready?"}, []string{name, m.Direction, *m.Text})
	require.Equal(t, appears(t, c, "919812345604").ID, m.ContactID)
	again, same := second.Next(&m)
	require.Equal(t, []string{name, id}, []string{again, same})
	c.POST("/api/chat/send", text("919812345604", sales.ID)).Status(200)
	var last, status string
	for range 4 { // queued, sent, delivered, read: one event may report several of them
		if name, last = first.Next(&m); m.Status == "read" {
			break
		}
		status = name
	}
	require.Equal(t, []string{"out", "read"}, []string{m.Direction, m.Status})
	require.NotEmpty(t, status+name)
	resumed := c.With("Last-Event-ID", id).Stream("/api/messages/stream")
	_, at := resumed.Next(&m)
	require.Equal(t, []string{last, "read"}, []string{at, m.Status}, "a resumed stream has each missed message once")
	c.With("Last-Event-ID", "x").GET("/api/messages/stream").Problem(422, "Validation error", "Last-Event-ID", "expected the id of an event")
	c.With("Last-Event-ID", "4611686018427387904").GET("/api/messages/stream").Problem(422, "The log does not reach that position yet")
}
