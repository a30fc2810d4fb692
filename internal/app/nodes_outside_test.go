package app_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/internal/test/llmtest"
	"bahi/readmodels/messagingview"
)

const gatewayToken = "a-token-of-the-gateway"

// outside has the servers that two nodes call. Each node has its own model and network, which identify the calling node.
type outside struct {
	nodes

	models [2]*llmtest.Server
	called chan int     // the node that called
	send   atomic.Value // func(node int, w http.ResponseWriter, r *http.Request): the network's handler of a message
}

func openOutside(t *testing.T) *outside {
	t.Helper()
	o := &outside{nodes: nodes{t: t, database: apptest.Database(t)}, called: make(chan int, 1000)}
	o.send.Store(func(node int, _ http.ResponseWriter, r *http.Request) { o.hang(node, r) })
	for i := range o.serving {
		o.models[i] = llmtest.New(t)
		o.models[i].Always(func(_ http.ResponseWriter, r *http.Request, _ llmtest.Request) { o.hang(i, r) })
		network := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case strings.HasSuffix(r.URL.Path, "/message_templates"):
				_, _ = io.WriteString(w, `{"data":[{"id":"1","name":"plain","status":"APPROVED","language":"en",`+
					`"components":[{"type":"BODY","text":"Hello"}]}]}`)
			case r.Method == http.MethodGet:
				_, _ = io.WriteString(w, `{"quality_rating":"GREEN","health_status":{"can_send_message":"AVAILABLE"}}`)
			default:
				o.send.Load().(func(int, http.ResponseWriter, *http.Request))(i, w, r)
			}
		}))
		t.Cleanup(network.Close)
		o.data[i] = t.TempDir()
		o.env[i] = []string{
			"LLM_BASE_URL=" + o.models[i].URL, "LLM_MODEL=m", "GATEWAY_BASE_URL=" + network.URL, "CHAT_BASE_URL=" + network.URL,
			"GATEWAY_API_KEY=key", "GATEWAY_WEBHOOK_TOKEN=" + gatewayToken,
			"BAHI_FETCH_ALLOW=" + strings.TrimPrefix(network.URL, "http://"),
		}
		o.start(i)
	}
	return o
}

// hang accepts a call of a node, and never responds.
func (o *outside) hang(node int, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // only after reading it does the server notice that the client is gone
	o.called <- node
	<-r.Context().Done()
}

// sends makes the network accept messages.
func (o *outside) sends(answer func() string) {
	o.send.Store(func(_ int, w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer()) })
}

// survivor kills the node that called first. It returns the other node and the time of the kill.
func (o *outside) survivor() (c *apitest.Client, died time.Time) {
	o.t.Helper()
	var caller int
	select {
	case caller = <-o.called:
	case <-time.After(takenOverTimeout):
		o.t.Fatal("no node called")
	}
	o.serving[caller].Kill()
	return o.serving[1-caller].Client(), time.Now()
}

func TestAnAnswerWhoseProcessDiesIsGivenByAnother(t *testing.T) {
	t.Parallel()
	o := openOutside(t)
	c := o.serving[0].Client()
	var channel messagingview.Channel
	c.POST("/api/channels", `{"name":"Sales","type":"chat","settings":{"dialect":"envelope_v2","appName":"Shop"}}`).Status(201).JSON(&channel)
	c.POST("/api/bots", fmt.Sprintf(`{"name":"Asha","description":"Answers customers","systemPrompt":"Be polite.","channelIds":[%d]}`,
		channel.ID)).Status(201)
	o.sends(func() string { return `{"status":"submitted","messageId":"reply"}` })
	const call = "/api/webhooks/gateway/incoming_msg?token=" + gatewayToken
	c.With("Authorization", "").POST(call, `{"app":"Shop","version":2,"type":"message","payload":{
		"id":"question","source":"919811100030","type":"text","payload":{"text":"Are you open?"},"sender":{"name":"Asha"}}}`).Status(200)
	c, died := o.survivor()
	for i := range o.models {
		o.models[i].Always(llmtest.Says("Yes, until 4."))
	}
	require.Eventually(t, func() bool {
		var people []messagingview.Contact
		c.GET("/api/contacts?search=919811100030").Status(200).JSON(&people)
		if len(people) != 1 {
			return false
		}
		var said []messagingview.Message
		c.GET(fmt.Sprintf("/api/contacts/%d/messages", people[0].ID)).Status(200).JSON(&said)
		require.LessOrEqual(t, len(said), 2, "one answer")
		return len(said) == 2
	}, takenOverTimeout, 100*time.Millisecond)
	t.Logf("the other node responded after %v", time.Since(died).Round(time.Millisecond)) // its goal is 30 s
}

func TestACampaignWhoseProcessDiesGoesOn(t *testing.T) {
	t.Parallel()
	o := openOutside(t)
	c := o.serving[0].Client()
	c.POST("/api/channels", `{"name":"Sales","type":"chat","apiKey":"good","settings":{"senderId":"PN1","accountId":"ACC"}}`).Status(201)
	var templates []messagingview.Template
	require.Eventually(t, func() bool {
		templates = nil
		c.GET("/api/chat/templates").Status(200).JSON(&templates)
		return len(templates) == 1
	}, takenOverTimeout, 20*time.Millisecond)
	for i := range 100 { // more than are sent at the same time: those in progress wait for ten minutes
		var made messagingview.Contact
		c.POST("/api/contacts", fmt.Sprintf(`{"name":"Contact","phone":"98123%05d"}`, i)).Status(201).JSON(&made)
		c.PATCH(fmt.Sprintf("/api/contacts/%d", made.ID), `{"optIn":true}`).Status(200)
	}
	var k, now messagingview.Campaign
	plain := fmt.Sprintf(`{"name":"Plain","type":"broadcast","templateId":%d,"audience":"all"}`, templates[0].ID)
	c.POST("/api/campaigns", plain).Status(201).JSON(&k)
	c.POST("/api/campaigns/send", fmt.Sprintf(`{"campaignId":%d}`, k.ID)).Status(202)
	c, died := o.survivor()
	o.sends(func() string { return `{"messages":[{"id":"` + uuid.NewString() + `"}]}` })
	require.Eventually(t, func() bool {
		c.GET(fmt.Sprintf("/api/campaigns/%d", k.ID)).Status(200).JSON(&now)
		return now.Stats.Sent > 0
	}, time.Minute+takenOverTimeout, 100*time.Millisecond)
	t.Logf("the other node continued after %v", time.Since(died).Round(time.Millisecond)) // its goal is a minute
}
