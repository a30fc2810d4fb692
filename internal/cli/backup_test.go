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

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/access/user"
	"bahi/internal/app"
	"bahi/internal/cli/backup"
	"bahi/internal/test/apptest"
	"bahi/internal/test/pgtest"
	"bahi/internal/test/worktest"
)

func TestBackupUnderLoadIsOneSnapshot(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	clerk := o.Clerk(apptest.Home)
	o.Sql(`insert into knowledge.chunk (source_id, ordinal, bot_id, text, words) values (1, 0, 1, 'open until eight', '')`)
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
	every, _ := tables(t, o.Database)
	restored, known := tables(t, copied)
	require.Equal(t, every, restored)
	require.Equal(t, "open until eight", known, "what bots know is made once, when a file comes")
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

// tables returns the names of the tables outside projections, and what bots know.
func tables(t *testing.T, database string) (names []string, known string) {
	t.Helper()
	conn := pgtest.Connect(t, database)
	require.NoError(t, conn.QueryRow(t.Context(), `
		select array_agg(schemaname || '.' || tablename order by schemaname, tablename), (select text from knowledge.chunk) from pg_tables
		where schemaname not in ('pg_catalog', 'information_schema') and schemaname !~ '_g[0-9]+$'`).Scan(&names, &known))
	return names, known
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

// The life of a data folder: it is empty, served and beside commands, backed up, lost and restored.
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
	serving := func(cmd *apptest.Cmd) *apptest.Process {
		t.Helper()
		cmd.Env = append(cmd.Env, "BAHI_MASTER_KEY=", "BAHI_DELETION_GRACE=1ms", "BAHI_LIMIT_AUTH=1000/1m", "BAHI_LIMIT_USERS_PICTURE=1000/1m")
		p := apptest.Serve(t, cmd)
		p.Ready()
		return p
	}
	dir := filepath.Join(t.TempDir(), "backup")
	// A command that only reads creates no log in a wrongly named folder.
	for _, args := range []string{"doctor", "events tail", "projections list", "audit verify --store", "user list", "backup " + dir,
		"vault erasures export " + list} {
		_, wrong, status := keyed(strings.Fields(args)...)
		require.NotZero(t, status, args)
		require.Contains(t, wrong, "no Bahi has run in the data folder "+data, args)
	}
	left, err := os.ReadDir(data)
	require.NoError(t, err)
	require.Empty(t, left)
	// A command that writes works without a log, and leaves no process running.
	_, wrong, status := keyed("apikey", "create", "--name", "till")
	require.Zero(t, status, wrong)
	require.Zero(t, apptest.Postmaster(data))

	p := serving(apptest.Program(t, data, "serve"))
	l := apptest.Live(t, p, data)
	// Beside the server, commands use its cluster and leave it running.
	pid := apptest.Postmaster(data)
	for _, args := range []string{"events tail", "projections list", "apikey list"} {
		_, wrong, status = keyed(strings.Fields(args)...)
		require.Zero(t, status, wrong)
	}
	require.Equal(t, pid, apptest.Postmaster(data))
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
	text := worktest.File(t, list)
	require.Contains(t, string(text), user.Kind.Category()+"-"+l.Id)
	require.Empty(t, l.Known.In("the list", text), "the list names nobody")
	require.Less(t, p.Stop(), apptest.Promptly)
	require.Zero(t, apptest.Postmaster(data), "the cluster ends with the server")
	lost(t, data)

	out, wrong, status = keyed("restore", dir, "--erasures", list)
	require.Equal(t, 0, status, wrong)
	require.NotContains(t, wrong, "WARNING")
	require.Regexp(t, `(?s)\d+ events of the log .* are there again, as of .*\n\d+ of \d+ were erased again\n$`, out)
	require.Zero(t, apptest.Postmaster(data), "no Postgres is left running")
	require.Empty(t, l.Known.InFiles(data))
	apptest.Cluster(t, data, func(url string) { require.Empty(t, l.Known.InDatabase(url)) })

	p = serving(apptest.Command(t, data, "serve"))
	l.Server = apptest.Visited(p, data)
	l.Asha.Client = l.Bearer(l.SignIn("asha@example.org", apptest.GoodPassword).Access)
	link, err := url.Parse(*l.Asha.Me().Picture)
	require.NoError(t, err)
	l.Anonymous().GET(link.RequestURI()).Status(200)
	require.Equal(t, "03-01 12.5", l.Books())
	require.NotContains(t, l.Members(l.Workspace), l.Id)
	l.Person.At(p.URL).GET(apptest.Me).Status(401)
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
	require.ErrorContains(t, err, "must be of 99 or newer: install them (on Debian: postgresql-client-99), or name their folder in "+
		"BAHI_PG_BIN")
	tools, err := db.Tools(t.Context(), slog.New(slog.DiscardHandler), 15)
	require.NoError(t, err)
	require.GreaterOrEqual(t, tools.Programs.Major, 15)
}

// drilled returns the command of a drill, and its folder for temporary files.
func drilled(t *testing.T, dir string, more ...string) (cmd *apptest.Cmd, temporary string) {
	t.Helper()
	temporary = pgtest.Dir(t)
	cmd = apptest.Command(t, t.TempDir(), "restore", "--drill", dir)
	cmd.Env = append(append(cmd.Env, "TMPDIR="+temporary), more...)
	return cmd, temporary
}

// gone checks that a drill left nothing.
func gone(t *testing.T, temporary string) {
	t.Helper()
	entries, err := os.ReadDir(temporary)
	require.NoError(t, err)
	require.Empty(t, entries)
}

// kept returns a system with a user and an erased user, and its backup.
func kept(t *testing.T) (o *apptest.Server, dir string) {
	t.Helper()
	o, dir = apptest.StartErasing(t), filepath.Join(t.TempDir(), "backup")
	asha := o.Person("asha@example.com")
	apptest.Post(asha.Client, apptest.Open(asha.Client, "HDFC"), apptest.Deposit("2025-03-01", "12.5"))
	o.Erased(o.Person("ravi@example.com"))
	apptest.Done(t, o.Database, "backup", dir)
	return o, dir
}

func TestBackupsAndDrills(t *testing.T) {
	t.Parallel()
	o, dir := kept(t)
	empty := t.TempDir()
	apptest.Denied(t, pgtest.DB(t), "bahi: there is nothing to back up: no Bahi has run on this database", "backup", empty)
	_, wrong := apptest.Done(t, o.Database, "backup", empty, "--blob-url", "s3://pictures?region=ap-south-1")
	require.Contains(t, wrong, "Images are in the bucket that BLOB_URL names, and not in this backup.")
	apptest.Denied(t, o.Database, "bahi: the folder "+dir+" is not empty: name another one", "backup", dir)
	apptest.Denied(t, o.Database, "bahi: another Bahi has ", "restore", dir)
	left, err := filepath.Glob(filepath.Join(filepath.Dir(empty), ".*"))
	require.NoError(t, err)
	require.Empty(t, left, "partial backups are gone")
	for name, test := range map[string]func(t *testing.T, o *apptest.Server, dir string){
		"a drill confirms a backup and leaves nothing": drillConfirms, "a drill fails on a wrong backup": drillFails,
		"a drill that is interrupted leaves nothing": drillIsInterrupted, "a backup that was changed is not restored": changedIsNotRestored,
		"a target that is not empty is refused": nonEmptyIsRefused,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, o, dir)
		})
	}
}

func nonEmptyIsRefused(t *testing.T, _ *apptest.Server, dir string) {
	apptest.Denied(t, apptest.Database(t), "bahi: the database is not empty: it has the schemas account, audit, inbox, knowledge, log, "+
		"projection, reactor, river, vault.", "restore", dir)
	apptest.Denied(t, pgtest.DB(t), "bahi: read the list of erasures: ", "restore", dir, "--erasures", filepath.Join(dir, "none.json"))
	apptest.Denied(t, pgtest.DB(t), " is no backup: it has no manifest.json", "restore", t.TempDir())

	// Without the backup's master key the restore does not begin, and creates no key.
	data := t.TempDir()
	refused := func(why string, env ...string) {
		t.Helper()
		cmd := apptest.Command(t, data, "restore", dir).With(env...)
		_, wrong, status := apptest.Execute(t, cmd)
		require.Equal(t, 1, status)
		require.Contains(t, wrong, why)
	}
	refused("bahi: there is no master key: give the one with the id ", "BAHI_MASTER_KEY=")
	refused("bahi: this is another master key: the id must be ",
		"BAHI_MASTER_KEY="+base64.StdEncoding.EncodeToString([]byte("another key, which opens nothing")))
	entries, err := os.ReadDir(data)
	require.NoError(t, err)
	require.Empty(t, entries)

	// A restore does not mix a backup with existing images either.
	require.NoError(t, os.MkdirAll(filepath.Join(data, "blobs", "pictures"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(data, "blobs", "pictures", "a"), []byte("a"), 0o600))
	refused("there are images already, such as pictures/a: restore into an empty data folder", "DATABASE_URL="+pgtest.DB(t))
}

func changedIsNotRestored(t *testing.T, _ *apptest.Server, whole string) {
	database := pgtest.DB(t)
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
			text := worktest.File(t, path)
			text[len(text)/2] ^= 1
			return os.WriteFile(path, text, 0o600)
		}),
		"read the backup's manifest: ": change(backup.BackupManifest,
			func(path string) error { return os.Truncate(path, 30) }),
		`this program restores a "bahi-backup" of version 1`: says(func(m *backup.Manifest) { m.Version = 2 }),
		"does not name the database's dumps":                 says(func(m *backup.Manifest) { m.Files = m.Files[:1] }),
		"names a file outside of the backup": says(func(m *backup.Manifest) {
			m.Files = append(m.Files, backup.BackupFile{File: "../../etc/passwd"})
		}),
		"restoring requires 99 or newer": says(func(m *backup.Manifest) { m.Postgres = "99.1" }),
	} {
		apptest.Denied(t, database, why, "restore", dir)
	}
	apptest.Denied(t, database, "bahi: the restored log is not the one of the backup's manifest", "restore",
		says(func(m *backup.Manifest) { m.Head-- }))
}

func TestABackupThatIsInterruptedLeavesNothing(t *testing.T) {
	t.Parallel()
	database, folder := apptest.Database(t), t.TempDir()
	conn := pgtest.Connect(t, database)
	_, err := conn.Exec(t.Context(), `begin; lock table vault.key in access exclusive mode`) // pg_dump waits for it
	require.NoError(t, err)
	cmd := apptest.Command(t, t.TempDir(), "backup", filepath.Join(folder, "backup")).With("DATABASE_URL=" + database)
	p := apptest.Launch(t, cmd)
	require.Eventually(t, func() bool {
		var waiting bool
		_, err := conn.Exec(t.Context(), `select pg_stat_clear_snapshot()`) // which a transaction keeps
		require.NoError(t, err)
		require.NoError(t, conn.QueryRow(t.Context(), `
			select exists (select from pg_stat_activity where datname = current_database() and application_name = 'pg_dump'
				and wait_event_type = 'Lock')`).Scan(&waiting))
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

func drillConfirms(t *testing.T, o *apptest.Server, dir string) {
	cmd, temporary := drilled(t, dir)
	out, wrong, status := apptest.Execute(t, cmd)
	require.Equal(t, 0, status, out+wrong)
	m, err := backup.OpenBackup(dir)
	require.NoError(t, err)
	for _, line := range []string{
		`backup +` + dir + `, taken \S+ by Bahi v0-test from Postgres \d+`,
		`log +` + o.Sys.Store.ID().String() + `, ` + strconv.FormatUint(uint64(m.Head), 10) + ` events, the newest ` + m.HeadID.String(),
		`size +\d+ bytes in 2 files; restored and built \d+ bytes`,
		`books: generation \d+ agrees with the log, [1-9]\d* rows at position ` + strconv.FormatUint(uint64(m.Head), 10),
		`users: generation \d+ agrees with the log, [1-9]\d* rows at position`,
		`values +[2-9] keys tried on a value each, of which [1-9] were destroyed by erasures`,
		`took +\S+: restoring \S+, building \S+, comparing \S+`,
		`differences +0`,
	} {
		require.Regexp(t, `(?m)^`+line, out)
	}
	gone(t, temporary)

	cmd, temporary = drilled(t, dir, "BAHI_MASTER_KEY=")
	out, wrong, status = apptest.Execute(t, cmd)
	require.Equal(t, 0, status, out+wrong)
	require.Contains(t, wrong, "Personal values count as erased, and are not opened: there is no master key")
	require.Regexp(t, `(?m)^values +not opened: the master key is missing\n(.*\n)*differences +0$`, out)
	gone(t, temporary)
	_, wrong, status = apptest.Execute(t, apptest.Command(t, t.TempDir(), "restore", "--drill", "--erasures", "list.json", dir))
	require.Equal(t, 1, status)
	require.Contains(t, wrong, "bahi: a drill erases nobody")
}

func drillFails(t *testing.T, o *apptest.Server, whole string) {
	dir := filepath.Join(t.TempDir(), "another")
	require.NoError(t, os.CopyFS(dir, os.DirFS(whole)))
	fails := func(dir, why string) {
		t.Helper()
		cmd, temporary := drilled(t, dir)
		out, wrong, status := apptest.Execute(t, cmd)
		require.Equal(t, 1, status, out+wrong)
		require.Contains(t, out+wrong, why)
		gone(t, temporary)
	}
	m, err := backup.OpenBackup(dir)
	require.NoError(t, err)
	other := uuid.New()
	m.HeadID = &other
	text, err := json.Marshal(m)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, backup.BackupManifest), text, 0o600))
	fails(dir, "differences  1\nthe restored log is not the one of the backup's manifest")

	o.Sql(`update vault.key set wrapped = set_byte(wrapped, 19, get_byte(wrapped, 19) # 255) where wrapped is not null`)
	dir = filepath.Join(t.TempDir(), "backup")
	apptest.Done(t, o.Database, "backup", dir)
	fails(dir, "the ciphertext was changed, or moved from another place")

	o.Sql(`delete from log.event where position = 5`)
	dir = filepath.Join(t.TempDir(), "backup")
	apptest.Done(t, o.Database, "backup", dir)
	fails(dir, "bahi: ")
	require.NoError(t, os.Truncate(filepath.Join(dir, backup.DatabaseDump), 1000))
	fails(dir, "the backup is broken: database.dump has 1000 bytes")
}

func drillIsInterrupted(t *testing.T, _ *apptest.Server, dir string) {
	cmd, temporary := drilled(t, dir)
	p := apptest.Launch(t, cmd)
	var pid int
	require.Eventually(t, func() bool {
		found, err := filepath.Glob(filepath.Join(temporary, "bahi-drill-*"))
		require.NoError(t, err)
		if len(found) == 1 {
			pid = apptest.Postmaster(found[0])
		}
		return pid != 0
	}, time.Minute, time.Millisecond)
	require.Equal(t, 1, p.Interrupt())
	gone(t, temporary)
	status, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline")) // empty if the process is gone
	require.NotContains(t, strings.ReplaceAll(string(status), "\x00", " "), temporary)
}

func TestAListOfErasuresThatCannotBeReadIsRefused(t *testing.T) {
	t.Parallel()
	database, file := apptest.Database(t), filepath.Join(t.TempDir(), "erasures.json")
	apptest.Denied(t, database, "bahi: read the list of erasures: open "+file, "vault", "erasures", "apply", file)
	require.NoError(t, os.WriteFile(file, []byte(`[{"subject":"user-`), 0o600))
	for _, verb := range []string{"apply", "export"} {
		apptest.Denied(t, database, "bahi: read the list of erasures: ", "vault", "erasures", verb, file)
	}
	require.NoError(t, os.WriteFile(file, []byte(`[{"subject":"user-0f0e0d0c-0b0a-4908-8706-050403020100","at":"2026-01-02T03:04:05Z"}]`),
		0o600))
	apptest.Denied(t, database, "apply it first", "vault", "erasures", "export", file) // it would lose the list
	for _, erased := range []string{"1", "0"} {
		out, _ := apptest.Done(t, database, "vault", "erasures", "apply", file)
		require.Equal(t, erased+" of 1 were erased again\n", out)
	}
	require.NoError(t, os.Remove(file))
	out, _ := apptest.Done(t, database, "vault", "erasures", "export", file)
	require.Equal(t, "1 erased\n", out)
	list, err := backup.ErasureList{File: file}.Read()
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.WithinDuration(t, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), list[0].At, 0, "the first erasure's time")
}
