package main_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/eventstore/audit/audittest"
	"bahi/internal/app"
)

// An installation moves its log to an event store: what was read before is read after, and people have their names.
func TestALogIsMovedToAnEventStoreAndServedFromThere(t *testing.T) {
	t.Parallel()
	if elsewhere {
		return
	}
	database, data := testDatabase(t), t.TempDir()
	bahi := func(store string, args ...string) *exec.Cmd {
		cmd := command(t, data, args...)
		cmd.Env = append(cmd.Env, "DATABASE_URL="+database, "EVENTSTORE_URL="+store)
		return cmd
	}
	before := serve(t, bahi("", "serve"))
	before.ready()
	clerk := before.client()
	account := open(clerk, "HDFC")
	post(clerk, account, deposit("2025-03-01", "12.5"))
	clerk.POST(ledger(account, "/rows"), `{"rows":[{"date":"2025-03-02","in_entries":[{"amount":1}]},{"date":"2025-03-03","in_entries":[{"amount":2}]}]}`).Status(201)
	o := office{t: t, url: before.url, sys: &app.System{Settings: app.Settings{Data: data}}}
	asha := o.person("asha@example.com")
	want := map[string]string{}
	for _, path := range []string{"/banks", ledger(account)} {
		want[path] = clerk.GET(path).Status(200).Text
	}
	known := asha.me()
	before.stop()

	program, err := binary()
	require.NoError(t, err)
	folder := t.TempDir()
	store := serveGateway(t, eventStore(t, program, folder), folder).connection(testOperatorKey)
	done := func(cmd *exec.Cmd) string {
		t.Helper()
		out, wrong, status := execute(t, cmd)
		require.Equal(t, 0, status, "%s%s", out, wrong)
		return out
	}
	done(bahi("", "events", "copy", "--to", store))

	for _, args := range [][]string{{"serve"}, {"audit", "verify", "--store"}, {"audit", "trail"}} {
		out, wrong, status := execute(t, bahi(store, args...))
		require.Equal(t, 1, status)
		require.Empty(t, out, "nobody is accused, and nothing is told of two logs as of one")
		require.Regexp(t, `This database belongs to the log bahi/\S+, and the log at hand is bahi/\S+: .*bahi audit accept-restore`, wrong)
	}
	out := done(bahi(store, "audit", "accept-restore", "--reason", "moved to the event store"))
	require.Regexp(t, `(?s)^[1-9]\d* checkpoints are abandoned, which is recorded.*another one signs from now on: bahi/`, out)
	done(bahi(store, "projections", "rebuild"))
	after := serve(t, bahi(store, "serve"))
	after.ready()
	for path, text := range want {
		require.Equal(t, text, after.client().GET(path).Status(200).Text)
	}
	o.url = after.url
	asha = person{Client: o.bearer(o.signIn("asha@example.com", goodPassword).Access)}
	now := asha.me()
	require.Equal(t, known.FirstName, now.FirstName, "people have their names")
	require.Equal(t, known.WorkspaceID, now.WorkspaceID)
	post(after.client(), account, deposit("2025-03-04", "4"))
	after.stop()
	require.Contains(t, done(bahi(store, "audit", "verify", "--store")), "VERIFIED.")
	dir, keys := filepath.Join(t.TempDir(), "archive"), audittest.File(t, "keys", []byte(done(bahi(store, "audit", "key"))))
	done(bahi(store, "audit", "export", dir))
	require.Contains(t, done(bahi(store, "audit", "verify", dir, "--key", keys)), "VERIFIED.")
	done(bahi(store, "doctor"))
	recorded := done(bahi(store, "events", "tail"))
	require.Contains(t, recorded, "CheckpointRestoreAccepted")
	require.Contains(t, recorded, "AuditKeyRotated")
}
