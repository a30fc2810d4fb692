package cli_test

import (
	"encoding/base64"
	"encoding/json"
	"image/color"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"bahi/domain/access/user"
	"bahi/internal/app"
	"bahi/internal/cli/backup"
	"bahi/internal/test/apptest"
	"bahi/internal/test/pgtest"
)

func TestBackupUnderLoadIsOneSnapshot(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	clerk := o.Clerk(apptest.Home)
	account := apptest.Open(clerk, "HDFC")
	apptest.Post(clerk, account, apptest.Deposit("2025-03-01", "1"))
	before := o.Head()
	stop := make(chan struct{})
	var writing sync.WaitGroup
	for range 4 {
		writing.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if status := clerk.POST(apptest.Ledger(account), apptest.Deposit("2025-03-01", "1")).Response.StatusCode; status != http.StatusCreated {
					t.Errorf("a row got status %d during the backup", status)
					return
				}
			}
		})
	}
	dir := filepath.Join(t.TempDir(), "monday", "backup")
	out, wrong := apptest.Done(t, o.Database, "backup", dir)
	during := o.Head()
	close(stop)
	writing.Wait()
	apptest.Post(clerk, account, apptest.Deposit("2025-03-01", "1"))
	require.Contains(t, out, " events of the log "+o.Sys.Store.ID().String()+", 2 files, ")
	require.Contains(t, wrong, "The master key (id ")

	m, err := backup.OpenBackup(dir)
	require.NoError(t, err)
	require.GreaterOrEqual(t, int64(m.Head), before)
	require.LessOrEqual(t, int64(m.Head), during)
	copied := pgtest.DB(t)
	out, wrong = apptest.Done(t, copied, "restore", dir)
	require.Contains(t, out, strconv.FormatUint(uint64(m.Head), 10)+" events of the log "+o.Sys.Store.ID().String()+" are there again, as of ")
	require.Contains(t, wrong, "WARNING: no list of erasures was given.")
	out, _ = apptest.Done(t, copied, "doctor", "books")
	require.Contains(t, out, "at position "+strconv.FormatUint(uint64(m.Head), 10))

	want := slices.Collect(o.Events(0))
	c := apptest.StartOn(t, copied)
	got := slices.Collect(c.Events(0))
	require.Len(t, got, int(m.Head))
	require.Equal(t, want[:m.Head], got)
	rows := 0
	for _, e := range got {
		if e.Type == "BankRowAdded" {
			rows++
		}
	}
	banks := apptest.ClerkBanks(c.Operator().With("Bahi-Workspace", apptest.Home).GET("/banks").Status(200))
	require.Equal(t, strconv.Itoa(rows), banks[0].Balance.String())
	next := c.Operator().With("Bahi-Workspace", apptest.Home).POST(apptest.Ledger(account), apptest.Deposit("2025-03-01", "1")).Status(201)
	require.Greater(t, c.Head(), int64(m.Head))
	require.Equal(t, strconv.FormatInt(c.Head(), 10), next.Header("Bahi-Position"))
}

func TestABackupHasEveryTableButThoseOfProjections(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	o.Sql(`insert into knowledge.chunk (source_id, nth, bot_id, text, keys, marks) values (1, 0, 1, 'open until eight', '{}', '')`)
	dir, copied := filepath.Join(t.TempDir(), "backup"), pgtest.DB(t)
	apptest.Done(t, o.Database, "backup", dir)
	apptest.Done(t, copied, "restore", dir)
	tables := func(database string) (names []string, known string) {
		conn, err := pgx.Connect(t.Context(), database)
		require.NoError(t, err)
		defer conn.Close(t.Context())
		require.NoError(t, conn.QueryRow(t.Context(), `
			select array_agg(schemaname || '.' || tablename order by schemaname, tablename), (select text from knowledge.chunk) from pg_tables
			where schemaname not in ('pg_catalog', 'information_schema') and schemaname !~ '_g[0-9]+$'`).Scan(&names, &known))
		return names, known
	}
	want, _ := tables(o.Database)
	got, known := tables(copied)
	require.Equal(t, want, got)
	require.Equal(t, "open until eight", known, "what bots know is made once, when a file comes")
}

// lost empties a data folder, except for the master key.
func lost(t *testing.T, data string) {
	t.Helper()
	entries, err := os.ReadDir(data)
	require.NoError(t, err)
	for _, e := range entries {
		if e.Name() != "keys" {
			require.NoError(t, os.RemoveAll(filepath.Join(data, e.Name())))
		}
	}
}

func TestRestoreOfALostMachineErasesListedUsers(t *testing.T) {
	t.Parallel()
	data, list := pgtest.Dir(t), filepath.Join(t.TempDir(), "erasures.json")
	apptest.EndCluster(t, data)
	keyed := func(args ...string) (stdout, stderr string, status int) {
		t.Helper()
		cmd := apptest.Command(t, data, args...)
		cmd.Env = append(cmd.Env, "BAHI_MASTER_KEY=", "BAHI_DELETION_GRACE=1ms", "BAHI_LIMIT_AUTH=1000/1m", "BAHI_LIMIT_USERS_PICTURE=1000/1m")
		return apptest.Execute(t, cmd)
	}
	serving := func() *apptest.Process {
		t.Helper()
		cmd := apptest.Command(t, data, "serve")
		cmd.Env = append(cmd.Env, "BAHI_MASTER_KEY=", "BAHI_DELETION_GRACE=1ms", "BAHI_LIMIT_AUTH=1000/1m", "BAHI_LIMIT_USERS_PICTURE=1000/1m")
		p := apptest.Serve(t, cmd)
		p.Ready()
		return p
	}
	dir := filepath.Join(t.TempDir(), "backup")
	_, wrong, status := keyed("backup", dir)
	require.Equal(t, 1, status)
	require.Contains(t, wrong, "bahi: there is nothing to back up: no Bahi has run in the data folder")

	p := serving()
	l := apptest.Live(t, p, data)
	apptest.Upload(t, l.Asha.Client, "image/png", apptest.Painted(t, color.White, 8, 8)).Status(200)
	out, wrong, status := keyed("backup", dir)
	require.Equal(t, 0, status, wrong)
	require.NotContains(t, out, ", 2 files", "the backup has pictures")
	_, wrong, status = keyed("restore", dir)
	require.Equal(t, 1, status)
	require.Contains(t, wrong, "restore into an empty data folder")

	l.Person.POST(apptest.Me+"/delete-request", nil).Status(200)
	p.Until(func(said, _ string) bool { return strings.Contains(said, `msg="user erased"`) })
	_, wrong, status = keyed("vault", "erasures", "export", list)
	require.Equal(t, 0, status, wrong)
	text, err := os.ReadFile(list)
	require.NoError(t, err)
	require.Contains(t, string(text), user.Kind.Category()+"-"+l.Id)
	require.Empty(t, l.Known.In("the list", text), "the list names nobody")
	p.Stop()
	lost(t, data)

	out, wrong, status = keyed("restore", dir, "--erasures", list)
	require.Equal(t, 0, status, wrong)
	require.NotContains(t, wrong, "WARNING")
	require.Regexp(t, `(?s)\d+ events of the log .* are there again, as of .*\n\d+ of \d+ were erased once more\n$`, out)
	require.Zero(t, apptest.Postmaster(data), "no Postgres is left running")
	require.Empty(t, l.Known.InFiles(data))
	apptest.Cluster(t, data, func(url string) { require.Empty(t, l.Known.InDatabase(url)) })

	p = serving()
	l.Server = apptest.Visited(p, data)
	l.Asha.Client = l.Bearer(l.SignIn("asha@example.org", apptest.GoodPassword).Access)
	link, err := url.Parse(*l.Asha.Me().Picture)
	require.NoError(t, err)
	l.Anonymous().GET(link.RequestURI()).Status(200)
	require.Equal(t, "03-01 12.5", l.Books())
	require.NotContains(t, l.Members(l.Workspace), l.Id)
	l.Person.At(p.URL).GET(apptest.Me).Status(401)
}

func TestBackupAndRestoreRefuseNonEmptyTargets(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	apptest.Open(o.Clerk(apptest.Home), "HDFC")
	dir := t.TempDir()
	apptest.Denied(t, pgtest.DB(t), "bahi: there is nothing to back up: no Bahi has run on this database", "backup", dir)
	_, wrong := apptest.Done(t, o.Database, "backup", dir, "--blob-url", "s3://pictures?region=ap-south-1")
	require.Contains(t, wrong, "Images are in the bucket that BLOB_URL names, and not in this backup.")
	apptest.Denied(t, o.Database, "bahi: the folder "+dir+" is not empty: name another one", "backup", dir)
	apptest.Denied(t, o.Database, "bahi: another Bahi has ", "restore", dir)
	o.Stop()
	apptest.Denied(t, o.Database, "bahi: the database is not empty: it has the schemas account, audit, inbox, knowledge, log, projection, "+
		"reactor, river, vault.", "restore", dir)
	apptest.Denied(t, pgtest.DB(t), "bahi: read the list of erasures: ", "restore", dir, "--erasures", filepath.Join(dir, "none.json"))
	apptest.Denied(t, pgtest.DB(t), " is no backup: it has no manifest.json", "restore", t.TempDir())
	left, err := filepath.Glob(filepath.Join(filepath.Dir(dir), ".*"))
	require.NoError(t, err)
	require.Empty(t, left, "partial backups are gone")

	// Without the backup's master key the restore does not begin, and creates no key.
	data := t.TempDir()
	for key, why := range map[string]string{
		"": "bahi: there is no master key: give the one with the id ",
		base64.StdEncoding.EncodeToString(
			[]byte("another key, which opens nothing")): "bahi: this is another master key: the id must be ",
	} {
		cmd := apptest.Command(t, data, "restore", dir)
		cmd.Env = append(cmd.Env, "BAHI_MASTER_KEY="+key)
		_, wrong, status := apptest.Execute(t, cmd)
		require.Equal(t, 1, status)
		require.Contains(t, wrong, why)
		entries, err := os.ReadDir(data)
		require.NoError(t, err)
		require.Empty(t, entries)
	}

	// A restore does not mix a backup with existing images either.
	require.NoError(t, os.MkdirAll(filepath.Join(data, "blobs", "pictures"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(data, "blobs", "pictures", "a"), []byte("a"), 0o600))
	cmd := apptest.Command(t, data, "restore", dir)
	cmd.Env = append(cmd.Env, "DATABASE_URL="+pgtest.DB(t))
	_, wrong, status := apptest.Execute(t, cmd)
	require.Equal(t, 1, status)
	require.Contains(t, wrong, "there are images already, such as pictures/a: restore into an empty data folder")
}

func TestABackupThatIsInterruptedLeavesNothing(t *testing.T) {
	t.Parallel()
	o, folder := apptest.Start(t), t.TempDir()
	conn, err := pgx.Connect(t.Context(), o.Database)
	require.NoError(t, err)
	defer conn.Close(t.Context())
	_, err = conn.Exec(t.Context(), `begin; lock table vault.key in access exclusive mode`) // pg_dump waits for it
	require.NoError(t, err)
	cmd := apptest.Command(t, t.TempDir(), "backup", filepath.Join(folder, "backup"))
	cmd.Env = append(cmd.Env, "DATABASE_URL="+o.Database)
	p := apptest.Launch(t, cmd)
	require.Eventually(t, func() bool {
		var waiting bool
		err := o.Sys.Pool.QueryRow(t.Context(), `
			select exists (select from pg_stat_activity where datname = current_database() and application_name = 'pg_dump'
				and wait_event_type = 'Lock')`).
			Scan(&waiting)
		require.NoError(t, err)
		return waiting
	}, time.Minute, 5*time.Millisecond)
	unfinished, err := filepath.Glob(filepath.Join(folder, ".backup-unfinished-*"))
	require.NoError(t, err)
	require.Len(t, unfinished, 1, "only a complete backup gets its name")
	require.Equal(t, 1, p.Interrupt())
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Empty(t, entries)
}

func TestABackupThatWasChangedIsNotRestored(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	apptest.Open(o.Clerk(apptest.Home), "HDFC")
	whole, database := filepath.Join(t.TempDir(), "backup"), pgtest.DB(t)
	apptest.Done(t, o.Database, "backup", whole)
	change := func(file string, how func(path string) error) string {
		dir := filepath.Join(t.TempDir(), "changed")
		require.NoError(t, os.CopyFS(dir, os.DirFS(whole)))
		require.NoError(t, how(filepath.Join(dir, file)))
		return dir
	}
	says := func(how func(*backup.Manifest)) string {
		return change(backup.BackupManifest, func(path string) error {
			m, err := backup.OpenBackup(whole)
			require.NoError(t, err)
			how(&m)
			text, err := json.Marshal(m)
			require.NoError(t, err)
			return os.WriteFile(path, text, 0o600)
		})
	}
	for why, dir := range map[string]string{
		"the backup is broken: database.dump is missing": change(backup.DatabaseDump, os.Remove),
		"the backup is broken: migrations.dump has ":     change(backup.MigrationDump, func(path string) error { return os.Truncate(path, 100) }),
		"the backup is broken: database.dump has ": change(backup.DatabaseDump, func(path string) error {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			text[len(text)/2] ^= 1
			return os.WriteFile(path, text, 0o600)
		}),
		"read the backup's manifest: ": change(backup.BackupManifest,
			func(path string) error { return os.Truncate(path, 30) }),
		`this program restores a "bahi-backup" of version 1`: says(func(m *backup.Manifest) { m.Version = 2 }),
		"does not name the database's dumps":                 says(func(m *backup.Manifest) { m.Files = m.Files[:1] }),
		"names a file outside of the backup": says(func(m *backup.Manifest) {
			m.Files = append(m.Files,
				backup.BackupFile{File: "../../etc/passwd"})
		}),
		"restoring requires 99 or newer": says(func(m *backup.Manifest) { m.Postgres = "99.1" }),
	} {
		apptest.Denied(t, database, why, "restore", dir)
	}
	apptest.Denied(t, database, "bahi: the restored log is not the one of the backup's manifest", "restore",
		says(func(m *backup.Manifest) { m.Head-- }))
}

func TestPasswordsAreNotInPostgresProgramsArguments(t *testing.T) {
	t.Setenv("PGCONNECT_TIMEOUT", "7")
	for text, want := range map[string]string{
		"postgres://bahi:se%20cret@db.example.org:5433/books?" +
			"sslmode=require&pool_max_conns=9&default_query_exec_mode=exec": "postgres://bahi@db.example.org:5433/books?sslmode=require",
		"postgres:///books?host=%2Frun%2Fpg&user=bahi&" +
			"password=se%20cret&options=-c%20geqo%3Doff": "postgres:///books?host=%2Frun%2Fpg&user=bahi&options=-c%20geqo%3Doff",
		"host=db.example.org user=bahi " +
			"password='se cret' dbname=books": "host=db.example.org user=bahi  dbname=books",
	} {
		address, env, err := app.LibpqURL(text)
		require.NoError(t, err)
		require.Equal(t, want, address)
		require.Contains(t, env, "PGPASSWORD=se cret")
		require.Contains(t, env, "PGCONNECT_TIMEOUT=7")
	}
}

func TestProgramsOlderThanTheServerAreRefused(t *testing.T) {
	t.Parallel()
	db := &app.Database{Url: pgtest.DB(t)}
	_, err := db.Tools(t.Context(), slog.New(slog.DiscardHandler), 99)
	require.ErrorContains(t, err, "it takes those of 99 or newer: install them (on Debian: postgresql-client-99), or name their folder in "+
		"BAHI_PG_BIN")
	tools, err := db.Tools(t.Context(), slog.New(slog.DiscardHandler), 15)
	require.NoError(t, err)
	require.GreaterOrEqual(t, tools.Programs.Major, 15)
}
