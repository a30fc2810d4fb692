package app_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/app"
	"bahi/internal/test/apptest"
	"bahi/internal/test/audittest"
	"bahi/internal/test/journaltest"
)

// journalServer returns the address of a gateway to another log, which has a test's journals.
func journalServer(t *testing.T) string {
	t.Helper()
	log, _ := apptest.EmptyLog(t)
	return journaltest.Served(t, log)
}

// A log gets a journal, and keeps its positions, proofs and checkpoints. Then no node serves it without the journal.
func TestALogIsCopiedToAJournalAndServedWithIt(t *testing.T) {
	t.Parallel()
	database, data, server := apptest.Database(t), t.TempDir(), journalServer(t)
	bahi := func(journal string, args ...string) *apptest.Cmd {
		return apptest.Command(t, data, args...).With("DATABASE_URL="+database, "EVENTSTORE_URL="+journal)
	}
	done := func(cmd *apptest.Cmd) string {
		t.Helper()
		out, wrong, status := apptest.Execute(t, cmd)
		require.Equal(t, 0, status, "%s%s", out, wrong)
		return out
	}
	refused := func(why string, cmd *apptest.Cmd) {
		t.Helper()
		out, wrong, status := apptest.Execute(t, cmd)
		require.NotZero(t, status)
		require.Empty(t, out)
		require.Contains(t, wrong, why)
	}
	before := apptest.Serve(t, bahi("", "serve"))
	before.Ready()
	clerk := before.Client()
	account := apptest.Open(clerk, "HDFC")
	apptest.Post(clerk, account, apptest.Deposit("2025-03-01", "12.5"))
	clerk.POST(apptest.Ledger(account, "/rows"), `{"rows":[{"date":"2025-03-02","in_entries":[{"amount":1}]},{"date":"2025-03-03",`+
		`"in_entries":[{"amount":2}]}]}`).Status(201)
	want := map[string]string{}
	for _, path := range []string{"/banks", apptest.Ledger(account)} {
		want[path] = clerk.GET(path).Status(200).Text
	}
	at := clerk.GET("/banks").Status(200).Header("Bahi-Position")
	require.Eventually(t, func() bool {
		_, _, status := apptest.Execute(t, bahi("", "audit", "proof", at))
		return status == 0
	}, app.SigningTimeout, app.PollInterval, "it is signed for")
	kept := audittest.File(t, "kept", []byte(done(bahi("", "audit", "checkpoint"))))
	refused("other", bahi("", "events", "copy", "--to", server))
	before.Stop()

	refused("the journal is empty, and the log is not", bahi(server, "serve"))
	require.Regexp(t, `^\d+ events are in the journal bahi-\S+\. From now on`, done(bahi("", "events", "copy", "--to", server)))
	refused("set EVENTSTORE_URL", bahi("", "serve"))
	after := apptest.Serve(t, bahi(server, "serve"))
	after.Ready()
	for path, text := range want {
		require.Equal(t, text, after.Client().GET(path).Status(200).Text)
	}
	apptest.Post(after.Client(), account, apptest.Deposit("2025-03-04", "4"))
	after.Stop()
	require.Contains(t, done(bahi(server, "audit", "verify", "--store", "--checkpoint", kept)), "VERIFIED.")
	backup := filepath.Join(t.TempDir(), "backup")
	done(bahi(server, "backup", backup))
	done(bahi(server, "restore", "--drill", backup))
}
