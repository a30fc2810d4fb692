//go:build soak

package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/eventstore/audit/audittest"
	"bahi/eventstore/esdb/esdbtest"
	"bahi/internal/app"
	"bahi/internal/app/apptest"
	"bahi/internal/pgtest"
	"bahi/migrations"
)

// An auditor verifies the archive of a log in EventStoreDB without that server, and finds a changed line. Without the server, the
// archive still has the books.
func TestALogInEventStoreDBIsVerifiedAndReadFromItsArchive(t *testing.T) {
	t.Parallel()
	with := apptest.Settings(t, pgtest.Template(t, "migrated", migrations.Up))
	with.EventStore = esdbtest.Start(t, 1).URL()
	o := apptest.StartAs(t, with)
	bahi := func(args ...string) string {
		t.Helper()
		cmd := apptest.Command(t, with.Data, args...)
		cmd.Env = append(cmd.Env, "DATABASE_URL="+o.Database, "EVENTSTORE_URL="+with.EventStore)
		out, wrong, status := apptest.Execute(t, cmd)
		require.Zero(t, status, wrong)
		return out
	}
	clerk, dir := o.Clerk(apptest.Home), filepath.Join(t.TempDir(), "books")
	account := apptest.Open(clerk, "HDFC")
	apptest.Post(clerk, account, apptest.Deposit("2025-03-01", "12.5"))
	bahi("audit", "export", dir, "--plain")
	older := filepath.Join(t.TempDir(), "older")
	require.NoError(t, os.CopyFS(older, os.DirFS(dir)))
	clerk.POST(apptest.Ledger(account, "/rows"), `{"rows":[{"date":"2025-03-02","in_entries":[{"amount":1}]},{"date":"2025-03-03","in_entries":[{"amount":2}]}]}`).Status(201)
	const books = "03-01 12.5, 03-02 13.5, 03-03 15.5"
	require.Equal(t, books, apptest.Balances(clerk, apptest.Ledger(account)))
	o.Signed()
	kept, key := audittest.File(t, "kept.txt", []byte(bahi("audit", "checkpoint"))), audittest.File(t, "key.txt", []byte(bahi("audit", "key")))
	bahi("audit", "export", dir, "--plain", "--append")
	withKeys := filepath.Join(t.TempDir(), "keys")
	bahi("events", "export", withKeys, "--with-keys")

	verifier := filepath.Join(t.TempDir(), "bahi-verify")
	text, err := exec.Command("go", "build", "-o", verifier, "bahi/cmd/bahi-verify").CombinedOutput()
	require.NoError(t, err, "%s", text)
	verify := func(dir string) (said string, status int) {
		t.Helper()
		said, wrong, status := apptest.Execute(t, &apptest.Cmd{Program: verifier, Args: []string{"archive", dir, "--checkpoint", kept, "--key", key, "--compare", older}})
		return said + wrong, status
	}
	said, status := verify(dir)
	require.Zero(t, status, said)
	require.Regexp(t, `\nVERIFIED\. The first \d+ events are what was signed; \d+ checkpoints agree\.\n`, said)
	forged := filepath.Join(t.TempDir(), "forged")
	require.NoError(t, os.CopyFS(forged, os.DirFS(dir)))
	segment := filepath.Join(forged, "segments", "00000001.ndjson")
	lines, err := os.ReadFile(segment)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(segment, []byte(strings.Replace(string(lines), `":12.5`, `":92.5`, 1)), 0o600))
	said, status = verify(forged)
	require.Equal(t, 1, status, said)
	require.Regexp(t, `TAMPERED\. The first bad event is event 5: the events before it are those of \S+, which is proven\..* In BankRowAdded bankrow-1@0 .* these differ: payload: in_entries\.`, said)
	require.Contains(t, said, "The archive is broken: segments/00000001.ndjson: its text is not what the manifest says")
	o.Stop()

	copied := pgtest.DB(t)
	apptest.Denied(t, copied, "bahi: the positions of this archive's log have gaps, as those of EventStoreDB have", "events", "import", withKeys)
	out, wrong := apptest.Done(t, copied, "events", "import", withKeys, "--renumber")
	require.NotContains(t, out, o.Sys.Store.ID().String())
	require.Contains(t, wrong, "They are another installation's; this one signs with a key of its own.")
	out, _ = apptest.Done(t, copied, "doctor")
	require.Equal(t, len(app.AllProjections()), strings.Count(out, " is what the log says"), out)
	c := apptest.StartOn(t, copied)
	clerk = c.Operator().With("Bahi-Workspace", apptest.Home)
	require.Equal(t, books, apptest.Balances(clerk, apptest.Ledger(account)), "rows name their bulk's event by its new position")
	c.Signed()
	c.Stop()
	out, _ = apptest.Done(t, copied, "audit", "verify", "--store")
	require.Contains(t, out, "VERIFIED")
}
