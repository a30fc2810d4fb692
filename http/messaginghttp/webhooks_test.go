package messaginghttp_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/commands/messagingcmd"
	"bahi/domain/messaging/message"
	"bahi/domain/messaging/network"
	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/internal/test/worktest"
	"bahi/readmodels/messagingview"
	"bahi/readmodels/opsview"
)

const (
	incoming = "/api/webhooks/gateway/incoming_msg"
	receipts = "/api/webhooks/gateway/message-events"
	social   = "/api/webhook/social"
)

func sha(secret, body string) []byte {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte(body))
	return h.Sum(nil)
}

func signed(c *apitest.Client, secret, body string) *apitest.Client {
	return c.With("X-Hub-Signature-256", "sha256="+hex.EncodeToString(sha(secret, body)), "Content-Type", "application/json")
}

// graph is a body of the network about a sender of ours.
func graph(sender, value string) string {
	return fmt.Sprintf(`{"object":"chat_business_account","entry":[{"id":"ACC","changes":[{"field":"messages",`+
		`"value":{"metadata":{"phone_number_id":%q},%s}}]}]}`, sender, value)
}

func wrote(id, from, text string) string {
	return fmt.Sprintf(`"contacts":[{"wa_id":%q,"profile":{"name":" \u202aAsha\u202c\n"}}],`+
		`"messages":[{"from":%q,"id":%q,"timestamp":"%d","type":"text",`+
		`"text":{"body":%q}}]`,
		from, from, id, time.Now().Unix(), text)
}

// calls waits until an endpoint's calls are handled, and returns them.
func calls(t *testing.T, o *apptest.Server, endpoint string, count int) (all []opsview.Webhook) {
	t.Helper()
	require.Eventually(t, func() bool {
		o.Operator().GET("/ops/webhooks?page_size=1000&endpoint=" + endpoint).Status(200).JSON(&all)
		done := 0
		for _, k := range all {
			if k.Verdict != "waiting" {
				done++
			}
		}
		return done == count
	}, time.Minute, 10*time.Millisecond, endpoint)
	return all
}

func people(t *testing.T, c *apitest.Client, query string) []messagingview.Contact {
	t.Helper()
	return apitest.Read[[]messagingview.Contact](c.GET(contacts + query).Status(200))
}

// appears waits for the first contact that a search finds.
func appears(t *testing.T, c *apitest.Client, search string) (k messagingview.Contact) {
	t.Helper()
	require.Eventually(t, func() bool {
		all := people(t, c, "?search="+search)
		if len(all) > 0 {
			k = all[0]
		}
		return len(all) > 0
	}, time.Minute, 10*time.Millisecond, search)
	return k
}

func TestSignedEventsOfANetwork(t *testing.T) {
	t.Parallel()
	with := apptest.Settings(t, apptest.Database(t))
	with.Outside.SocialSecrets = []string{"app-secret-for-tests", "next"}
	o := apptest.StartAs(t, with)
	c, stranger, out := agent(o, apptest.Home), agent(o, apptest.OtherWorkspace), o.Anonymous()
	out.GET(social + "?crc_token=abc").Status(403) // no channel
	mine := channelOf(t, c, `{"name":"Sales","type":"chat","settings":{"senderId":"PN1","appSecret":"own-secret"}}`)
	channelOf(t, stranger, `{"name":"Theirs","type":"chat","settings":{"senderId":"PN2","appSecret":"their-secret"}}`)

	out.GET(social + "?hub.mode=subscribe&hub.challenge=1158&hub.verify_token=" + o.Token("social")).Status(200).Body("1158")
	out.GET(social+"?hub.mode=subscribe&hub.challenge=1158&hub.verify_token=x").Problem(403, "The verify token is missing or wrong")
	out.GET(social).Status(403)
	out.GET(social + "?crc_token=abc").Status(200).Body(fmt.Sprintf(`{"response_token":"sha256=%s"}`,
		base64.StdEncoding.EncodeToString(sha("app-secret-for-tests", "abc"))))
	out.GET(social + "?crc_token=%7B%22entry%22:[]%7D").Status(403) // otherwise anybody could get a body signed

	vector := `{"object":"chat_account","entry":[]}`
	out.POST(social, vector).Status(401)
	hello := graph("PN1", wrote("wamid.1", "919812345678", "Hello"))
	signed(out, "their-secret", hello).POST(social, hello).Status(401)
	both := strings.Replace(hello, `"entry":[`,
		`"entry":[`+strings.TrimSuffix(strings.TrimPrefix(graph("PN2", wrote("wamid.0", "919812345670", "x")),
			`{"object":"chat_business_account","entry":[`), `]}`)+`,`, 1)
	signed(out, "own-secret", both).POST(social, both).Status(200) // and only for its own channel
	for _, secret := range []string{"own-secret", "next", "own-secret"} {
		signed(out, secret, hello).POST(social, hello).Status(200)
	}
	require.Eventually(t, func() bool { return appears(t, c, "919812345678").Unread == 1 }, time.Minute, 10*time.Millisecond)
	asha := appears(t, c, "919812345678")
	require.Empty(t, people(t, stranger, ""))
	require.Equal(t, []any{"Asha", "chat", int64(1)}, []any{*asha.Name, asha.Source, asha.Unread})

	// The network's id and the phone of one person lead to one contact, whichever comes first.
	post := func(body string) { signed(out, "next", body).POST(social, body).Status(200) }
	post(graph("PN1", `"contacts":[{"wa_id":"919812345678","user_id":"IN.7","profile":{"name":"Asha"}}],"messages":[{"from":"919812345678",`+
		`"id":"wamid.2","type":"text","text":{"body":"Both"}}]`))
	require.Eventually(t, func() bool { return len(conversation(t, c, asha.ID, "")) == 2 }, time.Minute, 10*time.Millisecond)
	post(graph("PN1", `"messages":[{"from_user_id":"IN.7","id":"wamid.3","type":"image","image":{"id":"M1","mime_type":"image/jpeg",`+
		`"caption":"This one"}}]`))
	require.Eventually(t, func() bool { return len(conversation(t, c, asha.ID, "")) == 3 }, time.Minute, 10*time.Millisecond)
	post(graph("PN1", `"messages":[{"from_user_id":"IN.9","id":"wamid.4","type":"text","text":{"body":"No phone"}}],`+
		`"contacts":[{"user_id":"IN.9","profile":{"username":"ravi"}}]`))
	ravi := appears(t, c, "@ravi")
	require.Nil(t, ravi.Phone)
	post(graph("PN1", `"messages":[{"from":"919812345678","id":"wamid.5","type":"system","system":{"type":"user_changed_number",`+
		`"wa_id":"919812345699"}},`+
		`{"id":"wamid.6","type":"system","system":{"type":"user_changed_user_id","previous_user_id":"IN.9","user_id":"IN.10"}}]`))
	require.Equal(t, asha.ID, appears(t, c, "919812345699").ID)
	post(graph("PN1", `"messages":[{"from_user_id":"IN.10","id":"wamid.7","type":"reaction","reaction":{"emoji":"👍"}}]`))
	require.Eventually(t, func() bool { return len(conversation(t, c, ravi.ID, "")) == 2 }, time.Minute, 10*time.Millisecond)
	require.Equal(t, int64(1), appears(t, c, "@ravi").Unread, "a reaction is not unread")

	// Pages have people without phones.
	post(`{"object":"page","entry":[{"id":"PN1","messaging":[{"sender":{"id":"U1"},"recipient":{"id":"PN1"},"message":{"mid":"p1",` +
		`"text":"From a page"}}]},` +
		`{"id":"PN1","messaging":[{"sender":{"id":"PN1"},"recipient":{"id":"U1"},"message":{"mid":"p2","text":"Echo","is_echo":true}}]}]}`)
	require.Equal(t, "social", appears(t, c, "Guest").Source)
	require.Eventually(t, func() bool { return appears(t, c, "Guest").Unread == 1 }, time.Minute, 10*time.Millisecond)

	// A keyword or the network withdraws consent. Only the same source restores it.
	said := 0
	says := func(text string, want bool) {
		said++
		post(graph("PN1", wrote(fmt.Sprint("wamid.s", said), "919812345699", text)))
		require.Eventually(t, func() bool { return appears(t, c, "919812345699").OptIn == want }, time.Minute, 10*time.Millisecond, text)
	}
	c.PATCH(at(asha.ID), `{"optIn":true,"optInEvidence":"Form 12"}`).Status(200)
	says(" STOP! ", false)
	require.Equal(t, []string{"contact", "word"},
		[]string{*appears(t, c, "919812345699").OptInBy, *appears(t, c, "919812345699").OptInEvidence})
	says("Start", true)
	post(graph("PN1", `"user_preferences":[{"wa_id":"919812345699","value":"stop"}]`))
	require.Eventually(t, func() bool { return !appears(t, c, "919812345699").OptIn }, time.Minute, 10*time.Millisecond)
	says("start", false)

	// A receipt with our id settles the message. A late receipt changes nothing, and a template's status takes effect at once.
	var accepted struct {
		MessageID, ProviderMessageID, Status, To string
		ChannelID                                int64
	}
	c.POST("/api/chat/send", text("919812345699", mine.ID)).Status(200).JSON(&accepted)
	untilRead(t, c, asha.ID, 1)
	post(graph("PN1", fmt.Sprintf(`"statuses":[{"id":"wamid.net","status":"failed","biz_opaque_callback_data":%q,"errors":[{"code":131026,`+
		`"title":"no"}]},{"id":%q,"status":"sent"}]`,
		accepted.MessageID, accepted.ProviderMessageID)))
	c.GET(templates).Status(200)
	post(`{"entry":[{"id":"PN1","changes":[{"field":"message_template_status_update","value":{"event":"PAUSED",` +
		`"message_template_id":"sandbox.offer"}}]}]}`)
	require.Eventually(t, func() bool { return c.GET(templates).Status(200).Header("X-Total-Count") == "3" }, time.Minute, 10*time.Millisecond)
	untilRead(t, c, asha.ID, 1)

	// A message of a group has no effect, and its sender does not become a contact.
	post(graph("PN1", `"messages":[{"from":"919812345604","id":"wamid.g","group_id":"G1","type":"text","text":{"body":"a"}}]`))
	require.Eventually(t, func() bool {
		ignored := apitest.Read[[]opsview.Webhook](o.Operator().GET("/ops/webhooks?verdict=ignored&endpoint=receive-social").Status(200))
		return slices.ContainsFunc(ignored, func(k opsview.Webhook) bool { return k.Reason != nil && *k.Reason == "group" })
	}, time.Minute, 10*time.Millisecond)
	require.Empty(t, people(t, c, "?search=919812345604"))
}

func TestTelegramAndTwitter(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	c, out, user := agent(o, o.Home), o.Anonymous(), o.Home[:8]
	bot := channelOf(t, c, `{"name":"Bot","type":"telegram","apiKey":"`+user+`:k"}`)
	hook := fmt.Sprintf("/api/webhook/telegram/%d", bot.ID)
	secret, err := o.Sys.Messages.HookToken(t.Context(), fmt.Sprint(bot.ID))
	require.NoError(t, err)
	update := func(id int, rest string) string { return fmt.Sprintf(`{"update_id":%d,%s}`, id, rest) }
	says := func(id int, text string) string {
		return fmt.Sprintf(`"message":{"message_id":%d,"date":1740900000,"chat":{"id":77,"type":"private"},"from":{"first_name":"Meera",`+
			`"last_name":"Shah"},"text":%q}`, id, text)
	}
	told := out.With("X-Telegram-Bot-Api-Secret-Token", secret)
	told.POST(hook, update(1, says(1, "Namaste"))).Status(200)
	meera := appears(t, c, "Meera")
	c.PATCH(at(meera.ID), `{"optIn":true,"optInEvidence":"Form 12"}`).Status(200)
	of := func(chat string) string { // the same person writes to a group
		return `{"message_id":2,"date":1740900000,"chat":{` + chat + `},"from":{"id":77,"first_name":"Meera"},"text":"STOP","photo":{}}`
	}
	groups := []string{`"message":` + of(`"id":-5,"type":"group"`), `"message":` + of(`"id":-1005,"type":"supergroup","title":"Shop"`),
		`"message":` + of(`"id":-1006,"type":"channel"`), `"channel_post":` + of(`"id":-1006,"type":"channel"`),
		`"edited_message":` + of(`"id":-5,"type":"group"`), `"message":` + of(`"id":77`)}
	for i, rest := range groups {
		told.POST(hook, update(20+i, rest)).Status(200)
	}
	require.Eventually(t, func() bool {
		ignored := o.Operator().GET(fmt.Sprintf("/ops/webhooks?verdict=ignored&endpoint=receive-telegram/%d", bot.ID)).Status(200)
		return strings.Count(ignored.Text, `"reason":"group"`) == len(groups)
	}, time.Minute, 10*time.Millisecond)
	require.True(t, appears(t, c, "Meera").OptIn)
	require.Len(t, people(t, c, ""), 1)
	require.Eventually(t, func() bool { return len(conversation(t, c, meera.ID, "")) == 1 }, time.Minute, 10*time.Millisecond)
	require.Equal(t, []any{"Meera Shah", "social"}, []any{*meera.Name, meera.Source})
	told.POST(hook, update(4, strings.Replace(says(1, "Namaste ji"), `"message"`, `"edited_message"`, 1))).Status(200)
	require.Eventually(t, func() bool {
		talk := conversation(t, c, meera.ID, "")
		return len(talk) == 1 && *talk[0].Text == "Namaste ji" && talk[0].EditedAt != nil
	}, time.Minute, 10*time.Millisecond)
	calls(t, o, fmt.Sprintf("receive-telegram/%d", bot.ID), 2+len(groups))

	dms := channelOf(t, c, `{"name":"DMs","type":"twitter","accessToken":"t","settings":{"consumerSecret":"consumer","userId":"`+user+`"}}`)
	hook = fmt.Sprintf("/api/webhook/twitter/%d", dms.ID)
	out.GET(hook + "?crc_token=abc").Status(200).Body(fmt.Sprintf(`{"response_token":"sha256=%s"}`,
		base64.StdEncoding.EncodeToString(sha("consumer", "abc"))))
	out.GET(hook).Status(403)
	out.GET(hook + "0?crc_token=abc").Status(403)
	out.GET(hook + "?crc_token=%7B%22direct_message_events%22:[]%7D").Status(403) // otherwise anybody could get a body signed
	tell := func(body string) *apitest.Client {
		return out.With("X-Twitter-Webhooks-Signature", "sha256="+base64.StdEncoding.EncodeToString(sha("consumer", body)))
	}
	dm := `{"id":"e%d","type":"message_create","created_timestamp":"1740900000123","message_create":{"sender_id":%q,` +
		`"message_data":{"text":"DM %d"}}}`
	older := `{"for_user_id":"` + user + `","direct_message_events":[` + fmt.Sprintf(dm, 1, "5", 1) + `,` + fmt.Sprintf(dm, 2, user, 2) +
		`],"users":{"5":{"name":"Kiran"}}}`
	newer := `{"data":{"event_type":"dm.received","payload":{"direct_message_events":[` + fmt.Sprintf(dm, 3, "5", 3) + `]}}}`
	sealed := `{"data":{"event_type":"chat.received","payload":{"direct_message_events":[` + fmt.Sprintf(dm, 4, "5", 4) + `]}}}`
	tell(older).POST(hook, older).Status(200)
	kiran := appears(t, c, "Kiran")
	for _, body := range []string{newer, sealed, older} {
		tell(body).POST(hook, body).Status(200)
	}
	require.Eventually(t, func() bool { return len(conversation(t, c, kiran.ID, "")) == 2 }, time.Minute, 10*time.Millisecond)
	calls(t, o, fmt.Sprintf("receive-twitter/%d", dms.ID), 3)
	require.Len(t, conversation(t, c, kiran.ID, ""), 2)
}

// A new channel registers its webhook address with the bot's network, and again if the network then has a different address.
func TestTelegramIsToldWhereToCall(t *testing.T) {
	t.Parallel()
	var (
		mu    sync.Mutex
		told  []map[string]any
		where string
	)
	server := worktest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		switch r.URL.Path {
		case "/bot17:k/getMe":
			_, _ = io.WriteString(w, `{"ok":true,"result":{"id":17}}`)
		case "/bot17:k/getWebhookInfo":
			_, _ = fmt.Fprintf(w, `{"ok":true,"result":{"url":%q}}`, where)
		case "/bot17:k/setWebhook":
			var set map[string]any
			if json.NewDecoder(r.Body).Decode(&set) != nil {
				return
			}
			told, where = append(told, set), set["url"].(string)
			_, _ = io.WriteString(w, `{"ok":true,"result":true}`)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	with := apptest.Settings(t, apptest.Database(t))
	with.Outside.TelegramURL, with.Outside.FetchAllow = server.URL, []string{strings.TrimPrefix(server.URL, "http://")}
	with.Outside.PublicURL = "https://bahi.example.org"
	o := apptest.StartAs(t, with)
	c := agent(o, apptest.Home)
	bot := channelOf(t, c, `{"name":"Bot","type":"telegram","apiKey":"17:k"}`)
	require.Equal(t, "connected", bot.Status)
	secret, err := o.Sys.Messages.HookToken(t.Context(), fmt.Sprint(bot.ID))
	require.NoError(t, err)
	ours := fmt.Sprintf("https://bahi.example.org/api/webhook/telegram/%d", bot.ID)
	require.Regexp(t, `^[A-Za-z0-9_-]{1,256}$`, secret)

	require.NoError(t, o.Sys.HookChannels(t.Context()), "what starts do")
	mu.Lock()
	where = "https://yesterday.example.org/api/webhook/telegram/1"
	mu.Unlock()
	require.NoError(t, o.Sys.HookChannels(t.Context()))
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, ours, where)
	require.Len(t, told, 2, "once when it is made, once when it has another address")
	for _, set := range told {
		require.Equal(t, map[string]any{"url": ours, "secret_token": secret, "allowed_updates": []any{"message", "edited_message"}}, set)
	}
}

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

// Calls are handled at once, in any order. A conversation has the order of their arrival.
func TestMessagesOfOneSecondAreInTheOrderOfTheirArrival(t *testing.T) {
	t.Parallel()
	o, c, sales := openSales(t)
	second := time.Now().Add(-time.Hour).Truncate(time.Second)
	for _, n := range rand.Perm(20) {
		o.Receives(messagingcmd.InboundMessage{
			Sender: messagingcmd.Sender{From: "919812345678", Name: "Asha"}, Channel: sales.ID, Text: fmt.Sprint(n),
			SentAt: second, ArrivedAt: second.Add(time.Minute - time.Duration(n)*time.Millisecond), // the newest first
		})
	}
	talk := conversation(t, c, appears(t, c, "919812345678").ID, "")
	pages := conversation(t, c, appears(t, c, "919812345678").ID, "?limit=7")
	for len(pages) < 20 {
		pages = append(pages, conversation(t, c, appears(t, c, "919812345678").ID, "?limit=7&before="+pages[len(pages)-1].ID)...)
	}
	require.Len(t, talk, 20)
	for n := range 20 {
		require.Equal(t, []string{fmt.Sprint(n), fmt.Sprint(n)}, []string{*talk[n].Text, *pages[n].Text})
	}
	c.POST(at(appears(t, c, "919812345678").ID)+"/read", fmt.Sprintf(`{"messageId":%q}`, talk[5].ID)).Status(200).Body(`{"unread":5}`)
}

func TestAnEditIsReadForWordsOfConsent(t *testing.T) {
	t.Parallel()
	o, c, sales := openSales(t)
	heard(t, o, sales.ID, "919812345678", "w1", time.Now().Add(-time.Hour))
	asha := appears(t, c, "919812345678").ID
	c.PATCH(at(asha), `{"optIn":true}`).Status(200)
	edit := func(text string, at time.Time) {
		_, err := o.Sys.Messages.Revise(t.Context(), sales.ID, "w1", text, network.Moment{At: at, ArrivedAt: time.Now()})
		require.NoError(t, err)
	}
	edit("STOP", time.Now())
	require.False(t, appears(t, c, "919812345678").OptIn)
	edit("Start", time.Now().Add(-time.Minute))
	require.False(t, appears(t, c, "919812345678").OptIn, "that was before")
	require.Equal(t, "STOP", *conversation(t, c, asha, "")[0].Text, "an older edit does not win")
}

func TestAReactionIsNoMessage(t *testing.T) {
	t.Parallel()
	o, c, sales := openSales(t)
	begin := time.Now().Add(-time.Hour)
	heard(t, o, sales.ID, "919812345678", "w1", begin)
	asha := appears(t, c, "919812345678").ID
	c.PATCH(at(asha), `{"status":"resolved"}`).Status(200)
	n := 0
	react := func(from, emoji string) {
		n++
		o.Receives(messagingcmd.InboundMessage{Sender: messagingcmd.Sender{From: from}, Channel: sales.ID, Type: "reaction", Text: emoji,
			Reacts: "w1", SentAt: begin.Add(time.Duration(n) * time.Minute)})
	}
	said := func() (all []string) {
		for _, m := range conversation(t, c, asha, "") {
			all = append(all, *m.Text)
		}
		return all
	}
	react("919812345678", "👍")
	require.Equal(t, []string{"👍", "Is it ready?"}, said())
	react("919812345678", "STOP")
	require.Equal(t, []string{"STOP", "Is it ready?"}, said(), "it has replaced the one before")
	react("919812345678", "")
	require.Equal(t, []string{"Is it ready?"}, said())
	require.Equal(t, "resolved", appears(t, c, "919812345678").Status)
	react("919812345600", "")
	require.Empty(t, people(t, c, "?search=919812345600"), "a removed reaction creates no contact")
}
