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
	herOrder    = "payal 250 gm for Xylocarpa"
	herWork     = "Harpsichordist of the house"
)

// everywhere makes one person a user, a buyer, a contact of a company, a contact of a channel and a sender of orders. It returns the user
// to whose company the person wrote.
func everywhere(t *testing.T, o *apptest.Server) (seller apptest.Person) {
	t.Helper()
	seller = o.Person("seller@example.com")
	o.Person(herAddress).PUT(apptest.Me, `{"first_name":"Zéphyrine","last_name":"Brandywine","phone":"+`+herPhone+`"}`).Status(200)
	var company struct{ ID string }
	require.NoError(t, json.Unmarshal([]byte(seller.POST("/api/v1/companies", `{"name":"Asha Mills"}`).Status(201).Text), &company))
	o.Anonymous().POST("/api/v1/enquiries", fmt.Sprintf(`{"to_company_id":%q,"user_name":"Zéphyrine Brandywine","user_email":%q,`+
		`"user_phone":"+%s","message":%q}`,
		company.ID, herAddress, herPhone, herQuestion)).Status(201)
	o.Anonymous().POST("/api/v1/contacts", fmt.Sprintf(`{"first_name":"Zéphyrine","last_name":"Brandywine","email":%q,"phone":"+%s",`+
		`"company_id":%q,"designation":%q}`,
		herAddress, herPhone, company.ID, herWork)).Status(201)
	var channel struct{ ID int64 }
	made := seller.POST("/api/channels", `{"name":"Sales","type":"chat","settings":{"dialect":"envelope_v2","appName":"Mills"}}`).Status(201)
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
		return strings.Contains(seller.GET("/api/contacts").Text, "Brandywine") && strings.Contains(o.Operator().GET("/order-drafts").Text,
			"Xylocarpa") &&
			!strings.Contains(seller.GET("/api/v1/enquiries").Text, `"status":"queued"`)
	}, time.Minute, 200*time.Millisecond) // the limit allows it that often
	return seller
}

// rebuild rebuilds the tables in which the person and the books are.
func rebuild(t *testing.T, data string) {
	t.Helper()
	for {
		_, wrong, status := apptest.Execute(t, apptest.Command(t, data, "projections", "rebuild", "users", "workspaces", "books"))
		if strings.Contains(wrong, "the projection is busy with a long transaction") {
			continue // a batch of the server took ten seconds, as on a busy machine; the command continues where it was
		}
		require.Equal(t, 0, status, wrong)
		return
	}
}

func TestErasedUserLeavesNoTrace(t *testing.T) {
	t.Parallel()
	broker, data := feedtest.Start(t), pgtest.Dir(t)
	apptest.EndCluster(t, data)
	serving := func() *apptest.Process {
		cmd := apptest.Command(t, data, "serve").With("BAHI_DELETION_GRACE=1ms", "BAHI_ADMIN_EMAIL=office@example.org", "BAHI_LOG_LEVEL=DEBUG",
			"BAHI_SCRUB_EVERY=1ms", "BAHI_LIMIT_AUTH=1000/1m", "BAHI_LIMIT_USERS_PICTURE=1000/1m", "FEED_URL="+broker.Address,
			"GATEWAY_WEBHOOK_TOKEN="+hookToken, "GATEWAY_ALLOWED_PHONES="+herPhone)
		p := apptest.Serve(t, cmd)
		p.Ready()
		return p
	}
	p := serving()
	l := apptest.Live(t, p, data)
	require.Equal(t, "03-01 12.5", l.Books())
	require.Contains(t, l.Members(l.Asha.Workspace), "Brandywine")
	seller := everywhere(t, l.Server)
	hers := []string{herAddress, "Brandywine", herPhone[2:], herQuestion, herMessage, herOrder, herWork}
	l.Known.Know(hers...)
	// A rebuild leaves the previous tables, and both tables' values in the planner's statistics.
	rebuild(t, data)
	apptest.Cluster(t, data, func(url string) {
		conn := pgtest.Connect(t, url)
		pgtest.Exec(t, conn, `analyze`)
		kept := strings.Join(append(l.Known.InFiles(data), l.Known.InDatabase(url)...), "\n")
		for _, text := range append(append(hers, apptest.Addresses[:]...), "Zéphyrine", "Quillfeather", "the stored picture") {
			require.Contains(t, kept, ": "+text+"\n", "the search finds kept values")
		}
		require.Contains(t, kept, "pg_catalog.pg_statistic: "+apptest.Addresses[2])
		require.NotContains(t, kept, apptest.Marker, "the picture's metadata are never stored")
	})

	// A long transaction sees the old state of the tables.
	apptest.Cluster(t, data, func(url string) {
		reader := pgtest.Connect(t, url)
		pgtest.Exec(t, reader, `begin isolation level repeatable read; select count(*) from pg_class`)
		l.Person.POST("/api/v1/users/me/delete-request", nil).Status(200)
		p.Until(func(said, _ string) bool {
			return strings.Contains(said, `msg="erasure waits for older transactions to end"`)
		})
		pgtest.Exec(t, reader, `rollback`)
		p.Until(func(said, _ string) bool {
			return strings.Contains(said, `msg="user erased" user=`+l.Id) && strings.Contains(said, `msg="scrubbed Postgres of erased users"`)
		})
		// The operator erases a person of whom an address and a phone are known.
		l.Operator().POST("/ops/erasures", fmt.Sprintf(`{"email":%q,"phone":"+%s"}`, herAddress, herPhone)).Status(202)
		p.Until(func(said, _ string) bool { return strings.Count(said, `msg="user erased"`) == 2 })
		var left []string
		require.Eventually(t, func() bool {
			left = append(l.Known.InFiles(data), l.Known.InDatabase(url)...)
			return len(left) == 0
		}, 2*time.Minute, 500*time.Millisecond, "%q", &left)
	})
	require.Empty(t, l.Known.In("the server's log", []byte(p.Text())))
	require.Contains(t, l.Mailed("office@example.org", "An account is to be deleted", 1), l.Id)
	l.Person.GET("/api/v1/users/me").Status(401)
	members := l.Members(l.Workspace)
	require.NotContains(t, members, l.Id)
	require.NotContains(t, l.Members(l.Asha.Workspace), l.Id)
	require.Equal(t, "03-01 12.5", l.Books(), "the books stay")
	l.Bearer(l.SignIn("seller@example.com", apptest.GoodPassword).Access).GET("/api/v1/enquiries").Status(200).Contains(`"status":"pending"`)
	seller.GET("/api/contacts").Status(200)
	for _, m := range broker.Messages("BAHI", broker.Count("BAHI")) {
		require.Empty(t, l.Known.In("the feed's topic", m.Data()))
	}
	backup := filepath.Join(t.TempDir(), "backup")
	_, wrong, status := apptest.Execute(t, apptest.Command(t, data, "backup", backup))
	require.Zero(t, status, wrong)
	require.Empty(t, l.Known.InFiles(backup))
	url := pgtest.DB(t)
	_, wrong, status = apptest.Execute(t, apptest.Command(t, t.TempDir(), "restore", backup).With("DATABASE_URL="+url))
	require.Zero(t, status, wrong)
	require.Empty(t, l.Known.InDatabase(url), "a backup after it has nothing either")

	l.Anonymous().POST("/api/v1/auth/email-change/undo", map[string]string{"token": l.Undo}).Problem(400, "Invalid or expired undo token")

	rebuild(t, data)
	require.Equal(t, members, l.Members(l.Workspace))
	require.Equal(t, "03-01 12.5", l.Books())
	apptest.Healthy(t, apptest.Command(t, data, "doctor"))
	p.Stop()
	require.Empty(t, l.Known.InFiles(data), "nothing is left after the shutdown")

	again := apptest.Visited(serving(), data)
	require.Equal(t, apptest.Addresses[2], again.Person(apptest.Addresses[2]).Me().Email, "the address is free")
	again.Bearer(again.SignIn("asha@example.org", apptest.GoodPassword).Access).POST("/api/v1/workspaces/"+l.Asha.Workspace+"/invitations",
		fmt.Sprintf(`{"email":%q,"permissions":{"ledger":"read"}}`, apptest.Addresses[2])).Status(201)
	again.Mailed(apptest.Addresses[2], apptest.InviteSubject, 1)
}
