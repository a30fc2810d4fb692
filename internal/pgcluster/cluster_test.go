package pgcluster

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"bahi/internal/distro"
)

// helperEnv makes the test binary act as another bahi, which a test can kill. Its value is the data folder.
const helperEnv = "BAHI_PGCLUSTER_TEST_HELPER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(helperEnv); dir != "" {
		os.Exit(helper(dir))
	}
	os.Exit(m.Run())
}

// helper serves a data folder until it is killed or its standard input ends.
func helper(dir string) int {
	lock, err := Lock(dir)
	if err == nil {
		fmt.Println("locked")
		var c *Cluster
		if c, err = Start(context.Background(), Options{Dir: dir}); err == nil {
			fmt.Println("pid", c.PID())
			_, err = io.Copy(io.Discard, os.Stdin)
		}
	}
	fmt.Fprintln(os.Stderr, lock, err)
	return 1
}

// bahi starts the helper, and returns it with its output.
func bahi(t *testing.T, dir string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), helperEnv+"="+dir)
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd, bufio.NewScanner(stdout)
}

// line returns the helper's next line.
func line(t *testing.T, out *bufio.Scanner) string {
	t.Helper()
	require.True(t, out.Scan(), "the helper ended: %v", out.Err())
	return out.Text()
}

// dataDir returns a folder that the cluster's user can reach. As root, it cannot reach t.TempDir.
func dataDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "bahi-test-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o711))
	dir, err = filepath.EvalSymlinks(dir)
	require.NoError(t, err)
	t.Cleanup(func() {
		// A failed test must not leave a cluster running.
		f := folder{root: dir}
		if pm, err := findPostmaster(f); err == nil && pm != nil {
			_ = syscall.Kill(pm.pid, syscall.SIGKILL)
		}
		require.NoError(t, os.RemoveAll(dir))
	})
	return dir
}

func options(t *testing.T, dir string) Options {
	t.Helper()
	return Options{Dir: dir, Ephemeral: true, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
}

func start(t *testing.T, opts Options) *Cluster {
	t.Helper()
	c, err := Start(t.Context(), opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Stop(context.WithoutCancel(t.Context()))) })
	return c
}

// ask returns the result of a query, one text.
func ask(t *testing.T, c *Cluster, sql string, args ...any) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), c.URL())
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(t.Context())) }()
	var text string
	require.NoError(t, conn.QueryRow(t.Context(), sql, args...).Scan(&text))
	return text
}

func TestClusterIsPrivateAndDurable(t *testing.T) {
	t.Parallel()
	opts := options(t, filepath.Join(dataDir(t), "not", "there", "yet"))
	opts.Ephemeral = false
	c := start(t, opts)

	for setting, want := range map[string]string{
		"listen_addresses": "", "unix_socket_permissions": "0700", "fsync": "on", "synchronous_commit": "on", "full_page_writes": "on",
		"data_checksums": "on", "server_encoding": "UTF8", "lc_collate": "C", "jit": "off", "max_connections": "400", "wal_level": "replica",
		"shared_buffers": "256MB", "max_wal_size": "2GB", "wal_compression": "off", "random_page_cost": "1.1", "TimeZone": "GMT",
	} {
		sql := `select current_setting($1)`
		if setting == "lc_collate" { // no setting any more since Postgres 16
			sql = `select datcollate from pg_database where $1 <> '' and datname = current_database()`
		}
		require.Equal(t, want, ask(t, c, sql, setting), setting)
	}
	require.Equal(t, "initdb.conf", ask(t, c, `select regexp_replace(sourcefile, '.*/', '') from pg_settings
		where name = 'dynamic_shared_memory_type'`),
		"initdb's choices for this machine are kept")
	require.Equal(t, "peer", ask(t, c, `select string_agg(distinct auth_method, ',') from pg_hba_file_rules`))
	require.Equal(t, "bahi", ask(t, c, `select current_database()::text`))

	for _, dir := range []string{c.folder.postgres(), c.folder.run(), c.folder.pgdata()} {
		require.True(t, private(dir, c.owner), "%s must be private", dir)
	}
	info, err := os.Stat(c.folder.root)
	require.NoError(t, err)
	want := os.FileMode(0o700)
	if os.Geteuid() == 0 {
		want = 0o711
		require.NotZero(t, c.owner.uid, "Postgres refuses to run as root")
	}
	require.Equal(t, want, info.Mode().Perm())
}

func TestCommittedDataSurvivesAStop(t *testing.T) {
	t.Parallel()
	opts := options(t, dataDir(t))
	opts.Ephemeral = false
	c := start(t, opts)
	require.Equal(t, "kept", ask(t, c, `with w as (select 1) select 'kept'`))
	ask(t, c, `select set_config('bahi.x', 'x', false)`)
	conn, err := pgx.Connect(t.Context(), c.URL())
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), `create table kept (v text); insert into kept values ('yes')`)
	require.NoError(t, err) // The connection stays open: a fast stop does not wait for it.
	pid := c.PID()
	require.NoError(t, c.Stop(t.Context()))
	require.False(t, runs(c.folder, pid))
	require.NoError(t, c.Stop(t.Context()), "a second stop does nothing")

	again := start(t, opts)
	require.Equal(t, "yes", ask(t, again, `select v from kept`))

	over, cancel := context.WithCancel(t.Context())
	cancel()
	pid = again.PID()
	require.NoError(t, again.Stop(over), "with no time left, the stop is immediate")
	require.False(t, runs(c.folder, pid))
	require.Equal(t, "yes", ask(t, start(t, opts), `select v from kept`))
}

func TestAStopWaitsForTheLogger(t *testing.T) {
	t.Parallel()
	c := start(t, options(t, dataDir(t)))
	logger := 0
	for _, pid := range processes(c.folder) {
		if strings.Contains(strings.Join(commandLine(pid), " "), ": logger") {
			logger = pid
		}
	}
	require.NotZero(t, logger)
	require.NoError(t, syscall.Kill(logger, syscall.SIGSTOP)) // a busy machine
	pid := c.PID()
	go func() {
		for runs(c.folder, pid) {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(200 * time.Millisecond)
		_ = syscall.Kill(logger, syscall.SIGCONT)
	}()
	require.NoError(t, c.Stop(t.Context()))
	require.Empty(t, processes(c.folder), "a remaining process would write into a folder that its owner removes")
}

func TestKilledBahiLeavesAClusterThatIsAdopted(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	cmd, out := bahi(t, dir)
	require.Equal(t, "locked", line(t, out))
	pid := line(t, out)

	_, err := Lock(dir)
	var inUse *InUseError
	require.ErrorAs(t, err, &inUse)
	require.Equal(t, &InUseError{Dir: dir, PID: cmd.Process.Pid}, inUse)
	require.EqualError(t, err, "the data folder "+dir+" is in use by another bahi (pid "+strconv.Itoa(cmd.Process.Pid)+
		"): stop it, or name another folder in BAHI_DATA")

	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	lock, err := Lock(dir)
	require.NoError(t, err, "the running cluster must not hold its Bahi's lock")
	require.NoError(t, lock.Release())

	opts := options(t, dir)
	opts.Ephemeral = false
	c := start(t, opts)
	require.Equal(t, pid, "pid "+strconv.Itoa(c.PID()))
	require.NoError(t, c.Stop(t.Context()))

	again := start(t, opts)
	require.NotEqual(t, pid, "pid "+strconv.Itoa(again.PID()), "an adopted cluster stops like any other")
}

func TestClusterOfARenamedFolderIsFound(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	was, is := filepath.Join(dir, "was"), filepath.Join(dir, "is")
	cmd, out := bahi(t, was)
	require.Equal(t, "locked", line(t, out))
	old, err := strconv.Atoi(strings.TrimPrefix(line(t, out), "pid "))
	require.NoError(t, err)
	t.Cleanup(func() { _ = syscall.Kill(old, syscall.SIGKILL) })
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	require.NoError(t, os.Rename(was, is))

	var log strings.Builder
	opts := options(t, is)
	opts.Log = slog.New(slog.NewTextHandler(&log, nil))
	c := start(t, opts)
	require.Equal(t, "up", ask(t, c, `select 'up'`))
	require.NotEqual(t, old, c.PID(), "its socket and log are in the old folder")
	require.Contains(t, log.String(), "restarting Postgres for its new settings")
	require.NotContains(t, log.String(), "waiting for the previous")

	copied := filepath.Join(dir, "copied")
	_, err = distro.Run(t.Context(), "cp", "-a", is, copied)
	require.NoError(t, err)
	require.NoError(t, os.Rename(is, was))
	require.NoError(t, os.Rename(copied, is))
	require.False(t, runs(c.folder, c.PID()), "the original's Postgres does not run on a copy in its place")
	require.NoError(t, os.Rename(is, copied))
	require.NoError(t, os.Rename(was, is))
}

func TestClusterIsRestartedForOtherSettings(t *testing.T) {
	t.Parallel()
	opts := options(t, dataDir(t))
	first := start(t, opts)
	pid := first.PID()

	opts.Ephemeral = false
	beside, err := Attach(t.Context(), opts)
	require.NoError(t, err)
	require.Equal(t, pid, beside.PID(), "a command beside a serving Bahi changes nothing")
	require.NoError(t, beside.Stop(t.Context()))
	require.Equal(t, "128MB", ask(t, first, `select current_setting('shared_buffers')`))

	require.NoError(t, first.Stop(t.Context()))
	require.Equal(t, "256MB", ask(t, start(t, opts), `select current_setting('shared_buffers')`))
	opts.Ephemeral = true
	require.Equal(t, "128MB", ask(t, start(t, opts), `select current_setting('shared_buffers')`), "Start restarts a cluster in use")
}

func TestKilledPostmasterIsStartedAgain(t *testing.T) {
	t.Parallel()
	c := start(t, options(t, dataDir(t)))
	conn, err := pgx.Connect(t.Context(), c.URL())
	require.NoError(t, err)
	// This process does not notice the end of its postmaster, and holds the old shared memory until it is killed.
	busy := make(chan error, 1)
	go func() {
		_, err := conn.Exec(context.WithoutCancel(t.Context()), `do $$ begin loop end loop; end $$`)
		busy <- err
	}()
	require.Eventually(t, func() bool {
		return ask(t, c, `select count(*)::text from pg_stat_activity where state = 'active' and query like 'do %'`) == "1"
	}, time.Minute, 10*time.Millisecond)

	for range 2 {
		pid := c.PID()
		require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
		require.Eventually(t, func() bool { return c.PID() != pid }, time.Minute, 10*time.Millisecond)
		require.Equal(t, "back", ask(t, c, `select 'back'`))
	}
	require.Error(t, <-busy)
}

func TestStalePIDFilesDoNotMatter(t *testing.T) {
	t.Parallel()
	opts := options(t, dataDir(t))
	c := start(t, opts)
	require.NoError(t, c.Stop(t.Context()))
	// After a reboot the number may be any process's; in a container it is often our own.
	for name, text := range map[string]string{
		"somebody else's": strconv.Itoa(sleeper(t, c.owner)), "our own": strconv.Itoa(os.Getpid()), "nobody's": "4194304", "none": "",
	} {
		require.NoError(t, c.folder.write(filepath.Join(c.folder.pgdata(), "postmaster.pid"), text+"\n"+c.folder.pgdata()+"\n", c.owner))
		require.NoError(t, c.folder.write(filepath.Join(c.socket, ".s.PGSQL.5432.lock"), text+"\n"+c.folder.pgdata()+"\n", c.owner))
		again := start(t, opts)
		require.Equal(t, "up", ask(t, again, `select 'up'`), name)
		require.NoError(t, again.Stop(t.Context()))
	}
}

// sleeper starts a process of the cluster's user that is not Postgres.
func sleeper(t *testing.T, o owner) int {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", "read never")
	cmd.Dir, cmd.SysProcAttr = "/", o.process()
	_, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd.Process.Pid
}

func TestLongPathsGetAShortSocketFolder(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	opts := options(t, filepath.Join(dir, strings.Repeat("long", 25), "it's, a \"name\""))
	c := start(t, opts)
	require.Less(t, len(c.socket), 80)
	require.True(t, private(c.socket, c.owner))
	require.Equal(t, "up", ask(t, c, `select 'up'`))

	// After /tmp was cleaned and the postmaster has died, the URL works again.
	pid := c.PID()
	require.NoError(t, os.RemoveAll(c.socket))
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	require.Eventually(t, func() bool { return c.PID() != pid }, time.Minute, 10*time.Millisecond)
	require.Equal(t, "up", ask(t, c, `select 'up'`))

	beside, err := Attach(t.Context(), opts)
	require.NoError(t, err)
	require.Equal(t, c.URL(), beside.URL())
	require.NoError(t, beside.Stop(t.Context()))
	require.NoError(t, c.Stop(t.Context()))
	require.NoDirExists(t, c.socket)

	// A copied data folder has the original's record of the socket, and its pid file.
	c = start(t, opts)
	copied := filepath.Join(dir, strings.Repeat("copy", 25))
	_, err = distro.Run(t.Context(), "cp", "-a", c.folder.root, copied)
	require.NoError(t, err)
	opts.Dir = copied
	second := start(t, opts)
	require.NotEqual(t, c.socket, second.socket)
	require.NotEqual(t, c.PID(), second.PID())
}

func TestCommandsShareOneCluster(t *testing.T) {
	t.Parallel()
	opts := options(t, dataDir(t))
	type result struct {
		c   *Cluster
		err error
	}
	results := make(chan result)
	for range 4 {
		go func() {
			c, err := Attach(context.WithoutCancel(t.Context()), opts)
			results <- result{c, err}
		}()
	}
	var all []*Cluster
	for range 4 {
		r := <-results
		require.NoError(t, r.err)
		all = append(all, r.c)
	}
	for i, c := range all {
		require.Equal(t, all[0].PID(), c.PID(), "four commands at once start one cluster")
		if i > 0 {
			require.NoError(t, c.Stop(t.Context()))
		}
	}
	require.Equal(t, "up", ask(t, all[0], `select 'up'`), "it runs while one of them uses it")
	pid := all[0].PID()
	require.NoError(t, all[0].Stop(t.Context()))
	require.False(t, runs(all[0].folder, pid), "the last user stops it")
}

func TestBrokenTestClusterIsReplacedAndARealOneIsNot(t *testing.T) {
	t.Parallel()
	opts := options(t, dataDir(t))
	c := start(t, opts)
	require.NoError(t, c.Stop(t.Context()))
	control := filepath.Join(c.folder.pgdata(), "global", "pg_control")
	require.NoError(t, os.WriteFile(control, []byte("broken"), 0o600))

	opts.Ephemeral = false
	_, err := Start(t.Context(), opts)
	require.ErrorContains(t, err, "pg_control")
	require.FileExists(t, control)

	opts.Ephemeral = true
	require.Equal(t, "up", ask(t, start(t, opts), `select 'up'`))
}

func TestDataFolderThatPostgresCannotReachIsNamed(t *testing.T) {
	t.Parallel()
	closed := t.TempDir()
	require.NoError(t, os.Chmod(closed, 0o700))
	opts := options(t, filepath.Join(closed, "data"))
	c, err := Start(t.Context(), opts)
	if os.Geteuid() != 0 {
		require.NoError(t, err, "an ordinary user reaches it")
		require.NoError(t, c.Stop(t.Context()))
		return
	}
	require.ErrorContains(t, err, "cannot enter ")
	require.ErrorContains(t, err, "BAHI_DATA=")
}

func TestDataFolderThatIsAFileIsRefused(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "data")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := Lock(file)
	require.ErrorContains(t, err, "is not a folder")
	_, err = Lock("")
	require.EqualError(t, err, "no data folder is named: set BAHI_DATA")
}
