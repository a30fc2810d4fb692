package pgcluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Options are a cluster's folder and settings.
type Options struct {
	// Dir is the data folder. It is created if missing.
	Dir string
	// Log gets a line for each slow step and for each restart. Nil means slog.Default().
	Log *slog.Logger
	// Ephemeral is for tests: nothing is synced to disk, and a cluster that does not start is replaced by a new one.
	Ephemeral bool
}

// Cluster is a running private cluster, with this process's share in it.
type Cluster struct {
	folder   folder
	owner    owner
	programs *Programs
	opts     Options
	log      *slog.Logger
	conf     string // postgresql.conf
	socket   string // its folder; like mayStop constant after Start or Attach
	mayStop  bool   // may restart a cluster in use, for other settings

	start, users *os.File        // the locks in doc.go
	life         context.Context //nolint:containedctx // From Start to Stop: it bounds the goroutines that watch the cluster.
	halt         context.CancelCauseFunc
	supervised   sync.WaitGroup
	once         sync.Once
	stopErr      error

	mu sync.Mutex
	pm *postmaster
}

var (
	errStopping = errors.New("the cluster is being stopped")
	errGone     = errors.New("postgres ended")
)

// Start starts the cluster, and restarts a dead postmaster until Stop is called. It adopts a running cluster, as after a kill -9 of Bahi,
// or restarts it if the settings differ. Start returns when the database accepts connections. It waits for crash recovery without a limit,
// and logs its progress.
//
// Start does not acquire the data folder's Lock. A server acquires that first.
func Start(ctx context.Context, opts Options) (*Cluster, error) {
	c, err := open(ctx, opts, true)
	if err != nil {
		return nil, err
	}
	c.supervised.Go(func() { c.supervise(c.life) })
	return c, nil
}

// Attach joins the cluster that runs on the data folder, or starts one. It is for commands beside a serving Bahi: it neither changes the
// settings of a cluster in use, nor restarts a dead one. Stop leaves the cluster to its other users.
func Attach(ctx context.Context, opts Options) (*Cluster, error) { return open(ctx, opts, false) }

func open(ctx context.Context, opts Options, mayStop bool) (_ *Cluster, err error) {
	c := &Cluster{opts: opts, log: opts.Log, mayStop: mayStop}
	c.life, c.halt = context.WithCancelCause(context.WithoutCancel(ctx))
	defer func() {
		if err != nil {
			c.halt(err)
		}
	}()
	c.log = cmp.Or(c.log, slog.Default())
	if c.folder, err = openFolder(opts.Dir); err != nil {
		return nil, err
	}
	if c.programs, err = Find(ctx, c.log, clusterMajor(c.folder)); err != nil {
		return nil, err
	}
	if c.owner, err = ownerOf(ctx, c.folder); err != nil {
		return nil, err
	}
	if err := c.folder.reachable(ctx, c.owner); err != nil {
		return nil, err
	}
	if c.start, err = openLock(c.folder.startLock()); err != nil {
		return nil, err
	}
	if c.users, err = openLock(c.folder.userLock()); err != nil {
		return nil, errors.Join(err, c.start.Close())
	}
	if err := c.bringUp(ctx); err != nil {
		return nil, errors.Join(err, c.release())
	}
	c.mayStop = false // Later restarts are for a dead postmaster, not for settings.
	return c, nil
}

// URL returns a connection string for pgx and for Postgres's programs. Restarts of the cluster do not change it.
func (c *Cluster) URL() string { return c.url(database) }

func (c *Cluster) url(name string) string {
	query := url.Values{"host": {c.socket}, "port": {port}, "user": {superuser}, "sslmode": {"disable"}}
	return "postgres:///" + name + "?" + query.Encode()
}

// PID returns the process number of the postmaster, which changes with each restart.
func (c *Cluster) PID() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pm.pid
}

// Programs returns Postgres's programs in the cluster's version, such as pg_dump, pg_basebackup and pgbench.
func (c *Cluster) Programs() *Programs { return c.programs }

// fastStop limits a fast shutdown, before an immediate one. Both fit into the ten seconds of a stopping process.
const fastStop = 6 * time.Second

// Stop releases this process's share in the cluster. The last user stops it: fast, so that the next start needs no recovery, or, after six
// seconds or the context's end, immediately, which loses no commit. A second call returns the result of the first.
func (c *Cluster) Stop(ctx context.Context) error {
	c.once.Do(func() { c.stopErr = c.stop(ctx) })
	return c.stopErr
}

func (c *Cluster) stop(ctx context.Context) (err error) {
	c.halt(errStopping)
	c.supervised.Wait()
	defer func() { err = errors.Join(err, c.release()) }()

	// A passed deadline must not leave the cluster running.
	wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), fastStop)
	defer cancel()
	if err := flockWait(wait, c.start); err != nil {
		return err
	}
	last, err := flock(c.users, syscall.LOCK_EX)
	if err != nil {
		return err
	}
	if !last {
		c.log.Info("Postgres keeps running for its other users", "folder", c.folder.pgdata())
		return nil
	}
	pm, err := findPostmaster(c.folder)
	if err != nil || pm == nil {
		return err
	}
	pm.watch(context.WithoutCancel(ctx), c.folder, 10*time.Millisecond)
	if err := pm.stop(ctx, c.log, c.folder, fastStop); err != nil {
		return err
	}
	forgetSocket(c.folder, c.socket)
	c.log.Debug("stopped Postgres", "pid", pm.pid)
	return nil
}

// release releases the locks, in any order: the next process checks the cluster under the start lock.
func (c *Cluster) release() error {
	if err := errors.Join(c.users.Close(), c.start.Close()); err != nil {
		return fmt.Errorf("release the cluster's locks: %w", err)
	}
	return nil
}

// bringUp finds or starts the postmaster, waits for it, and takes a share. One process at a time does so.
func (c *Cluster) bringUp(ctx context.Context) (err error) {
	if err := flockWait(ctx, c.start); err != nil {
		return err
	}
	defer func() {
		// A failure does not matter: closing the file unlocks it too.
		_ = syscall.Flock(int(c.start.Fd()), syscall.LOCK_UN)
	}()
	// The kind of lock changes only under the start lock, so a failure means that there are users.
	alone, err := flock(c.users, syscall.LOCK_EX)
	if err != nil {
		return err
	}
	defer func() {
		// This applies after a failure too: a supervisor that retries remains a user.
		_, shareErr := flock(c.users, syscall.LOCK_SH)
		err = errors.Join(err, shareErr)
	}()
	if err := c.folder.own(c.owner); err != nil {
		return err
	}
	pm, err := c.up(ctx, alone)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pm = pm
	return nil
}

func (c *Cluster) up(ctx context.Context, alone bool) (pm *postmaster, err error) {
	// The URL must stay the same for all its users.
	if c.socket == "" {
		c.socket, err = socketDir(c.folder, c.owner)
	} else {
		err = restoreSocketDir(c.socket, c.owner)
	}
	if err != nil {
		return nil, err
	}
	c.conf = configuration(c.folder, c.socket, c.opts.Ephemeral)
	pm, err = c.join(ctx, alone)
	if pm != nil || err != nil {
		return pm, err
	}
	pm, err = c.begin(ctx)
	switch {
	case err == nil || ctx.Err() != nil:
		return pm, err
	case strings.Contains(err.Error(), `lock file "postmaster.pid" already exists`):
		// A killed Bahi was starting a postmaster that had not written its pid yet.
		return c.join(ctx, alone)
	case c.opts.Ephemeral && alone:
		c.log.Warn("replacing a test cluster that does not start", "error", err)
		if err := os.RemoveAll(c.folder.pgdata()); err != nil {
			return nil, fmt.Errorf("remove the test cluster: %w", err)
		}
		return c.begin(ctx)
	}
	return nil, err
}

// join adopts a running postmaster. It returns nil if none runs, or the running one was stopped for its settings.
func (c *Cluster) join(ctx context.Context, alone bool) (*postmaster, error) {
	pm, err := findPostmaster(c.folder)
	if pm == nil || err != nil {
		return nil, err
	}
	// The kernel reports a process's end to its parent only, so this polls, five times a second.
	pm.watch(c.life, c.folder, 200*time.Millisecond)
	// The file has the settings with which the cluster was started: it is written just before a start.
	text, err := readFile(filepath.Join(c.folder.pgdata(), "postgresql.conf"))
	if err != nil || text != c.conf && (alone || c.mayStop) {
		c.log.Info("restarting Postgres for its new settings", "pid", pm.pid, "folder", c.folder.pgdata())
		return nil, pm.stop(ctx, c.log, c.folder, fastStop)
	}
	c.log.Info("joining the running Postgres", "pid", pm.pid, "folder", c.folder.pgdata())
	err = c.ready(ctx, pm)
	if errors.Is(err, errGone) {
		return nil, nil //nolint:nilnil // Another Bahi requested the stop, and was then killed.
	}
	return pm, err
}

// begin starts a postmaster on the folder. It creates a missing cluster first.
func (c *Cluster) begin(ctx context.Context) (*postmaster, error) {
	if err := create(ctx, c.log, c.programs, c.folder, c.owner, c.opts.Ephemeral); err != nil {
		return nil, err
	}
	hba, ident := authentication(c.owner)
	for name, text := range map[string]string{"postgresql.conf": c.conf, "pg_hba.conf": hba, "pg_ident.conf": ident} {
		if err := c.folder.write(filepath.Join(c.folder.pgdata(), name), text, c.owner); err != nil {
			return nil, err
		}
	}
	if err := removeStaleSocket(c.folder, c.socket); err != nil {
		return nil, err
	}
	started := time.Now()
	for {
		pm, err := launch(c.programs, c.folder, c.owner)
		if err != nil {
			return nil, err
		}
		if err = c.ready(ctx, pm); err == nil {
			c.log.Info("Postgres is up", "pid", pm.pid, "version", c.programs.Version, "folder", c.folder.pgdata(),
				"took", time.Since(started).Round(time.Millisecond))
			return pm, nil
		}
		if !errors.Is(err, errGone) {
			return nil, errors.Join(err, pm.stop(ctx, c.log, c.folder, fastStop))
		}
		// The children of a killed postmaster hold its shared memory for a moment. Only that error is retried.
		if !strings.Contains(err.Error(), "shared memory block") || time.Since(started) > time.Minute {
			return nil, err
		}
		kind := syscall.SIGQUIT
		if time.Since(started) > 5*time.Second {
			kind = syscall.SIGKILL
		}
		c.log.Info("waiting for the previous Postgres's processes to end", "folder", c.folder.pgdata())
		endOrphans(c.folder, kind)
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// ready waits until the cluster takes connections, and creates a missing database.
func (c *Cluster) ready(ctx context.Context, pm *postmaster) error {
	return slowly(ctx, c.log, "waiting for Postgres", func() error {
		said := ""
		for {
			conn, err := c.connect(ctx, "postgres")
			if err == nil {
				return errors.Join(c.createDatabase(ctx, conn), conn.Close(ctx))
			}
			if refused := new(pgconn.PgError); errors.As(err, &refused) {
				// cannot_connect_now: starting, recovering or shutting down. too_many_connections passes too.
				if refused.Code != "57P03" && refused.Code != "53300" {
					return fmt.Errorf("connect to Postgres: %w", err)
				}
				if line := lastLogLine(c.folder); line != said && strings.Contains(line, "elapsed time") {
					said = line
					c.log.Info("Postgres recovers from a crash", "at", line)
				}
			}
			select {
			case <-pm.gone:
				return fmt.Errorf("%w before it took connections, on %s: %s", errGone, c.folder.pgdata(), lastWords(c.folder))
			case <-ctx.Done():
				return fmt.Errorf("wait for Postgres: %w", context.Cause(ctx))
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
}

func (c *Cluster) connect(ctx context.Context, name string) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, c.url(name))
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", name, err)
	}
	return conn, nil
}

func (c *Cluster) createDatabase(ctx context.Context, conn *pgx.Conn) error {
	var there bool
	err := conn.QueryRow(ctx, `select exists (select from pg_database where datname = $1)`, database).Scan(&there)
	if err == nil && !there {
		_, err = conn.Exec(ctx, `create database `+pgx.Identifier{database}.Sanitize())
	}
	// Postgres was still creating it for a killed Bahi: duplicate_database, or unique_violation if the two were concurrent.
	if refused, is := errors.AsType[*pgconn.PgError](err); is && (refused.Code == "42P04" || refused.Code == "23505") {
		return nil
	}
	if err != nil {
		return fmt.Errorf("create the database %s: %w", database, err)
	}
	return nil
}
