package app_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
	"bahi/internal/test/llmtest"
	"bahi/readmodels/messagingview"
)

// Each node has its own model, so the test sees which node made a call.
func TestAnAnswerWhoseProcessDiesIsGivenByAnother(t *testing.T) {
	t.Parallel()
	const token = "a-token-of-the-gateway"
	n := &nodes{t: t, database: apptest.Database(t)}
	network := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"status":"submitted","messageId":"reply"}`)
	}))
	t.Cleanup(network.Close)
	var models [2]*llmtest.Server
	asked := make(chan int, 1000)
	for i := range n.serving {
		models[i] = llmtest.New(t)
		models[i].Always(func(_ http.ResponseWriter, r *http.Request, _ llmtest.Request) { // never responds
			_, _ = io.Copy(io.Discard, r.Body) // the server sees that the client is gone only after it
			asked <- i
			<-r.Context().Done()
		})
		n.data[i] = t.TempDir()
		n.env[i] = []string{
			"LLM_BASE_URL=" + models[i].URL, "LLM_MODEL=m", "GATEWAY_BASE_URL=" + network.URL, "CHAT_BASE_URL=" + network.URL,
			"GATEWAY_API_KEY=key", "GATEWAY_WEBHOOK_TOKEN=" + token, "BAHI_FETCH_ALLOW=" + strings.TrimPrefix(network.URL, "http://"),
		}
		n.start(i)
	}
	c := n.serving[0].Client()
	var channel messagingview.Channel
	c.POST("/api/channels", `{"name":"Sales","type":"chat","settings":{"dialect":"envelope_v2","appName":"Shop"}}`).Status(201).JSON(&channel)
	c.POST("/api/bots", fmt.Sprintf(`{"name":"Asha","description":"Answers customers","systemPrompt":"Be polite.","channelIds":[%d]}`,
		channel.ID)).Status(201)
	c.With("Authorization", "").POST("/api/webhooks/gateway/incoming_msg?token="+token, `{"app":"Shop","version":2,"type":"message","payload":{
		"id":"question","source":"919811100030","type":"text","payload":{"text":"Are you open?"},"sender":{"name":"Asha"}}}`).Status(200)
	var caller int
	select {
	case caller = <-asked:
	case <-time.After(takenOverTimeout):
		t.Fatal("no node asked")
	}
	n.serving[caller].Kill()
	c = n.serving[1-caller].Client()
	for i := range models {
		models[i].Always(llmtest.Says("Yes, until 4."))
	}
	apptest.EndLeases(t, n.database, time.Now())
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
}
