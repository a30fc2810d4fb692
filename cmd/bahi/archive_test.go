package main_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/eventstore/archive"
	"bahi/internal/app"
	"bahi/internal/cli/events"
	"bahi/internal/pgtest"
	"bahi/migrations"
)

// on is a command on a database that nobody need serve.
func on(t *testing.T, url string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	cmd := command(t, t.TempDir(), args...)
	cmd.Env = append(cmd.Env, "DATABASE_URL="+url)
	return execute(t, cmd)
}

// done is a command that succeeds.
func done(t *testing.T, url string, args ...string) (stdout, stderr string) {
	t.Helper()
	out, wrong, status := on(t, url, args...)
	require.Equal(t, 0, status, wrong)
	return out, wrong
}

// denied is a command that does not, and says why.
func denied(t *testing.T, url, why string, args ...string) {
	t.Helper()
	_, wrong, status := on(t, url, args...)
	require.Equal(t, 1, status)
	require.Contains(t, wrong, why)
}

// segments are the files with an archive's events.
func segments(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(filepath.Join(dir, "segments"))
	require.NoError(t, err)
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, "segments", e.Name()))
		require.NoError(t, err)
		files[e.Name()] = string(text)
	}
	require.NotEmpty(t, files)
	return files
}

func TestAnImportedLogIsServedAsTheFirstOneWas(t *testing.T) {
	t.Parallel()
	o := start(t)
	asha := o.person("asha@example.com")
	account := open(asha.Client, "HDFC")
	post(asha.Client, account, deposit("2025-03-01", "12.5"))
	key := o.key(home, `{"ledger":"write"}`).Key
	clerk := o.bearer(key)
	till := open(clerk, "Till")
	once := clerk.With("Idempotency-Key", "bill 214")
	row := post(once, till, deposit("2025-03-02", "7"))
	head, dir := o.head(), filepath.Join(t.TempDir(), "archive")
	out, _ := done(t, o.database, "events", "export", dir, "--with-keys")
	require.Equal(t, strconv.FormatInt(head, 10)+" events of the log "+o.sys.Store.ID().String()+", in 1 segments\n", out)
	o.stop()

	copied := pgtest.DB(t)
	out, wrong := done(t, copied, "events", "import", dir)
	require.True(t, strings.HasPrefix(out, strconv.FormatInt(head, 10)+" events; this is the log "+o.sys.Store.ID().String()+"\n"), out)
	require.Empty(t, wrong)
	require.Contains(t, opened(t, copied), "asha@example.com")
	again := filepath.Join(t.TempDir(), "again")
	done(t, copied, "events", "export", again)
	require.Equal(t, segments(t, dir), segments(t, again))
	out, _ = done(t, copied, "doctor")
	require.Contains(t, out, "at position "+strconv.FormatInt(head, 10))

	denied(t, copied, "bahi: import into the event log: the log has events already, up to position", "events", "import", again)
	o = startOn(t, copied)
	clerk = o.bearer(key)
	require.Equal(t, "03-02 7", balances(clerk, ledger(till)))
	require.Equal(t, row, post(clerk.With("Idempotency-Key", "bill 214"), till, deposit("2025-03-02", "7")), "the same request has no second effect")
	require.Equal(t, head, o.head())
	next := clerk.POST(ledger(till), deposit("2025-03-03", "1")).Status(201)
	require.Equal(t, strconv.FormatInt(o.head(), 10), next.Header("Bahi-Position"))
	require.Greater(t, o.head(), head)
	var newest bankRow
	next.JSON(&newest)
	require.Greater(t, newest.ID, row.ID, "no number is given twice")
	require.Equal(t, "03-02 7, 03-03 8", balances(clerk, ledger(till)))
	denied(t, copied, "bahi: another Bahi has", "events", "import", dir)

	// Passwords are not in a log. Who has an account sets a new one, and finds everything.
	o.stranger().POST(auth+"/login", map[string]string{"email": "asha@example.com", "password": goodPassword}).Status(401)
	o.stranger().POST(auth+"/password-reset/request", map[string]string{"email": "asha@example.com"}).Status(200)
	_, token := link(t, o.mailed("asha@example.com", resetSubject, 1))
	o.stranger().POST(auth+"/password-reset/confirm", map[string]string{"token": token, "new_password": "jadau and polki"}).Status(200)
	asha.Client = o.bearer(o.signIn("asha@example.com", "jadau and polki").Access)
	require.Equal(t, "03-01 12.5", balances(asha.Client, ledger(account)))
	require.Equal(t, asha.workspace, asha.me().WorkspaceID)

	out, _ = done(t, copied, "events", "export", dir, "--append", "--with-keys")
	require.Contains(t, out, "in 2 segments")
	denied(t, copied, "the archive has keys.json, which would be older than its events", "events", "export", dir, "--append")
	denied(t, copied, "is not empty", "events", "export", dir)
	denied(t, testDatabase(t), "bahi: the archive goes up to position "+strconv.FormatInt(head, 10)+", and the log ends at 0: it lost its tail", "events", "export", again, "--append")
}

func TestWithoutKeysPeopleStayUnknown(t *testing.T) {
	t.Parallel()
	o := start(t)
	asha := o.person("asha@example.com")
	account := open(asha.Client, "HDFC")
	post(asha.Client, account, deposit("2025-03-01", "12.5"))
	dir := filepath.Join(t.TempDir(), "archive")
	done(t, o.database, "events", "export", dir)
	require.NoFileExists(t, filepath.Join(dir, events.KeysFile))

	copied := pgtest.DB(t)
	out, wrong := done(t, copied, "events", "import", dir, "--new-store-id")
	require.NotContains(t, out, o.sys.Store.ID().String())
	require.Contains(t, wrong, "The archive has no keys. What its events say of 1 people and secrets stays sealed for good")
	require.Empty(t, opened(t, copied))
	done(t, copied, "doctor")
	c := startOn(t, copied)
	workspace := c.operator().With("Bahi-Workspace", asha.workspace)
	require.Equal(t, "03-01 12.5", balances(workspace, ledger(account)), "the books are nobody's secret")
	require.NotEmpty(t, c.person("asha@example.com").workspace, "who comes again is somebody new")
}

func TestAnArchiveIsImportedWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	o := start(t)
	asha := o.person("asha@example.com")
	open(asha.Client, "HDFC")
	dir := filepath.Join(t.TempDir(), "archive")
	done(t, o.database, "events", "export", dir, "--with-keys")
	denied(t, o.database, "bahi: another Bahi has", "events", "import", dir)

	// Another master key is told of before anything is done, and none is made.
	data, url := t.TempDir(), pgtest.DB(t)
	cmd := command(t, data, "events", "import", dir)
	cmd.Env = append(cmd.Env, "DATABASE_URL="+url, "BAHI_MASTER_KEY=")
	_, wrong, status := execute(t, cmd)
	require.Equal(t, 1, status)
	require.Contains(t, wrong, "bahi: there is no master key: give the one with the id ")
	require.NoDirExists(t, filepath.Join(data, "keys"))
	cmd = command(t, data, "events", "import", dir)
	other := base64.StdEncoding.EncodeToString([]byte("another key, which opens nothing"))
	cmd.Env = append(cmd.Env, "DATABASE_URL="+url, "BAHI_MASTER_KEY="+other)
	_, wrong, status = execute(t, cmd)
	require.Equal(t, 1, status)
	require.Contains(t, wrong, "bahi: this is another master key: it takes the one with the id ")

	// A broken archive, and a vault that is not empty.
	require.NoError(t, migrations.Up(t.Context(), url))
	broken := filepath.Join(t.TempDir(), "broken")
	require.NoError(t, os.CopyFS(broken, os.DirFS(dir)))
	segment := filepath.Join(broken, "segments", "00000001.ndjson.zst")
	text, err := os.ReadFile(segment)
	require.NoError(t, err)
	text[len(text)/2] ^= 1
	require.NoError(t, os.WriteFile(segment, text, 0o600))
	denied(t, url, "the archive is broken: segments/00000001.ndjson.zst", "events", "import", broken)
	keys := filepath.Join(broken, events.KeysFile)
	require.NoError(t, os.WriteFile(keys, []byte("{}"), 0o600))
	denied(t, url, "the archive is broken: keys.json", "events", "import", broken)
	denied(t, testDatabase(t), "bahi: the vault has keys already: import the archive into a database that no Bahi has served yet", "events", "import", dir)
	out, _ := done(t, url, "events", "tail")
	require.Empty(t, out)

	// An import whose last moment failed has left the keys; the next one takes them for its own.
	sys, err := testSettings(t, url).OpenBooks(t.Context(), false)
	require.NoError(t, err)
	a, err := archive.Open(dir)
	require.NoError(t, err)
	exported, err := events.KeysOf(a)
	require.NoError(t, err)
	require.NoError(t, sys.CatchUp(t.Context()), "there are tables of the empty log")
	require.NoError(t, sys.Vault.Import(t.Context(), *exported))
	sys.Close()
	done(t, url, "events", "import", dir)
	require.Contains(t, opened(t, url), "asha@example.com")
	out, _ = done(t, url, "doctor")
	require.Equal(t, len(app.AllProjections()), strings.Count(out, " is what the log says"), out)
}
