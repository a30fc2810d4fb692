package cli_test

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/internal/cli/backup"
	"bahi/internal/test/apptest"
	"bahi/internal/test/pgtest"
	"bahi/internal/test/worktest"
)

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
