//go:build soak

package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/eventstore/esdb/esdbtest"
	"bahi/internal/app"
	"bahi/internal/app/apptest"
	"bahi/internal/pgtest"
	"bahi/migrations"
)

// Each command works on a log in EventStoreDB as on one in Postgres, or says that it cannot.
func TestCommandsWorkOnALogInEventStoreDBOrSaySo(t *testing.T) {
	t.Parallel()
	database, store := "DATABASE_URL="+pgtest.Template(t, "migrated", migrations.Up), "EVENTSTORE_URL="+esdbtest.Start(t, 1).URL()
	run := func(args string) (out, wrong string, status int) {
		cmd := apptest.Command(t, t.TempDir(), strings.Fields(args)...)
		cmd.Env = append(cmd.Env, database, store)
		return apptest.Execute(t, cmd)
	}
	server := apptest.Command(t, t.TempDir(), "serve")
	server.Env = append(server.Env, database, store)
	p := apptest.Serve(t, server)
	p.Ready()
	account := apptest.Open(p.Client(), "HDFC")
	at := p.Client().POST(apptest.Ledger(account), apptest.Deposit("2025-03-01", "12.5")).Status(201).Header("Bahi-Position")
	require.Eventually(t, func() bool {
		_, _, status := run("audit proof " + at)
		return status == 0
	}, app.SignedWithin, app.PollEvery, "it is signed for")
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	public, wrong, status := run("audit key")
	require.Zero(t, status, wrong)
	require.NoError(t, os.WriteFile(in("keys"), []byte(public), 0o600))

	for _, step := range []struct{ args, says string }{
		{"events tail -n 1", `^ +` + at + `  \S+  BankRowAdded`},
		{"events show " + at, `type      BankRowAdded`},
		{"events show --stream bankrow-1", `position  ` + at},
		{"events copy --to " + pgtest.DB(t), `^4 events copied`},
		{"audit checkpoint", `/`},
		{"audit proof " + at, `^c2sp.org/tlog-proof@v1`},
		{"audit verify --store --key " + in("keys"), `^VERIFIED`},
		{"events export " + in("archive"), `^4 events of the log`},
		{"audit export --plain " + in("plain"), `^4 events of the log \S+; segments: 1, checkpoints: [1-9]`},
		{"audit export --append " + in("plain"), `^4 events of the log \S+; segments: 1, checkpoints: [1-9]`},
		{"audit verify " + in("plain") + " --key " + in("keys"), `^VERIFIED`},
		{"audit trail --format json", `"position":` + at + `,.*"change":"added"`},
		{"audit trail --format csv --account 1 --kind bankrow", at + `,.*12.5`},
		{"doctor", `(?m)^books: generation 1 is what the log says, \d+ rows at position ` + at},
		{"projections list", `(?m)^books +\d+ +1 +live +` + at + ` +0 *$`},
		{"projections rebuild --dry-run books", `^books: 4 events to fold`},
		{"projections rebuild books --keep 1h", `^books: generation 2 is read, built up to position ` + at},
		{"projections rollback books", `^books: generation 1 is read again`},
		{"projections pause users", `^users: paused`},
		{"projections resume users", `^users: goes on`},
		{"projections build", `^everything that this version reads is built`},
		{"reactors list", `(?m)^\S+ +\S+ +\d+ +0 *$`},
		{"apikey list", ``},
		{"user list", ``},
	} {
		out, wrong, status := run(step.args)
		require.Zero(t, status, "%s: %s", step.args, wrong)
		require.Regexp(t, step.says, out, step.args)
	}
	for args, why := range map[string]string{
		"events show " + at + "1":                        "the log has no event at position",
		"events show 5":                                  "the log has no event at position 5",
		"audit proof 5":                                  "position: is not in a tree of",
		"backup " + in("backup"):                         "works on a log in Postgres",
		"restore " + in("backup"):                        "works on a log in Postgres",
		"events import " + in("archive"):                 "works on a log in Postgres",
		"projections skip users --position 5 --reason x": "The projection is not parked at that event",
	} {
		_, wrong, status := run(args)
		require.NotZero(t, status, args)
		require.Contains(t, wrong, why, args)
	}
	require.Equal(t, "03-01 12.5", apptest.Balances(p.Client(), apptest.Ledger(account)), "the server still works")
}
