//go:build soak

package app_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"bahi/internal/test/apptest"
	"bahi/readmodels/messagingview"
)

// Two nodes serve one database, and the one that sends a campaign is killed. The other one continues, and each recipient gets one message,
// even those that the killed node had begun.
func TestEachOfManyRecipientsGetsOneMessageThoughANodeIsKilled(t *testing.T) {
	t.Parallel()
	const contacts, killAt, rate = 2000, 900, 100
	sending := &postings{sent: map[string]int{}, half: make(chan string, 1), killAt: killAt}
	network := httptest.NewServer(sending)
	t.Cleanup(network.Close)
	database, nodes := apptest.Database(t), map[string]*apptest.Process{}
	for _, name := range []string{"a", "b"} {
		cmd := apptest.Program(t, t.TempDir(), "serve")
		cmd.Env = append(cmd.Env, "DATABASE_URL="+database, "CHAT_BASE_URL="+network.URL+"/"+name,
			"BAHI_FETCH_ALLOW="+strings.TrimPrefix(network.URL, "http://"), fmt.Sprintf("BAHI_CAMPAIGN_RATE=%d", rate))
		nodes[name] = apptest.Serve(t, cmd)
		nodes[name].Ready()
	}
	c := nodes["a"].Client()
	c.POST("/api/channels", `{"name":"Sales","type":"chat","apiKey":"k","settings":{"senderId":"PN1","accountId":"ACC",`+
		`"appSecret":"campaign-secret"}}`).Status(201)
	var templates []messagingview.Template
	c.GET("/api/chat/templates").Status(200).JSON(&templates)
	var adding errgroup.Group
	adding.SetLimit(8)
	for i := range contacts {
		adding.Go(func() error {
			var k messagingview.Contact
			c.POST("/api/contacts", fmt.Sprintf(`{"name":"x","phone":"98123%05d"}`, 10001+i)).Status(201).JSON(&k)
			c.PATCH(fmt.Sprintf("/api/contacts/%d", k.ID), `{"optIn":true}`).Status(200)
			return nil
		})
	}
	require.NoError(t, adding.Wait())
	var k messagingview.Campaign
	c.POST("/api/campaigns", fmt.Sprintf(`{"name":"Plain","type":"broadcast","templateId":%d,"audience":"all"}`,
		templates[0].ID)).Status(201).JSON(&k)
	c.POST("/api/campaigns/send", fmt.Sprintf(`{"campaignId":%d}`, k.ID)).Status(202)
	killed := <-sending.half
	nodes[killed].Kill()
	apptest.EndLeases(t, database, time.Now())
	delete(nodes, killed)
	for _, p := range nodes {
		c = p.Client()
	}
	stats := func(reached func() bool) {
		t.Helper()
		require.Eventually(t, func() bool {
			c.GET(fmt.Sprintf("/api/campaigns/%d", k.ID)).Status(200).JSON(&k)
			return reached()
		}, 20*time.Minute, 200*time.Millisecond)
	}
	requireAllSent(t, database, contacts)
	tell := func() {
		body, signature := sending.receipts()
		c.With("X-Hub-Signature-256", signature).POST("/api/webhook/social", body).Status(200)
		stats(func() bool { return k.Stats.Delivered == sending.count() })
	}
	tell()
	// Those that the killed node had recorded and not sent wait for ten minutes, because their outcome is unknown.
	stats(func() bool { return k.Stats.Sent == contacts })
	tell()
	sending.mu.Lock()
	defer sending.mu.Unlock()
	require.Len(t, sending.sent, contacts)
	for id, times := range sending.sent {
		require.Equal(t, 1, times, id)
	}
	require.Equal(t, messagingview.CampaignStats{Total: contacts, Sent: contacts, Delivered: contacts}, k.Stats)
}

// postings is a network that counts its messages, by node.
type postings struct {
	mu     sync.Mutex
	sent   map[string]int // by message
	half   chan string    // the node that has sent enough to be killed
	killAt int
}

func (n *postings) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/message_templates"):
		_, _ = io.WriteString(w, `{"data":[{"id":"1","name":"plain","status":"APPROVED","language":"en","components":[{"type":"BODY",`+
			`"text":"Hello"}]}]}`)
	case r.Method == http.MethodGet:
		_, _ = io.WriteString(w, `{"quality_rating":"GREEN"}`)
	default:
		var m struct {
			Data string `json:"biz_opaque_callback_data"`
		}
		_ = json.NewDecoder(r.Body).Decode(&m)
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.sent[m.Data]++; len(n.sent) == n.killAt {
			node, _, _ := strings.Cut(r.URL.Path[1:], "/")
			n.half <- node
			<-r.Context().Done() // until the kill: the node records no result of this part
		}
		_, _ = fmt.Fprintf(w, `{"messages":[{"id":"w.%s"}]}`, m.Data)
	}
}

// count returns how many messages the network has.
func (n *postings) count() int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return int64(len(n.sent))
}

// receipts returns the network's delivery receipts, with their signature.
func (n *postings) receipts() (body, signature string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var statuses []string
	for id := range n.sent {
		statuses = append(statuses, fmt.Sprintf(`{"id":"w.%s","status":"delivered","timestamp":"%d","recipient_id":"919812345678",`+
			`"biz_opaque_callback_data":%q}`, id, time.Now().Unix(), id))
	}
	body = fmt.Sprintf(`{"object":"chat_account","entry":[{"id":"ACC","changes":[{"field":"messages",`+
		`"value":{"metadata":{"phone_number_id":"PN1"},"statuses":[%s]}}]}]}`, strings.Join(statuses, ","))
	mac := hmac.New(sha256.New, []byte("campaign-secret"))
	_, _ = io.WriteString(mac, body)
	return body, fmt.Sprintf("sha256=%x", mac.Sum(nil))
}
