package app_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/eventstore/audit/audittest"
	"bahi/internal/app"
	"bahi/internal/app/apptest"
)

// An installation moves its log to an event store: all answers stay the same, names of people included.
func TestALogIsMovedToAnEventStoreAndServedFromThere(t *testing.T) {
	t.Parallel()
	if apptest.Elsewhere {
		return
	}
	database, data := apptest.Database(t), t.TempDir()
	bahi := func(store string, args ...string) *apptest.Cmd {
		cmd := apptest.Command(t, data, args...)
		cmd.Env = append(cmd.Env, "DATABASE_URL="+database, "EVENTSTORE_URL="+store)
		return cmd
	}
	before := apptest.Serve(t, bahi("", "serve"))
	before.Ready()
	clerk := before.Client()
	account := apptest.Open(clerk, "HDFC")
	apptest.Post(clerk, account, apptest.Deposit("2025-03-01", "12.5"))
	clerk.POST(apptest.Ledger(account, "/rows"), `{"rows":[{"date":"2025-03-02","in_entries":[{"amount":1}]},{"date":"2025-03-03","in_entries":[{"amount":2}]}]}`).Status(201)
	o := apptest.Office{T: t, URL: before.URL, Sys: &app.System{Settings: app.Settings{Data: data}}}
	asha := o.Person("asha@example.com")
	want := map[string]string{}
	for _, path := range []string{"/banks", apptest.Ledger(account)} {
		want[path] = clerk.GET(path).Status(200).Text
	}
	known := asha.Me()
	before.Stop()

	folder := t.TempDir()
	store := apptest.ServeGateway(t, apptest.EventStore(t, "", folder), folder).Connection(apptest.OperatorKey)
	done := func(cmd *apptest.Cmd) string {
		t.Helper()
		out, wrong, status := apptest.Execute(t, cmd)
		require.Equal(t, 0, status, "%s%s", out, wrong)
		return out
	}
	done(bahi("", "events", "copy", "--to", store))

	for _, args := range [][]string{{"serve"}, {"audit", "verify", "--store"}, {"audit", "trail"}} {
		out, wrong, status := apptest.Execute(t, bahi(store, args...))
		require.NotZero(t, status)
		require.Empty(t, out, "no log line takes the two logs for one")
		require.Regexp(t, `This database belongs to the log bahi/\S+, but the configured log is bahi/\S+: .*bahi audit accept-restore`, wrong)
	}
	out := done(bahi(store, "audit", "accept-restore", "--reason", "moved to the event store"))
	require.Regexp(t, `(?s)^[1-9]\d* checkpoints are abandoned, which is recorded.*another one signs from now on: bahi/`, out)
	done(bahi(store, "projections", "rebuild"))
	after := apptest.Serve(t, bahi(store, "serve"))
	after.Ready()
	for path, text := range want {
		require.Equal(t, text, after.Client().GET(path).Status(200).Text)
	}
	o.URL = after.URL
	asha = apptest.Person{Client: o.Bearer(o.SignIn("asha@example.com", apptest.GoodPassword).Access)}
	now := asha.Me()
	require.Equal(t, known.FirstName, now.FirstName, "names of people are still readable")
	require.Equal(t, known.WorkspaceID, now.WorkspaceID)
	apptest.Post(after.Client(), account, apptest.Deposit("2025-03-04", "4"))
	after.Stop()
	require.Contains(t, done(bahi(store, "audit", "verify", "--store")), "VERIFIED.")
	dir, keys := filepath.Join(t.TempDir(), "archive"), audittest.File(t, "keys", []byte(done(bahi(store, "audit", "key"))))
	done(bahi(store, "audit", "export", dir))
	require.Contains(t, done(bahi(store, "audit", "verify", dir, "--key", keys)), "VERIFIED.")
	done(bahi(store, "doctor"))
	recorded := done(bahi(store, "events", "tail"))
	require.Contains(t, recorded, "CheckpointRestoreAccepted")
	require.Contains(t, recorded, "AuditKeyRotated")
}
