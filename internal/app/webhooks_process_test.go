package app_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
	"bahi/readmodels/ledgerview"
)

// A process is killed while it receives and handles messages. The gateway repeats all of them, and each has one draft.
func TestKilledProcessLosesAndRepeatsNoMessage(t *testing.T) {
	t.Parallel()
	data, database := t.TempDir(), apptest.Database(t)
	server := func() *apptest.Process {
		cmd := apptest.Program(t, data, "serve")
		cmd.Env = append(cmd.Env, "DATABASE_URL="+database, "GATEWAY_ALLOWED_PHONES=919812345678")
		p := apptest.Serve(t, cmd)
		p.Ready()
		return p
	}
	p := server()
	token, err := os.ReadFile(filepath.Join(data, "keys", "gateway.token"))
	require.NoError(t, err)
	const messages, killAfter = 60, 30
	send := func(url string, i int) bool {
		body := fmt.Sprintf(`{"type":"message","payload":{"id":"m%d","source":"919812345678","type":"text","payload":{"text":"payal %d gm"}}}`,
			i, i+5)
		r, err := http.Post(url+"/gateway_incoming_webhook?token="+strings.TrimSpace(string(token)), "application/json", strings.NewReader(body))
		if err != nil {
			return false
		}
		_ = r.Body.Close()
		return r.StatusCode == http.StatusOK
	}
	var sending sync.WaitGroup
	half := make(chan struct{}, messages)
	for i := range messages {
		sending.Go(func() { send(p.URL, i); half <- struct{}{} })
	}
	for range killAfter {
		<-half
	}
	p.Kill()
	sending.Wait()
	apptest.EndLeases(t, database, time.Now())

	p = server()
	for i := range messages {
		require.True(t, send(p.URL, messages-1-i))
	}
	var drafts []ledgerview.OrderDraft
	require.Eventually(t, func() bool {
		waiting := p.Client().GET("/ops/webhooks?verdict=waiting").Status(200).Header("X-Total-Count")
		p.Client().GET("/order-drafts").Status(200).JSON(&drafts)
		return waiting == "0" && len(drafts) >= messages
	}, 2*time.Minute, 50*time.Millisecond)
	distinct := map[string]bool{}
	for _, d := range drafts {
		distinct[*d.Raw] = true
	}
	require.Len(t, distinct, messages)
	require.Len(t, drafts, messages)
}
