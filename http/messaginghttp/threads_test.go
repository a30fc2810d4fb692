package messaginghttp_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
)

// The mails of a channel to a contact stay in the network's thread, until the channel has another name: a thread has one subject.
func TestMailsToAContactStayInTheirThread(t *testing.T) {
	t.Parallel()
	var (
		mu    sync.Mutex
		asked []string
		begun int
	)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		var mail struct{ ThreadID string }
		if r.Method == http.MethodPost {
			_ = json.NewDecoder(r.Body).Decode(&mail)
			asked = append(asked, mail.ThreadID)
			if mail.ThreadID == "" {
				begun++
				mail.ThreadID = fmt.Sprintf("t%d", begun)
			}
		}
		_ = json.NewEncoder(w).Encode(map[string]string{"emailAddress": "shop@example.org", "id": fmt.Sprintf("g%d", len(asked)),
			"threadId": mail.ThreadID})
	}))
	t.Cleanup(server.Close)
	with := apptest.Settings(t, apptest.Database(t))
	with.Outside.GmailURL, with.Outside.FetchAllow = server.URL, []string{strings.TrimPrefix(server.URL, "http://")}
	c := agent(apptest.StartAs(t, with), apptest.Home)
	asha, ravi := made(t, c, `{"name":"Asha","email":"asha@example.org"}`), made(t, c, `{"name":"Ravi","email":"ravi@example.org"}`)
	k := channelOf(t, c, `{"name":"Sales","type":"gmail","accessToken":"t"}`)
	send := func(to int64) {
		c.POST(at(to)+"/messages", fmt.Sprintf(`{"channelId":%d,"text":"Hello"}`, k.ID)).Status(201)
	}
	send(asha.ID)
	send(asha.ID)
	send(ravi.ID)
	send(asha.ID)
	c.PATCH(channelAt(k.ID), `{"name":"Shop"}`).Status(200)
	send(asha.ID)
	send(asha.ID)
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, []string{"", "t1", "", "t1", "", "t3"}, asked)
}
