package messaginghttp_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
	"bahi/internal/test/worktest"
)

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
