package messaginghttp_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/commands/messagingcmd"
	"bahi/internal/test/apptest"
	"bahi/internal/test/worktest"
)

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
