package app_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/internal/test/worktest"
	"bahi/readmodels/messagingview"
)

// twoSenders is a network that counts the messages of two nodes. It leaves a call of the first sender without an answer.
type twoSenders struct {
	mu     sync.Mutex
	sent   map[string]int // calls by recipient
	by     [2]int         // calls by node
	after  int            // calls before the one without an answer
	caught chan int       // the node of that call
}

func (n *twoSenders) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/message_templates"):
		_, _ = io.WriteString(w, `{"data":[{"id":"1","name":"sale","status":"APPROVED","language":"en","components":[{"type":"BODY",`+
			`"text":"Sale"}]}]}`)
		return
	case r.Method == http.MethodGet:
		_, _ = io.WriteString(w, `{"quality_rating":"GREEN"}`)
		return
	}
	var m struct{ To string }
	_ = json.NewDecoder(r.Body).Decode(&m)
	node := 0
	if strings.HasPrefix(r.URL.Path, "/1/") {
		node = 1
	}
	n.mu.Lock()
	n.sent[m.To]++
	n.by[node]++
	caught := n.after > 0 && len(n.sent) == n.after
	if caught {
		n.after = 0
	}
	n.mu.Unlock()
	if caught {
		n.caught <- node
		<-r.Context().Done()
		return
	}
	_, _ = fmt.Fprintf(w, `{"messages":[{"id":"w.%s"}]}`, m.To)
}

func (n *twoSenders) count(node int) (calls, people int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.by[node], len(n.sent)
}

// A campaign whose sender is killed is continued by the other node within a minute. Nobody gets a message twice. The campaign says why some
// messages have no result.
func TestAnotherNodeContinuesACampaignOfAKilledOne(t *testing.T) {
	t.Parallel()
	const people, rate = 300, 30
	sending := &twoSenders{sent: map[string]int{}, after: people / 3, caught: make(chan int, 1)}
	network := worktest.Serve(t, sending)
	n := &nodes{t: t, database: apptest.Database(t)}
	for i := range n.serving {
		n.data[i] = t.TempDir()
		n.env[i] = []string{fmt.Sprintf("CHAT_BASE_URL=%s/%d", network.URL, i), fmt.Sprintf("BAHI_CAMPAIGN_RATE=%d", rate),
			"BAHI_FETCH_ALLOW=" + strings.TrimPrefix(network.URL, "http://")}
		n.start(i)
	}
	c := n.serving[0].Client()
	channel := apptest.IdOf(t, []byte(c.POST("/api/channels", `{"name":"Sales","type":"chat","apiKey":"k","settings":{"senderId":"PN1",`+
		`"accountId":"ACC","appSecret":"secret"}}`).Status(201).Text))
	templates := apitest.Read[[]messagingview.Template](c.GET("/api/chat/templates").Status(200))
	var file bytes.Buffer
	file.WriteString("name,phone,optIn,optInEvidence\n")
	for i := range people {
		fmt.Fprintf(&file, "Buyer %d,98%08d,true,signed form\n", i, i)
	}
	form, contentType := apptest.Form(t, "text/csv", file.Bytes())
	c.With("Content-Type", contentType).POST("/api/contacts/import", string(form)).Status(200)
	id := apptest.IdOf(t, []byte(c.POST("/api/campaigns", fmt.Sprintf(`{"name":"Sale","type":"broadcast","templateId":%d,"channelId":%d,`+
		`"audience":"all"}`, templates[0].ID, channel)).Status(201).Text))
	c.POST("/api/campaigns/send", fmt.Sprintf(`{"campaignId":%d}`, id)).Status(202)

	dies := <-sending.caught
	lives := 1 - dies
	before, _ := sending.count(lives)
	require.Zero(t, before, "one node sends a campaign")
	died := time.Now()
	n.serving[dies].Kill()
	require.Eventually(t, func() bool { calls, _ := sending.count(lives); return calls > 0 }, time.Minute, 20*time.Millisecond)
	t.Logf("the other node sent after %s", time.Since(died))
	at := fmt.Sprintf("/api/campaigns/%d", id)
	var got messagingview.Campaign
	require.Eventually(t, func() bool {
		got = apitest.Read[messagingview.Campaign](n.serving[lives].Client().GET(at).Status(200))
		return got.Stats.Sent >= people-rate && got.Reason != nil
	}, 2*time.Minute, 200*time.Millisecond, "the campaign is %+v", &got)
	t.Logf("%d of %d sent, and the reason shown, after %s: %s", got.Stats.Sent, people, time.Since(died), *got.Reason)
	require.Equal(t, "active", got.Status)
	sending.mu.Lock()
	defer sending.mu.Unlock()
	for to, times := range sending.sent {
		require.Equal(t, 1, times, to)
	}
}
