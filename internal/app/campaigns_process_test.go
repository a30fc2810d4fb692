package app_test

import (
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

	"bahi/internal/app/apptest"
	views "bahi/readmodels/messaging"
)

// A process is killed while it sends a campaign. The next one goes on, and the network gets no message twice. What was being sent at that moment, at most a
// second's messages, waits for ten minutes, since nobody knows whether it was.
func TestAKilledProcessSendsNoCampaignMessageTwice(t *testing.T) {
	t.Parallel()
	const contacts, killAfter, inDoubt = 80, 25, 20
	var (
		mu   sync.Mutex
		sent = map[string]int{}
		half = make(chan struct{})
	)
	network := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/message_templates"):
			_, _ = io.WriteString(w, `{"data":[{"id":"1","name":"plain","status":"APPROVED","language":"en","components":[{"type":"BODY","text":"Hello"}]}]}`)
		case r.Method == http.MethodGet:
			_, _ = io.WriteString(w, `{"quality_rating":"GREEN"}`)
		default:
			var m struct {
				Data string `json:"biz_opaque_callback_data"`
			}
			_ = json.NewDecoder(r.Body).Decode(&m)
			mu.Lock()
			defer mu.Unlock()
			if sent[m.Data]++; len(sent) == killAfter {
				close(half)
			}
			_, _ = fmt.Fprintf(w, `{"messages":[{"id":"w.%s"}]}`, m.Data)
		}
	}))
	t.Cleanup(network.Close)
	data, database := t.TempDir(), apptest.Database(t)
	server := func() *apptest.Process {
		cmd := apptest.Program(t, data, "serve")
		cmd.Env = append(cmd.Env, "DATABASE_URL="+database, "CHAT_BASE_URL="+network.URL, "BAHI_FETCH_ALLOW="+strings.TrimPrefix(network.URL, "http://"))
		p := apptest.Serve(t, cmd)
		p.Ready()
		return p
	}
	p := server()
	c := p.Client()
	c.POST("/api/channels", `{"name":"Sales","type":"chat","apiKey":"k","settings":{"senderId":"PN1","accountId":"ACC"}}`).Status(201)
	var templates []views.Template
	c.GET("/api/chat/templates").Status(200).JSON(&templates)
	var adding errgroup.Group
	adding.SetLimit(8)
	for i := range contacts {
		adding.Go(func() error {
			var k views.Contact
			c.POST("/api/contacts", fmt.Sprintf(`{"name":"x","phone":"98123%05d"}`, 10001+i)).Status(201).JSON(&k)
			c.PATCH(fmt.Sprintf("/api/contacts/%d", k.ID), `{"optIn":true}`).Status(200)
			return nil
		})
	}
	require.NoError(t, adding.Wait())
	var k views.Campaign
	c.POST("/api/campaigns", fmt.Sprintf(`{"name":"Plain","type":"broadcast","templateId":%d,"audience":"all"}`, templates[0].ID)).Status(201).JSON(&k)
	c.POST("/api/campaigns/send", fmt.Sprintf(`{"campaignId":%d}`, k.ID)).Status(202)
	<-half
	p.Kill()
	p = server()
	require.Eventually(t, func() bool {
		p.Client().GET(fmt.Sprintf("/api/campaigns/%d", k.ID)).Status(200).JSON(&k)
		return k.Stats.Sent >= contacts-inDoubt
	}, 2*time.Minute, 100*time.Millisecond)
	mu.Lock()
	defer mu.Unlock()
	for id, times := range sent {
		require.Equal(t, 1, times, id)
	}
	require.EqualValues(t, contacts, k.Stats.Total)
	require.GreaterOrEqual(t, len(sent), contacts-inDoubt)
}
