package pgtest

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"bahi/internal/pgcluster"
)

// DB returns the URL of an empty database, which is dropped when the test ends.
func DB(t testing.TB) string {
	t.Helper()
	s := shared(t)
	return s.clone(t, "template1")
}

// Template returns the URL of a new database, which is dropped when the test ends. It is a copy of one on which migrate has run, once for
// each name in a run of go test: a name means the same in all packages. migrate must leave no connection open, because Postgres does not
// copy a database in use.
func Template(t testing.TB, name string, migrate func(ctx context.Context, url string) error) string {
	t.Helper()
	s := shared(t)
	return s.clone(t, s.once(t, "template "+name, func() (string, error) { return s.template(name, migrate) }))
}

// Shared returns the URL of a copy that all tests of the process share. Each must leave the rows of others alone. A later process drops it.
func Shared(t testing.TB, name string, migrate func(ctx context.Context, url string) error) string {
	t.Helper()
	s := shared(t)
	return s.url(s.once(t, "shared "+name, func() (string, error) {
		source, err := s.template(name, migrate)
		if err != nil {
			return "", err
		}
		copied := s.name()
		return copied, s.create(context.Background(), copied, source) // it outlives the test
	}))
}

// once returns the database that the first call with its name makes.
func (s *server) once(t testing.TB, name string, do func() (string, error)) string {
	t.Helper()
	s.mu.Lock()
	once, ok := s.made[name]
	if !ok {
		once = sync.OnceValues(do)
		s.made[name] = once
	}
	s.mu.Unlock()
	database, err := once()
	if err != nil {
		t.Fatal(err)
	}
	return database
}

// Cluster returns a private cluster with fsync on, for tests that kill it. It is stopped and removed when the test ends.
func Cluster(t testing.TB) *pgcluster.Cluster {
	t.Helper()
	c, err := pgcluster.Start(t.Context(), pgcluster.Options{Dir: Dir(t), Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return c
}

// Dir returns an empty folder for a data folder. t.TempDir is unsuitable: as root, another user runs Postgres in it and must be able to
// enter. Dir is removed when the test ends, after the cleanups that were registered later.
func Dir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp(parent(), "bahi-")
	if err == nil {
		t.Cleanup(func() {
			if err := os.RemoveAll(dir); err != nil {
				t.Error(err)
			}
		})
		err = os.Chmod(dir, 0o711) // Its sub-folders are private.
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// server is this process's share in the run's cluster.
type server struct {
	cluster *pgcluster.Cluster // held until the process ends
	pool    *pgxpool.Pool      // on a database without tests

	building  sync.Mutex
	mu        sync.Mutex
	made      map[string]func() (string, error)
	databases atomic.Int64
}

var join = sync.OnceValues(open)

func shared(t testing.TB) *server {
	t.Helper()
	s, err := join()
	if err != nil {
		t.Fatalf("a Postgres for the tests: %v", err)
	}
	return s
}

func open() (*server, error) {
	ctx := context.Background()
	dir, err := folder()
	if err != nil {
		return nil, err
	}
	// Only warnings and errors are logged.
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	s := &server{made: map[string]func() (string, error){}}
	if s.cluster, err = pgcluster.Attach(ctx, pgcluster.Options{Dir: dir, Log: log, Ephemeral: true}); err != nil {
		return nil, fmt.Errorf("join the cluster: %w", err)
	}
	if err := keepWatch(dir); err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig(s.cluster.URL())
	if err != nil {
		return nil, fmt.Errorf("parse the cluster's URL: %w", err)
	}
	config.MaxConns = 4
	if s.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	return s, s.sweep(ctx)
}

// parent returns the folder for temporary files. It is Linux's folder in memory if that has space and TMPDIR is not set. On ext4, tests are
// slower: ext4 reserves the inode of a deleted file for some seconds, and checks all reserved inodes when it creates a file. Each database
// has 700 files.
func parent() string {
	var fs syscall.Statfs_t
	if os.Getenv("TMPDIR") == "" && syscall.Statfs(memory, &fs) == nil && fs.Bavail*uint64(fs.Bsize) >= roomInMemory {
		return memory
	}
	return os.TempDir()
}

const (
	memory       = "/dev/shm"
	roomInMemory = 4 << 30 // bytes; a run uses up to 1 GB
)

// folder returns the cluster's folder, one for each user and boot of the machine: after a power cut, a cluster that does not sync may be
// corrupt.
func folder() (string, error) {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // Only Linux has it; elsewhere /tmp is emptied at boot.
	name := fmt.Sprintf("bahi-pgtest-%d-%.8s", os.Getuid(), boot)
	dir := filepath.Join(parent(), strings.TrimRight(name, "-"))
	if err := os.Mkdir(dir, 0o711); err != nil && !errors.Is(err, os.ErrExist) { // As root, another user must enter.
		return "", fmt.Errorf("create the test cluster's folder: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return "", fmt.Errorf("look at the test cluster's folder: %w", err)
	}
	// Everybody may write in /tmp, so the folder may be another user's.
	if sys, ok := info.Sys().(*syscall.Stat_t); !info.IsDir() || !ok || int(sys.Uid) != os.Getuid() {
		return "", fmt.Errorf("%s belongs to another user; remove it", dir)
	}
	return dir, nil
}

// sweep drops the databases of ended test processes. A process cannot drop its own templates, because it does not know when it ends.
func (s *server) sweep(ctx context.Context) error {
	rows, err := s.pool.Query(ctx, `select datname::text from pg_database where datname ~ '^test_[0-9]+_'`)
	if err != nil {
		return fmt.Errorf("list test databases: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("list test databases: %w", err)
	}
	for _, name := range names {
		var pid int
		if _, err := fmt.Sscanf(name, "test_%d_", &pid); err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			if err := s.drop(ctx, name); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *server) name() string {
	return fmt.Sprintf("test_%d_%d", os.Getpid(), s.databases.Add(1))
}

// template returns the template database of that name. Tests only copy it. The first process of a run of go test creates it for all.
func (s *server) template(name string, migrate func(context.Context, string) error) (string, error) {
	ctx := context.Background() // It serves every test of the process, not only the first.
	run, ok := currentRun()
	if !ok {
		return s.migrated(ctx, s.name(), name, migrate)
	}
	sum := sha256.Sum256([]byte(run.began + " " + name))
	source := fmt.Sprintf("test_%d_%x", run.pid, sum[:8])
	s.building.Lock() // so that one connection of the pool is held, not all
	defer s.building.Unlock()
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return "", fmt.Errorf("template %s: %w", name, err)
	}
	defer conn.Release()
	var isReady *bool
	if _, err = conn.Exec(ctx, `select pg_advisory_lock(hashtext($1))`, source); err == nil {
		defer conn.Exec(ctx, `select pg_advisory_unlock(hashtext($1))`, source) // a lost connection has no lock
		err = conn.QueryRow(ctx, `select bool_or(not datallowconn) from pg_database where datname = $1`, source).Scan(&isReady)
	}
	if err == nil && isReady != nil && !*isReady { // its process died
		err = s.drop(ctx, source)
	}
	switch {
	case err != nil:
		return "", fmt.Errorf("template %s: %w", name, err)
	case isReady != nil && *isReady:
		return source, nil
	}
	return s.migrated(ctx, source, name, migrate)
}

// goRun is a process go test.
type goRun struct {
	pid   int
	began string // the system may reuse the pid
}

// currentRun returns the run of go test whose packages are all compiled from the same files; false if this process is not part of one, or
// the system does not report it.
func currentRun() (r goRun, ok bool) {
	r.pid = os.Getppid()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", r.pid)) // proc(5): pid, (command), and from the third on fields without spaces
	command, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	const started = 22 - 3
	if err != nil || !strings.HasSuffix(command, "(go") || len(fields) <= started {
		return r, false
	}
	r.began = fields[started]
	return r, true
}

// migrated creates a database, and forbids connections once migrate has run.
func (s *server) migrated(ctx context.Context, source, name string, migrate func(context.Context, string) error) (string, error) {
	if err := s.create(ctx, source, "template1"); err != nil {
		return "", err
	}
	if err := migrate(ctx, s.url(source)); err != nil {
		return "", fmt.Errorf("template %s: %w", name, err)
	}
	// No connections from now on, Postgres's autovacuum included: a database in use is not copied.
	if _, err := s.pool.Exec(ctx, `alter database `+pgx.Identifier{source}.Sanitize()+` allow_connections false`); err != nil {
		return "", fmt.Errorf("template %s: %w", name, err)
	}
	return source, nil
}

func (s *server) clone(t testing.TB, source string) string {
	t.Helper()
	name := s.name()
	if err := s.create(t.Context(), name, source); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.drop(context.WithoutCancel(t.Context()), name); err != nil {
			t.Error(err)
		}
	})
	return s.url(name)
}

// create copies a database. It retries while the source is in use: a connection that migrate has closed takes a moment to end. Copying
// through the log is Postgres's default; BenchmarkClone compares it with copying files.
func (s *server) create(ctx context.Context, name, source string) error {
	sql := `create database ` + pgx.Identifier{name}.Sanitize() + ` template ` + pgx.Identifier{source}.Sanitize()
	for deadline := time.Now().Add(20 * time.Second); ; {
		_, err := s.pool.Exec(ctx, sql)
		inUse := new(pgconn.PgError)
		switch {
		case err == nil:
			return nil
		case !errors.As(err, &inUse) || inUse.Code != "55006" || time.Now().After(deadline):
			return fmt.Errorf("copy database %s: %w", source, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("copy database %s: %w", source, ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (s *server) drop(ctx context.Context, name string) error {
	if _, err := s.pool.Exec(ctx, `drop database if exists `+pgx.Identifier{name}.Sanitize()+` with (force)`); err != nil {
		return fmt.Errorf("drop database %s: %w", name, err)
	}
	return nil
}

func (s *server) url(name string) string {
	u, err := url.Parse(s.cluster.URL())
	if err != nil {
		panic(err) // pgcluster made it.
	}
	u.Path = "/" + name
	return u.String()
}

//go:embed watch.sh
var watchScript string

// keepWatch starts a watcher that stops the cluster after the last test process has ended. It is a shell script, because a test binary with
// another purpose would need a hook in every package.
func keepWatch(dir string) error {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return fmt.Errorf("watch over the test cluster: %w", err)
	}
	if _, err := exec.LookPath("flock"); err != nil {
		return nil //nolint:nilerr // On macOS the cluster stays, and the next run uses it again.
	}
	cmd := exec.Command("/bin/sh", "-c", watchScript, "bahi-pgtest-watch", dir) // No context: it outlives us.
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // A Ctrl-C on go test is not for it.
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("watch over the test cluster: %w", err)
	}
	go func() { _ = cmd.Wait() }() // All watchers but one end at once; that one outlives us.
	return nil
}
