package console_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/app/apptest"
	views "bahi/readmodels/ops"
)

func TestWebhooksDraftsAndRepliesAreShown(t *testing.T) {
	t.Parallel()
	with := apptest.Settings(t, apptest.Database(t))
	with.Outside.AllowedPhones = []string{"+91 98123 45678"}
	o := apptest.StartAs(t, with)
	token, err := os.ReadFile(filepath.Join(with.Data, "keys", "gateway.token"))
	require.NoError(t, err)
	gateway := o.Stranger().With("X-Gateway-Token", strings.TrimSpace(string(token)), "Content-Type", "application/json")
	v := o.Sign()
	v.Get("/webhooks").Is(200).Says("No call matches.")
	v.Get("/drafts").Is(200).Says("No draft waits.")
	gateway.POST("/gateway_incoming_webhook", `{"nonsense": <script>`).Status(200)
	gateway.POST("/gateway_incoming_webhook", fmt.Sprintf(
		`{"type":"message","timestamp":%d,"payload":{"id":"m1","source":"919812345678","type":"text","payload":{"text":"payal <b>250</b> gm"}}}`, time.Now().UnixMilli())).Status(200)
	var calls []views.Webhook
	require.Eventually(t, func() bool {
		o.Operator().GET("/ops/webhooks?verdict=parked").Status(200).JSON(&calls)
		return len(calls) == 1 && strings.Contains(v.Get("/webhooks").Words(), "handled order draft") && strings.Contains(v.Get("/outbox?port=gateway").Words(), "Our staff will confirm it.")
	}, time.Minute, 20*time.Millisecond)
	v.Get("/webhooks").Says("gateway", "parked", "handled", "order draft")
	v.Get("/webhooks?verdict=parked").Says("1 calls")
	v.Get("/webhooks?verdict=nonsense&page=0").Says("2 calls")
	path := fmt.Sprint("/webhooks/", calls[0].ID)
	shown := v.Get(path).Is(200).Says("the body is in no known dialect", `{"nonsense":`)
	require.NotContains(t, shown.Text, "<script>\n")
	v.Post(path + "/replay").Leads("/console/webhooks?done=replay")
	v.Get("/webhooks?done=replay").Says("The call is handled again.")
	v.Get("/webhooks/x").Is(404).Says("Webhook call not found")
	v.Get("/webhooks/11111111-1111-4111-8111-111111111111").Is(404)
	drafts := v.Get("/drafts").Is(200).Says("1 drafts", "+919812345678", "payal", "rules")
	require.Contains(t, drafts.Text, "payal &lt;b&gt;250&lt;/b&gt; gm")
	v.Get("/drafts?page=9").Says("There is nothing on this page.")
	v.Get("/outbox?port=gateway").Says("Order draft", "+919812345678", "kept", "Our staff will confirm it.")
}
