package messaginghttp_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/commands/messagingcmd"
	"bahi/domain/messaging/channel"
	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/internal/test/worktest"
	"bahi/readmodels/messagingview"
)

const channels = "/api/channels"

func channelAt(id int64) string { return fmt.Sprintf("%s/%d", channels, id) }

func channelOf(t *testing.T, c *apitest.Client, body string) (k messagingview.Channel) {
	t.Helper()
	c.POST(channels, body).Status(201).JSON(&k)
	if k.Incoming == channel.Unconfirmed {
		confirm(c, k.ID).Status(200).JSON(&k)
	}
	return k
}

// confirm lets the operator confirm the sender of a channel.
func confirm(c *apitest.Client, id int64) *apitest.Answer {
	return c.With("Authorization", "Bearer "+apptest.OperatorKey, "Idempotency-Key", "").POST(fmt.Sprintf("/ops/channels/%d/confirm", id), "")
}

// A workspace that names another's app or number receives none of that number's calls from the deployment's gateway, and does not prevent
// the other from having the number.
func TestCallsForASharedSenderAreKeptUntilItIsProven(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	owner, thief := agent(o, apptest.Home), agent(o, apptest.OtherWorkspace)
	made := func(c *apitest.Client, body string) messagingview.Channel {
		return apitest.Read[messagingview.Channel](c.POST(channels, body).Status(201))
	}
	for nth, d := range []struct{ settings, kind, body, from string }{
		{`"dialect":"envelope_v2","appName":"VictimApp","senderId":"919820000001"`, "application/json",
			`{"app":"VictimApp","type":"message","payload":{"id":"g1","source":"919812345601","type":"text","payload":{"text":"Hello"}}}`,
			"919812345601"},
		{`"dialect":"graph_v3","senderId":"PN7"`, "application/json", graph("PN7", wrote("g2", "919812345602", "Hello")), "919812345602"},
		{`"senderId":"PN8"`, "application/json", graph("PN8", wrote("g3", "919812345603", "Hello")), "919812345603"},
		{`"dialect":"form_v1","senderId":"+919820000004"`, "application/x-www-form-urlencoded",
			"MessageSid=g4&From=chat%3A%2B919812345604&To=chat%3A%2B919820000004&Body=Hello&NumMedia=0", "919812345604"},
	} {
		stolen := made(thief, `{"name":"Stolen","type":"chat","settings":{`+d.settings+`}}`)
		own := made(owner, `{"name":"Own","type":"chat","settings":{`+d.settings+`}}`)
		require.Equal(t, []string{"unconfirmed", "unconfirmed"}, []string{stolen.Incoming, own.Incoming}, d.settings)
		o.Anonymous().With("Content-Type", d.kind).POST(incoming+"?token="+o.Token("gateway"), d.body).Status(200)
		require.Equal(t, "ignored", calls(t, o, "receive-gateway-chat", nth+1)[0].Verdict, d.settings)
		require.Empty(t, people(t, thief, ""))
		require.Empty(t, people(t, owner, "?search="+d.from), "it is nobody's yet")

		owner.POST(fmt.Sprintf("/ops/channels/%d/confirm", own.ID), "").Status(403)
		require.Contains(t, confirm(owner, own.ID).Status(200).Text, `"incoming":"delivered"`)
		require.Eventually(t, func() bool { return appears(t, owner, d.from).Unread == 1 }, time.Minute, 10*time.Millisecond, d.settings)
		require.Empty(t, people(t, thief, ""))
		confirm(owner, own.ID).Status(200)
		confirm(owner, stolen.ID).Problem(409, "Another channel has this sender")
		thief.POST(channels, `{"name":"Again","type":"chat","settings":{`+d.settings+`}}`).Problem(409, "Another channel has this sender")

		owner.PATCH(channelAt(own.ID), `{"apiKey":"another"}`).Status(200)
		require.Contains(t, owner.GET(channelAt(own.ID)).Status(200).Text, `"incoming":"delivered"`, "credentials change, the sender stays")
		moved := owner.PATCH(channelAt(own.ID), `{"settings":{"senderId":"919820000009","appName":null}}`).Status(200).Text
		require.Contains(t, moved, `"incoming":"unconfirmed"`, "another sender is proven for itself")
	}
	confirm(owner, 1<<40).Problem(404, "Channel not found")
	confirm(owner, made(owner, `{"name":"None","type":"chat"}`).ID).Problem(409, "The channel's settings name no sender")
	owner.POST(channels, `{"name":"Deaf","type":"chat","settings":{"dialect":"form_v1","appName":"Shop"}}`).
		Problem(422, "Validation error", "settings.senderId", "expected the phone: calls of the dialect form_v1 name only the phone")

	owner.POST(channels, `{"name":"Page","type":"web","settings":{"allowedOrigins":[5,"a.example"]}}`).
		Problem(422, "Validation error", "settings.allowedOrigins[0]", "expected a text",
			"settings.allowedOrigins[1]", "expected origins like https://shop.example.org")

	// The channel's own secret accepts the calls that it has signed, and no others.
	made(thief, `{"name":"Own secret","type":"chat","settings":{"senderId":"PN1","appSecret":"own-secret"}}`)
	for secret, text := range map[string]string{"own-secret": "Mine"} {
		body := graph("PN1", wrote("s1", "919812345605", text))
		signed(o.Anonymous(), secret, body).POST(social, body).Status(200)
	}
	require.Eventually(t, func() bool { return appears(t, thief, "919812345605").Unread == 1 }, time.Minute, 10*time.Millisecond)
	o.Anonymous().With("Content-Type", "application/json").POST(incoming+"?token="+o.Token("gateway"),
		graph("PN1", wrote("s2", "919812345606", "Not mine"))).Status(200)
	calls(t, o, "receive-gateway-chat", 5)
	require.Len(t, people(t, thief, ""), 1)

	// A call with an unreadable part is stored, too.
	late := made(owner, `{"name":"Late","type":"chat","settings":{"senderId":"PN9"}}`)
	odd := strings.Replace(graph("PN9", wrote("s3", "919812345607", "Hello")), `"messages":[`, `"messages":["odd",`, 1)
	o.Anonymous().With("Content-Type", "application/json").POST(incoming+"?token="+o.Token("gateway"), odd).Status(200)
	require.Equal(t, "parked", calls(t, o, "receive-gateway-chat", 6)[0].Verdict)
	require.Empty(t, people(t, owner, "?search=919812345607"))
	confirm(owner, late.ID).Status(200)
	require.Eventually(t, func() bool { return appears(t, owner, "919812345607").Unread == 1 }, time.Minute, 10*time.Millisecond)
}

func TestEachTypeOfChannelIsMadeInTheSandbox(t *testing.T) {
	t.Parallel()
	o, c := openShared(t)
	c.GET("/api/chat/health").Status(200)
	made := map[string]messagingview.Channel{}
	for _, body := range []string{
		`{"name":"Sales","type":"chat","apiKey":"k","settings":{"senderId":"S-` + o.Home[:8] + `","baseUrl":null}}`,
		`{"name":"Bot","type":"telegram","apiKey":"` + o.Home[:8] + `:k"}`,
		`{"name":"Mail","type":"gmail"}`, `{"name":"DMs","type":"twitter","accessToken":"t","settings":{"consumerSecret":"c"}}`,
		`{"name":"Page","type":"web","settings":{"allowedOrigins":["https://a.example"]}}`,
	} {
		k := channelOf(t, c, body)
		made[k.Type] = k
	}
	stamp := func(at time.Time) string { return at.Format(time.RFC3339Nano) }
	k := made["twitter"]
	c.GET(channelAt(k.ID)).Status(200).Body(fmt.Sprintf(`{"id":%d,"name":"DMs","type":"twitter","status":"connected","lastError":null,`+
		`"incoming":"delivered","hasApiKey":false,"hasAccessToken":true,`+
		`"channelKey":null,"settings":{},"secretSettings":["consumerSecret"],"createdAt":%q,"updatedAt":%q,"revision":1}`, k.ID,
		stamp(k.CreatedAt), stamp(k.UpdatedAt)))
	require.Equal(t, "disconnected", made["gmail"].Status, "it has no token")
	require.Equal(t, "A credential or setting of the channel is missing", *made["gmail"].LastError)

	c.GET(channels + "?limit=2").Status(200).JSON(&[]messagingview.Channel{})
	var listed []messagingview.Channel
	a := c.GET(channels + "?type=chat").Status(200).JSON(&listed)
	require.Equal(t, "1", a.Header("X-Total-Count"))
	require.Equal(t, made["chat"], listed[0])

	health := c.GET("/api/chat/health").Status(200)
	require.Contains(t, health.Text, `"status":"degraded"`)
	require.Contains(t, health.Text, fmt.Sprintf(`{"channelId":%d,"status":"connected","phoneNumber":null,"quality":"green",`+
		`"messagingLimit":"TIER_1K","canSend":"available","lastError":null}`, made["chat"].ID))
	require.NotContains(t, health.Text, fmt.Sprintf(`"channelId":%d`, made["web"].ID), "the widget has no network")
	stranger := agent(o, o.Abroad)
	require.Contains(t, stranger.GET("/api/chat/health").Status(200).Text, `"status":"unconfigured","checkedAt"`)
	c.DELETE(channelAt(k.ID)).Status(204)
	c.GET(channelAt(k.ID)).Problem(404, "Channel not found")
}

// chatNetwork is a test server with the cloud wire format. It accepts the token "good", and does not respond about the sender "slow".
func chatNetwork(t *testing.T, send http.HandlerFunc, templates ...http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := worktest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case len(templates) == 1 && strings.HasSuffix(r.URL.Path, "/message_templates"):
			templates[0](w, r)
		case !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer good"):
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = fmt.Fprintf(w, `{"error":{"message":%q,"code":190}}`, r.Header.Get("Authorization"))
		case r.Method == http.MethodPost:
			send(w, r)
		case r.URL.Path == "/slow":
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		default:
			_, _ = io.WriteString(w, `{"display_phone_number":"+91 98200 00000","quality_rating":"YELLOW","messaging_limit_tier":"TIER_250",`+
				`"health_status":{"can_send_message":"LIMITED"}}`)
		}
	}))
	return server
}

// onNetwork starts a system with chat channels on a network.
func onNetwork(t *testing.T, server *httptest.Server, askTimeout ...time.Duration) *apptest.Server {
	t.Helper()
	with := apptest.Settings(t, apptest.Database(t))
	with.Outside.ChatURL, with.Outside.FetchAllow = server.URL, []string{strings.TrimPrefix(server.URL, "http://")}
	if len(askTimeout) == 1 { // for a silent server; a busy machine needs a part of it for the other servers
		with.Outside.AskTimeout = askTimeout[0]
	}
	return apptest.StartAs(t, with)
}

func TestTheNetworkIsAskedAndItsSecretsAreForgotten(t *testing.T) {
	t.Parallel()
	o := onNetwork(t, chatNetwork(t, http.NotFound), 5*time.Second)
	c := agent(o, apptest.Home)
	k := channelOf(t, c, `{"name":"Sales","type":"chat","apiKey":"good-marmalade","settings":{"senderId":"PN1","appSecret":"bergamot"}}`)
	require.Equal(t, "connected", k.Status)
	var thief messagingview.Channel
	c.POST(channels, `{"name":"Thief","type":"chat","apiKey":"bad-marmalade","settings":{"senderId":"PN1"}}`).Status(201).JSON(&thief)
	require.Equal(t, []string{"error", "The network refused the credentials (190)"}, []string{thief.Status, *thief.LastError},
		"whose credentials are no good has no sender")
	var slow messagingview.Channel
	c.POST(channels, `{"name":"Slow","type":"chat","apiKey":"good-marmalade","settings":{"senderId":"slow"}}`).Status(201).JSON(&slow)
	require.Equal(t, "disconnected", slow.Status)

	var health struct {
		Status   string
		Channels []struct {
			ChannelID                                                        int64
			Status, PhoneNumber, Quality, MessagingLimit, CanSend, LastError string
		}
	}
	require.NoError(t, json.Unmarshal([]byte(c.GET("/api/chat/health").Status(200).Text), &health))
	require.Equal(t, "degraded", health.Status)
	require.Equal(t, []string{"connected", "+919820000000", "yellow", "TIER_250", "limited"},
		[]string{health.Channels[0].Status, health.Channels[0].PhoneNumber, health.Channels[0].Quality, health.Channels[0].MessagingLimit,
			health.Channels[0].CanSend})
	require.Equal(t, "The network's response is missing or invalid", health.Channels[2].LastError)
	c.DELETE(channelAt(slow.ID)).Status(204)

	// A request to the network detects an expired token, and another token repairs the channel.
	edited := c.PATCH(channelAt(k.ID), `{"apiKey":"bad-marmalade"}`).Status(200)
	require.Contains(t, edited.Text, `"status":"error"`)
	require.Contains(t, c.GET("/api/chat/health").Status(200).Text, `"status":"down"`)
	c.PATCH(channelAt(thief.ID), `{"apiKey":"good-marmalade"}`).Status(200)
	c.PATCH(channelAt(k.ID), `{"apiKey":"good-marmalade"}`).Problem(409, "Another channel has this sender")
	c.DELETE(channelAt(thief.ID)).Status(204)
	c.PATCH(channelAt(k.ID), `{"apiKey":"good-marmalade"}`).Status(200)

	known := apptest.NewTraces(t)
	known.Know("marmalade", "bergamot")
	require.Empty(t, known.InDatabase(o.Database), "secrets are nowhere in clear")
	for e := range o.Events(0) {
		require.NotContains(t, string(e.Data), "marmalade")
	}
	c.DELETE(channelAt(k.ID)).Status(204)
	forgotten(t, o, fmt.Sprintf("channel-%d", k.ID))
}

func TestMain(m *testing.M) { apptest.Main(m) }

// tokens is a network with expiring access tokens: access-<n> is valid until the nth end, and refresh-<n> returns the next one, once.
type tokens struct {
	mu      sync.Mutex
	current int
	revoked bool
	away    bool     // the token server is down
	asked   []string // for tokens
	sent    int
	threads []string // in which mails are sent
}

func (n *tokens) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case strings.HasSuffix(r.URL.Path, "/token") && n.away:
		w.WriteHeader(http.StatusServiceUnavailable)
	case strings.HasSuffix(r.URL.Path, "/token"):
		_ = r.ParseForm()
		id, secret, _ := r.BasicAuth()
		n.asked = append(n.asked, strings.Join([]string{r.Form.Get("grant_type"), r.Form.Get("refresh_token"), r.Form.Get("client_id"),
			r.Form.Get("client_secret"), id, secret}, " "))
		if n.revoked || r.Form.Get("refresh_token") != fmt.Sprintf("refresh-%d", n.current-1) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":"invalid_grant"}`)
			return
		}
		_, _ = fmt.Fprintf(w, `{"access_token":"access-%d","refresh_token":"refresh-%d","expires_in":3600}`, n.current, n.current)
	case r.Header.Get("Authorization") != fmt.Sprintf("Bearer access-%d", n.current):
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"error":{"code":401,"message":"Invalid Credentials"},"title":"Unauthorized","status":401}`)
	case r.Method == http.MethodPost:
		n.sent++
		var mail struct{ ThreadID string }
		_ = json.NewDecoder(r.Body).Decode(&mail)
		n.threads = append(n.threads, mail.ThreadID)
		_, _ = fmt.Fprintf(w, `{"id":"g%[1]d","threadId":%[2]q,"data":{"dm_event_id":"d%[1]d"}}`, n.sent,
			cmp.Or(mail.ThreadID, fmt.Sprint("t", n.sent)))
	default:
		_, _ = io.WriteString(w, `{"emailAddress":"shop@example.org","data":{"id":"42"}}`)
	}
}

// end ends the access token.
func (n *tokens) end(revoked bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.current, n.revoked = n.current+1, revoked
}

// goes starts or ends an outage of the token server.
func (n *tokens) goes(away bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.away = away
}

// After a refused access token, Bahi gets one new token for all waiting requests, and stores it. If there is none, the channel is in error.
func TestAccessTokensAreRenewed(t *testing.T) {
	t.Parallel()
	networks := map[string]*tokens{"gmail": {}, "twitter": {}}
	with := apptest.Settings(t, apptest.Database(t))
	for kind, into := range map[string]*string{"gmail": &with.Outside.GmailURL, "twitter": &with.Outside.TwitterURL} {
		server := worktest.Serve(t, networks[kind])
		*into, with.Outside.FetchAllow = server.URL, append(with.Outside.FetchAllow, strings.TrimPrefix(server.URL, "http://"))
	}
	with.Outside.GmailTokens = with.Outside.GmailURL + "/token"
	o := apptest.StartAs(t, with)
	c := agent(o, apptest.Home)
	asha := made(t, c, `{"name":"Asha","email":"asha@example.org"}`)
	for kind, asked := range map[string]string{
		"gmail": "refresh_token refresh-%d app secret  ", "twitter": "refresh_token refresh-%d app  app secret",
	} {
		n := networks[kind]
		k := channelOf(t, c, fmt.Sprintf(`{"name":"K","type":%q,"accessToken":"access-0","settings":{"refreshToken":"refresh-0",`+
			`"clientId":"app","clientSecret":"secret"}}`, kind))
		require.Equal(t, []any{"connected", []string{"clientSecret", "refreshToken"}, "app"},
			[]any{k.Status, k.SecretSettings, k.Settings.ClientID})
		who := asha
		if kind == "twitter" {
			o.Receives(messagingcmd.InboundMessage{Sender: messagingcmd.Sender{UserID: "5", Name: "Kiran", Social: true}, Channel: k.ID, Text: "Hi"})
			who = appears(t, c, "Kiran")
		}
		send := func() {
			c.POST(at(who.ID)+"/messages", fmt.Sprintf(`{"channelId":%d,"text":"Hello"}`, k.ID)).Status(201)
		}
		send()
		require.Empty(t, n.asked)
		for end := range 2 {
			n.end(false)
			var sending sync.WaitGroup
			for range 4 {
				sending.Go(send)
			}
			sending.Wait()
			require.Len(t, n.asked, end+1, "one asks for all")
			require.Equal(t, fmt.Sprintf(asked, end), n.asked[end])
		}
		require.Equal(t, 9, n.sent)

		// An outage of the token server proves nothing about the credentials: the same request succeeds after it.
		n.end(false)
		n.goes(true)
		again := c.With("Idempotency-Key", "after an outage of "+kind)
		text := fmt.Sprintf(`{"channelId":%d,"text":"Hello"}`, k.ID)
		again.POST(at(who.ID)+"/messages", text).Problem(503, "The network is not available")
		n.goes(false)
		again.POST(at(who.ID)+"/messages", text).Status(201)

		n.end(true)
		require.Contains(t, c.POST(at(who.ID)+"/messages", fmt.Sprintf(`{"channelId":%d,"text":"Hello"}`, k.ID)).Status(502).Text,
			"provider_auth")
		shown := c.GET(channelAt(k.ID)).Status(200).Text
		require.Contains(t, shown, `"status":"error","lastError":"The network refused the credentials (401)"`)
		require.NotContains(t, shown, "access-")
		require.NotContains(t, shown, "refresh-")
		require.Equal(t, 10, n.sent)

		// A channel may start with only a refresh token.
		n.end(false)
		c.DELETE(channelAt(k.ID)).Status(204)
		k = channelOf(t, c, fmt.Sprintf(`{"name":"Other","type":%q,"settings":{"refreshToken":"refresh-%d","clientId":"app",`+
			`"clientSecret":"secret"}}`, kind, n.current-1))
		require.Equal(t, []any{"connected", true}, []any{k.Status, k.HasAccessToken})

		// Mails of a channel to a contact stay in the network's thread until the channel's name changes, because a thread has one subject.
		if kind == "gmail" {
			require.Equal(t, append([]string{""}, slices.Repeat([]string{"t1"}, 9)...), n.threads)
			ravi := made(t, c, `{"name":"Ravi","email":"ravi@example.org"}`)
			send()
			c.PATCH(channelAt(k.ID), `{"name":"Shop"}`).Status(200)
			send()
			send()
			who = ravi
			send()
			require.Equal(t, []string{"", "", "t12", ""}, n.threads[10:])
		}
	}
}
