package messaginghttp_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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

func TestTheOutboxHasTheMessagesOfSandboxChannels(t *testing.T) {
	t.Parallel()
	o, c := openShared(t)
	k := channelOf(t, c, `{"name":"Sales","type":"chat"}`)
	heard(t, o, k.ID, "919812345377", "outbox-1", time.Now())
	c.POST("/api/chat/send", text("919812345377", k.ID)).Status(200)
	require.Eventually(t, func() bool {
		return strings.Contains(o.Operator().GET("/ops/outbox?port=chat").Status(200).Text,
			`"to":"+919812345377","subject":"","text":"Your order is ready"`)
	}, time.Minute, 10*time.Millisecond)
}

func TestMain(m *testing.M) { apptest.Main(m) }
