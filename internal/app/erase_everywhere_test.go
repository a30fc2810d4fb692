package app_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
	"bahi/internal/test/feedtest"
	"bahi/internal/test/pgtest"
)

const (
	hookToken   = "a token of the gateway"
	herAddress  = "zephyrine.quill@example.org"
	herPhone    = "919765401234"
	herQuestion = "Marmalade-coloured bangles, please"
	herMessage  = "Is my quintessential nosepin ready"
	herItem     = "quandong"
	herOrder    = herItem + " 250 gm for Xylocarpa"
	herWork     = "Harpsichordist of the house"
)

// everywhere makes one person a user, a buyer, a contact of a company, a contact of a channel and a sender of orders.
func everywhere(t *testing.T, o *apptest.Server) (asha apptest.Person) {
	t.Helper()
	asha = o.Person("asha@example.com")
	o.Person(herAddress).PUT(apptest.Me, `{"first_name":"Zéphyrine","last_name":"Brandywine","phone":"+`+herPhone+`"}`).Status(200)
	var company struct{ ID string }
	require.NoError(t, json.Unmarshal([]byte(asha.POST("/api/v1/companies", `{"name":"Asha Mills"}`).Status(201).Text), &company))
	o.Anonymous().POST("/api/v1/enquiries", fmt.Sprintf(`{"to_company_id":%q,"user_name":"Zéphyrine Brandywine","user_email":%q,`+
		`"user_phone":"+%s","message":%q}`,
		company.ID, herAddress, herPhone, herQuestion)).Status(201)
	o.Anonymous().POST("/api/v1/contacts", fmt.Sprintf(`{"first_name":"Zéphyrine","last_name":"Brandywine","email":%q,"phone":"+%s",`+
		`"company_id":%q,"designation":%q}`,
		herAddress, herPhone, company.ID, herWork)).Status(201)
	var channel struct{ ID int64 }
	made := asha.POST("/api/channels", `{"name":"Sales","type":"chat","settings":{"dialect":"envelope_v2","appName":"Mills"}}`).Status(201)
	require.NoError(t, json.Unmarshal([]byte(made.Text), &channel))
	o.Operator().POST(fmt.Sprintf("/ops/channels/%d/confirm", channel.ID), "").Status(200)
	call := o.Anonymous().With("X-Gateway-Token", hookToken)
	call.POST("/api/webhooks/gateway/incoming_msg", fmt.Sprintf(
		`{"app":"Mills","version":2,"type":"message","payload":{"id":"m1","source":%q,"type":"text","payload":{"text":%q},`+
			`"sender":{"name":"Zéphyrine Brandywine"}}}`, herPhone, herMessage)).Status(200)
	call.POST("/gateway_incoming_webhook", fmt.Sprintf(
		`{"type":"message","timestamp":%d,"payload":{"id":"o1","source":%q,"type":"text","payload":{"text":%q}}}`, time.Now().UnixMilli(),
		herPhone, herOrder)).Status(200)
	require.Eventually(t, func() bool {
		return strings.Contains(asha.GET("/api/contacts").Text, "Brandywine") && strings.Contains(o.Operator().GET("/order-drafts").Text,
			"Xylocarpa") &&
			!strings.Contains(asha.GET("/api/v1/enquiries").Text, `"status":"queued"`)
	}, time.Minute, 200*time.Millisecond) // the limit allows it that often
	return asha
}

func TestAPersonIsErasedFromAllAreas(t *testing.T) {
	t.Parallel()
	broker, data := feedtest.Start(t), pgtest.Dir(t)
	apptest.EndCluster(t, data)
	cmd := apptest.Command(t, data, "serve")
	cmd.Env = append(cmd.Env, "BAHI_DELETION_GRACE=1ms", "BAHI_SCRUB_EVERY=1ms", "BAHI_LIMIT_AUTH=1000/1m", "FEED_URL="+broker.Address,
		"GATEWAY_WEBHOOK_TOKEN="+hookToken, "GATEWAY_ALLOWED_PHONES="+herPhone)
	p := apptest.Serve(t, cmd)
	p.Ready()
	o := apptest.Visited(p, data)
	asha := everywhere(t, o)
	known := apptest.NewTraces(t)
	known.Know(herAddress, "Zéphyrine", "Brandywine", herPhone[2:], herQuestion, herMessage, herOrder, herItem, "Xylocarpa", herWork)
	anywhere := func() (found []string) {
		apptest.Cluster(t, data, func(url string) { found = append(known.InFiles(data), known.InDatabase(url)...) })
		return found
	}
	before := strings.Join(anywhere(), "\n")
	for _, text := range []string{herAddress, "Brandywine", herPhone[2:], herQuestion, herMessage, herOrder, herWork} {
		require.Contains(t, before, ": "+text, "the search finds kept values")
	}

	o.Operator().POST("/ops/erasures", fmt.Sprintf(`{"email":%q,"phone":"+%s"}`, herAddress, herPhone)).Status(202)
	p.Until(func(said, _ string) bool { return strings.Contains(said, `msg="user erased"`) })
	var left []string
	require.Eventually(t, func() bool {
		left = anywhere()
		return len(left) == 0
	}, 2*time.Minute, 500*time.Millisecond)
	require.Empty(t, known.In("the server's log", []byte(p.Text())))
	o.Bearer(o.SignIn("asha@example.com", apptest.GoodPassword).Access).GET("/api/v1/enquiries").Status(200).Contains(`"status":"pending"`)
	asha.GET("/api/contacts").Status(200)

	for _, m := range broker.Messages("BAHI", broker.Count("BAHI")) {
		require.Empty(t, known.In("the feed's topic", m.Data()))
	}
	kept := filepath.Join(t.TempDir(), "backup")
	_, wrong, status := apptest.Execute(t, apptest.Command(t, data, "backup", kept))
	require.Zero(t, status, wrong)
	require.Empty(t, known.InFiles(kept))
	url := pgtest.DB(t)
	restored := apptest.Command(t, t.TempDir(), "restore", kept)
	restored.Env = append(restored.Env, "DATABASE_URL="+url)
	_, wrong, status = apptest.Execute(t, restored)
	require.Zero(t, status, wrong)
	require.Empty(t, known.InDatabase(url), "a backup after it has nothing either")
	apptest.Healthy(t, apptest.Command(t, data, "doctor"))
}
