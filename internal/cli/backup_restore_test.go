package cli_test

import (
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

func TestDrill(t *testing.T) {
	t.Parallel()
	o, dir := kept(t)
	for name, test := range map[string]func(t *testing.T, o *apptest.Server, dir string){
		"confirms a backup and leaves nothing": drillConfirms, "fails on a wrong backup": drillFails,
		"that is interrupted leaves nothing": drillIsInterrupted,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, o, dir)
		})
	}
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
