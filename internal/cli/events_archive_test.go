package cli_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"bahi/domain/audit"
	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/archive"
	"bahi/eventstore/tlog"
	"bahi/internal/cli/events"
	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/internal/test/audittest"
	"bahi/internal/test/pgtest"
	"bahi/internal/test/worktest"
)

// segments returns the files with an archive's events.
func segments(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(filepath.Join(dir, "segments"))
	require.NoError(t, err)
	for _, e := range entries {
		text := worktest.File(t, filepath.Join(dir, "segments", e.Name()))
		files[e.Name()] = string(text)
	}
	require.NotEmpty(t, files)
	return files
}

func TestImportedLogServesTheSameAnswers(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	asha := o.Person("asha@example.com")
	account := apptest.Open(asha.Client, "HDFC")
	apptest.Post(asha.Client, account, apptest.Deposit("2025-03-01", "12.5"))
	key := o.Key(apptest.Home, `{"ledger":"write"}`).Key
	clerk := o.Bearer(key)
	till := apptest.Open(clerk, "Till")
	row := apptest.Post(clerk.With("Idempotency-Key", "bill 214"), till, apptest.Deposit("2025-03-02", "7"))
	first := o.Signed()
	o.Rotated()
	for range 2 { // an archive omits the day's checkpoints after that of the rotation, except the last one
		apptest.Open(clerk, "Kotak")
		o.Signed()
	}
	apptest.Open(clerk, "SBI")
	last, keys := o.Signed(), o.Operator().GET("/audit/key?format=text").Status(200).Text
	require.Equal(t, 2, strings.Count(keys, "\n"))
	head, dir := o.Head(), filepath.Join(t.TempDir(), "archive")
	out, _ := apptest.Done(t, o.Database, "events", "export", dir, "--with-keys")
	require.Equal(t, strconv.FormatInt(head, 10)+" events of the log "+o.Sys.Store.ID().String()+", in 1 segments\n", out)
	o.Stop()

	copied := pgtest.DB(t)
	out, wrong := apptest.Done(t, copied, "events", "import", dir)
	require.True(t, strings.HasPrefix(out, strconv.FormatInt(head, 10)+" events; this is the log "+o.Sys.Store.ID().String()+"\n"), out)
	require.Regexp(t, `\nCheckpoints that hold, and are kept: \d\. The server of this log continues to sign with the same key\.\n$`, out)
	require.Empty(t, wrong)
	require.Contains(t, apptest.Opened(t, copied), "asha@example.com")
	again := filepath.Join(t.TempDir(), "again")
	apptest.Done(t, copied, "events", "export", again)
	require.Equal(t, segments(t, dir), segments(t, again))
	out, _ = apptest.Done(t, copied, "doctor", "books")
	require.Contains(t, out, "at position "+strconv.FormatInt(head, 10))
	out, _ = apptest.Done(t, copied, "audit", "verify", "--store", "--checkpoint", audittest.File(t, "kept", []byte(first.Note)))
	require.Contains(t, out, "VERIFIED")

	apptest.Denied(t, copied, "bahi: import into the event log: the log has events already, up to position", "events", "import", again)
	o = apptest.StartOn(t, copied)
	all := o.Checkpoints()
	require.Equal(t, last.Note, all[len(all)-1].Note, "no checkpoint was signed since")
	apptest.Readiness(t, o.Operator())
	clerk = o.Bearer(key)
	require.Equal(t, "03-02 7", apptest.Balances(clerk, apptest.Ledger(till)))
	require.Equal(t, row, apptest.Post(clerk.With("Idempotency-Key", "bill 214"), till, apptest.Deposit("2025-03-02", "7")),
		"a retried request has no second effect")
	require.Empty(t, o.Decided(head))
	next := clerk.POST(apptest.Ledger(till), apptest.Deposit("2025-03-03", "1")).Status(201)
	require.Equal(t, strconv.FormatInt(o.Head(), 10), next.Header("Bahi-Position"))
	require.Greater(t, o.Head(), head)
	newest := apitest.Read[apptest.BankRow](next)
	require.Greater(t, newest.ID, row.ID, "no number is given twice")
	require.Equal(t, "03-02 7, 03-03 8", apptest.Balances(clerk, apptest.Ledger(till)))
	apptest.Denied(t, copied, "bahi: another Bahi has", "events", "import", dir)
	_, by, err := o.PublicKeys().Open([]byte(o.Signed().Note))
	require.NoError(t, err)
	require.Len(t, by, 1)
	require.Contains(t, strings.Split(keys, "\n")[1], by[0].ID)
	require.Equal(t, keys, o.Operator().GET("/audit/key?format=text").Status(200).Text)

	// An archive has no passwords. A user sets a new one, and finds everything.
	o.Anonymous().POST(apptest.Auth+"/login", map[string]string{"email": "asha@example.com", "password": apptest.GoodPassword}).Status(401)
	o.Anonymous().POST(apptest.Auth+"/password-reset/request", map[string]string{"email": "asha@example.com"}).Status(200)
	_, token := apptest.Link(t, o.Mailed("asha@example.com", apptest.ResetSubject, 1))
	o.Anonymous().POST(apptest.Auth+"/password-reset/confirm",
		map[string]string{"token": token, "new_password": "jadau and polki"}).Status(200)
	asha.Client = o.Bearer(o.SignIn("asha@example.com", "jadau and polki").Access)
	require.Equal(t, "03-01 12.5", apptest.Balances(asha.Client, apptest.Ledger(account)))
	require.Equal(t, asha.Workspace, asha.Me().WorkspaceID)

	out, _ = apptest.Done(t, copied, "events", "export", dir, "--append", "--with-keys")
	require.Contains(t, out, "in 2 segments")
}

func TestAnArchiveIsImportedWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	o.Person("asha@example.com")
	dir := filepath.Join(t.TempDir(), "archive")
	apptest.Done(t, o.Database, "events", "export", dir, "--with-keys")

	// Another master key is refused before the import begins, and no key is created.
	data, url := t.TempDir(), apptest.Migrated(t)
	for key, why := range map[string]string{
		"": "bahi: there is no master key: give the one with the id ",
		base64.StdEncoding.EncodeToString([]byte("another key, which opens nothing")): "bahi: this is another master key: the id must be ",
	} {
		cmd := apptest.Command(t, data, "events", "import", dir).With("DATABASE_URL="+url, "BAHI_MASTER_KEY="+key)
		_, wrong, status := apptest.Execute(t, cmd)
		require.Equal(t, 1, status)
		require.Contains(t, wrong, why)
	}
	require.NoDirExists(t, filepath.Join(data, "keys"))

	// A broken archive, and a vault that is not empty.
	broken := filepath.Join(t.TempDir(), "broken")
	require.NoError(t, os.CopyFS(broken, os.DirFS(dir)))
	segment := filepath.Join(broken, "segments", "00000001.ndjson.zst")
	text := worktest.File(t, segment)
	text[len(text)/2] ^= 1
	require.NoError(t, os.WriteFile(segment, text, 0o600))
	apptest.Denied(t, url, "the archive is broken: segments/00000001.ndjson.zst", "events", "import", broken)
	keys := filepath.Join(broken, events.KeysFile)
	require.NoError(t, os.WriteFile(keys, []byte("{}"), 0o600))
	apptest.Denied(t, url, "the archive is broken: keys.json", "events", "import", broken)
	apptest.Denied(t, apptest.Database(t), "bahi: the vault has keys already: import the archive into a database that no Bahi has served yet",
		"events", "import", dir)
	out, _ := apptest.Done(t, url, "events", "tail")
	require.Empty(t, out)

	// An import that failed at its last step leaves the keys; the next one uses them.
	sys, err := apptest.Settings(t, url).OpenBooks(t.Context(), false)
	require.NoError(t, err)
	a, err := archive.Open(dir)
	require.NoError(t, err)
	exported, err := events.KeysOf(a)
	require.NoError(t, err)
	require.NoError(t, sys.CatchUp(t.Context()), "the empty log has tables")
	require.NoError(t, sys.Vault.Import(t.Context(), *exported))
	sys.Close()
	config, err := pgx.ParseConfig(url)
	require.NoError(t, err)
	config.RuntimeParams["application_name"] = "bahi"
	lingers, err := pgx.ConnectConfig(t.Context(), config) // Postgres notices late that a process has ended
	require.NoError(t, err)
	time.AfterFunc(500*time.Millisecond, func() { _ = lingers.Close(context.Background()) })
	apptest.Done(t, url, "events", "import", dir)
	require.Contains(t, apptest.Opened(t, url), "asha@example.com")
	apptest.Done(t, url, "doctor", "users")
}

func TestImportBesideTheOriginalSignsWithItsOwnKey(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	asha := o.Person("asha@example.com")
	account := apptest.Open(asha.Client, "HDFC")
	apptest.Post(asha.Client, account, apptest.Deposit("2025-03-01", "12.5"))
	o.Rotated()
	// An accepted restore names the checkpoints that it abandons by number; a copy numbers them differently.
	lost, err := audit.Kind.Encode(uuid.New(), audit.RestoreAccepted{LastNumber: 40, Abandoned: 3, Reason: "the disk burnt"},
		event.Meta{Actor: "system:shell"})
	require.NoError(t, err)
	_, err = o.Sys.Store.Append(t.Context(), eventstore.To(audit.Kind.Stream(audit.Log), eventstore.Any, lost))
	require.NoError(t, err)
	o.Signed()
	keys := o.PublicKeys()
	with, without := filepath.Join(t.TempDir(), "with"), filepath.Join(t.TempDir(), "without")
	apptest.Done(t, o.Database, "events", "export", with, "--with-keys")
	apptest.Done(t, o.Database, "events", "export", without)
	require.NoFileExists(t, filepath.Join(without, events.KeysFile))
	o.Stop()
	for name, args := range map[string][]string{
		"without the keys": {without}, "under another name": {with, "--new-store-id"},
		"under another name and without the keys": {without, "--new-store-id"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			copied := apptest.Migrated(t)
			if len(args) > 1 && args[0] == without {
				copied = apptest.Database(t) // a Bahi has run on it and made a key
			}
			_, wrong := apptest.Done(t, copied, append([]string{"events", "import"}, args...)...)
			require.Contains(t, wrong, "They are another installation's; this one signs with a key of its own.")
			c := apptest.StartOn(t, copied)
			apptest.Readiness(t, c.Operator())
			newest := c.Signed()
			_, _, err := keys.Open([]byte(newest.Note))
			require.Error(t, err, "trust in the former keys does not extend to this key")
			signed, _, err := c.PublicKeys().Open([]byte(newest.Note))
			require.NoError(t, err)
			require.Equal(t, tlog.Origin(c.Sys.Store.ID()), signed.Origin)
			require.Equal(t, len(args) > 1, o.Sys.Store.ID() != c.Sys.Store.ID())
			told := c.AuditEvents(apptest.OperatorKey, "type=AuditKeyRotated")
			require.Len(t, told, 2)
			require.Contains(t, string(told[1].Data), "the key that signed it before is not in this installation")
			if args[0] == without {
				require.Contains(t, wrong, "The archive has no keys. Its events' values of 1 people and secrets stay sealed permanently")
				require.Empty(t, apptest.Opened(t, copied))
				require.NotEmpty(t, c.Person("asha@example.com").Workspace, "a new sign-up is a new user")
			}
			workspace := c.Operator().With("Bahi-Workspace", asha.Workspace)
			require.Equal(t, "03-01 12.5", apptest.Balances(workspace, apptest.Ledger(account)), "the books are not sealed")
			c.Rotated()
			c.Stop()
			c = apptest.StartOn(t, copied)
			c.Signed()
			for _, checkpoint := range c.Checkpoints() {
				require.Zero(t, checkpoint.Abandoned, "checkpoint %d", checkpoint.Number)
				require.Greater(t, checkpoint.Number, int64(40))
			}
			c.Done(t, "audit", "verify", "--store")
		})
	}
}

func TestArchiveWithForeignCheckpointsIsNotImported(t *testing.T) {
	t.Parallel()
	l := audittest.New(t, 10)
	forged := l.Forged(func(e []event.Stored) []event.Stored { e[6].Data = []byte(`{"amount":1}`); return e })
	copied := pgtest.DB(t)
	apptest.Denied(t, copied, "the archive is broken: checkpoints.txt: the events differ from those of the checkpoint of 8 events",
		"events", "import", forged.Archive(t, l.Checkpoint(t, 5), l.Checkpoint(t, 8), l.Checkpoint(t, 10)))
	apptest.Denied(t, copied, "the archive is broken: checkpoints.txt: checkpoint 1: the checkpoint is not signed by a trusted key",
		"events", "import", exchanged(t, l, audittest.New(t, 1).Key.Public(), l.Checkpoint(t, 10)))
	apptest.Denied(t, copied, "the archive is broken: checkpoints.txt: it has a checkpoint of 10 events, but only 9 events",
		"events", "import", exchanged(t, l.Forged(func(e []event.Stored) []event.Stored { return e[:9] }), l.Key.Public(), l.Checkpoint(t, 10)))

	// The operator's own key signs on, and another one takes its place.
	bahi := func(args ...string) (stdout, stderr string, status int) {
		return apptest.Execute(t, apptest.Command(t, t.TempDir(), args...).With("DATABASE_URL="+copied,
			"BAHI_AUDIT_KEY="+base64.StdEncoding.EncodeToString(l.Seed)))
	}
	out, wrong, status := bahi("events", "import", l.Archive(t, l.Checkpoint(t, 5), l.Checkpoint(t, 10)))
	require.Equal(t, 0, status, wrong)
	require.Contains(t, out, "Checkpoints that hold, and are kept: 2.")
	apptest.Denied(t, copied, "give it in BAHI_AUDIT_KEY", "audit", "export", filepath.Join(t.TempDir(), "export"))
	next := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{2}, 32))
	_, wrong, status = bahi("audit", "rotate-key", "--reason", "another safe", "--new-key", next)
	require.Equal(t, 0, status, wrong)
	require.Contains(t, wrong, "Set BAHI_AUDIT_KEY to this key")
}

// exchanged returns an archive with a forged key and checkpoints.
func exchanged(t *testing.T, l *audittest.Log, key string, checkpoints []byte) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "archive")
	_, err := archive.Create(t.Context(), dir, l, archive.Options{
		UpTo: event.Position(len(l.Events)), At: time.Now(),
		Files: map[string][]byte{archive.CheckpointsFile: checkpoints, archive.PublicKeysFile: []byte(key + "\n")},
	})
	require.NoError(t, err)
	return dir
}
