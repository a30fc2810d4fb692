package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"bahi/internal/pgcluster"
	"bahi/internal/test/starter"
)

const startTimeout = 2 * time.Minute

// Postgres is the cluster with the histories' databases, whose processes they kill.
type Postgres struct {
	cluster *pgcluster.Cluster
	dir     string
	disk    bool // the folder is a small disk of its own
}

// diskSize is the size of a disk that a history fills.
const diskSize = "600m"

// StartPostgres starts a cluster in a new folder, on which these faults can be injected. The fault "disk" needs root, and "pgclock"
// libfaketime.
func StartPostgres(ctx context.Context, parent string, faults []string) (p *Postgres, err error) {
	p = &Postgres{disk: slices.Contains(faults, "disk")}
	if p.dir, err = os.MkdirTemp(parent, "bahi-history-"); err != nil {
		return nil, err
	}
	if err = os.Chmod(p.dir, 0o711); err == nil && p.disk {
		err = syscall.Mount("tmpfs", p.dir, "tmpfs", 0, "mode=0711,size="+diskSize)
		p.disk = err == nil
	}
	if err == nil && slices.Contains(faults, "pgclock") {
		err = p.fakeClock()
	}
	if err == nil {
		p.cluster, err = pgcluster.Start(ctx, pgcluster.Options{Dir: p.dir, Log: slog.New(slog.DiscardHandler)})
	}
	if err != nil {
		return nil, errors.Join(err, p.remove())
	}
	return p, nil
}

// Stop stops the cluster and removes its folder.
func (p *Postgres) Stop() error {
	return errors.Join(p.cluster.Stop(context.Background()), p.remove())
}

func (p *Postgres) remove() (err error) {
	if p.disk {
		err = syscall.Unmount(p.dir, syscall.MNT_DETACH)
	}
	return errors.Join(err, os.RemoveAll(p.dir))
}

// admin runs statements outside the histories' databases.
func (p *Postgres) admin(ctx context.Context, statements ...string) error {
	conn, err := pgx.Connect(ctx, p.cluster.URL())
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the connection is discarded
	for _, statement := range statements {
		if _, err = conn.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// through returns the URL of a database through a proxy or, without one, directly.
func (p *Postgres) through(database string, via *proxy) string {
	u, err := url.Parse(p.cluster.URL())
	if err != nil {
		panic(err) // pgcluster made it
	}
	u.Path = "/" + database
	if via != nil {
		q := u.Query()
		q.Set("host", "127.0.0.1")
		q.Set("port", fmt.Sprint(via.port()))
		u.RawQuery = q.Encode()
	}
	return u.String()
}

func (p *Postgres) socket() (string, error) {
	u, err := url.Parse(p.cluster.URL())
	if err != nil {
		return "", err
	}
	return filepath.Join(u.Query().Get("host"), ".s.PGSQL."+u.Query().Get("port")), nil
}

// process is a bahi that is started again after each kill.
type process struct {
	program, folder string
	args, env       []string
	output          *os.File

	mu      sync.Mutex
	now     *starter.Process // nil before the first start
	address string           // address at the last start: the server's, or the gateway's
}

// start starts the process and waits until it serves.
func (p *process) start(ctx context.Context) error {
	cmd := exec.Command(p.program, p.args...)
	cmd.Env = starter.Env(p.folder, append(p.env, "BAHI_AUDIT_EVERY=200ms", clockVariable+"="+p.clock())...)
	started, err := starter.Start(cmd, p.output)
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.now = started
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	address := ""
	if err := started.Await(ctx, func(string) bool { address = cmp.Or(started.Gateway, started.URL); return address != "" }); err != nil {
		started.Signal(syscall.SIGKILL)
		return fmt.Errorf("%s: %w; see %s", strings.Join(p.args, " "), err, p.output.Name())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.address = address
	return nil
}

func (p *process) at() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.address
}

func (p *process) running() *starter.Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now
}

// hasEnded reports whether the process was started and has ended.
func (p *process) hasEnded() bool {
	now := p.running()
	return now != nil && now.HasEnded()
}

// signal sends a signal, and waits for the end if wait is set.
func (p *process) signal(s syscall.Signal, wait bool) {
	if now := p.running(); now != nil {
		if now.Signal(s); wait {
			<-now.Done
		}
	}
}

// system is the nodes of one history, their database and the optional journal.
type system struct {
	postgres *Postgres
	name     string // name of the database
	folder   string // folder of the nodes and their output
	nodes    []*process
	proxies  []*proxy // proxies between the nodes and Postgres

	journal      *process
	journalProxy *proxy
}

// startSystem creates the database and starts the nodes.
func startSystem(ctx context.Context, p *Postgres, s Settings) (sys *system, err error) {
	sys = &system{postgres: p, name: fmt.Sprintf("history_%d", s.Seed)}
	if sys.folder, err = os.MkdirTemp("", "bahi-nodes-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			sys.stop()
		}
	}()
	if err = p.admin(ctx, `create database `+sys.name); err != nil {
		return nil, err
	}
	journal := ""
	if s.Log == "journal" {
		if journal, err = sys.startJournal(ctx, s); err != nil {
			return nil, err
		}
	}
	socket, err := p.socket()
	if err != nil {
		return nil, err
	}
	for n := range s.Nodes {
		via, err := newProxy("unix", socket)
		if err != nil {
			return nil, err
		}
		sys.proxies = append(sys.proxies, via)
		node, err := sys.process(s, fmt.Sprintf("node-%d", n), "serve", "--takeover-after", "3s")
		if err != nil {
			return nil, err
		}
		node.env = append(node.env, "DATABASE_URL="+p.through(sys.name, via), "EVENTSTORE_URL="+journal,
			fmt.Sprint("BAHI_UNLOGGED_TABLES=", s.Seed%2 == 0))
		sys.nodes = append(sys.nodes, node)
	}
	started := make(chan error, s.Nodes) // together: each finds the others at work on the tables
	for _, node := range sys.nodes {
		go func() { started <- node.start(ctx) }()
	}
	for range sys.nodes {
		err = errors.Join(err, <-started)
	}
	return sys, err
}

// startJournal starts a bahi gateway on its own database, and returns the address of the proxy in front.
func (sys *system) startJournal(ctx context.Context, s Settings) (string, error) {
	err := sys.postgres.admin(ctx, `create database `+sys.name+`_journal`)
	if err != nil {
		return "", err
	}
	if sys.journal, err = sys.process(s, "journal", "gateway"); err != nil {
		return "", err
	}
	sys.journal.env = append(sys.journal.env, "DATABASE_URL="+sys.postgres.through(sys.name+"_journal", nil),
		"BAHI_GATEWAY_WRITE=true", "BAHI_GATEWAY_GRPC_ADDR=127.0.0.1:0")
	if err = sys.journal.start(ctx); err != nil {
		return "", err
	}
	// Each start has the same port, so the proxy finds it.
	sys.journal.env = append(sys.journal.env, "BAHI_GATEWAY_GRPC_ADDR="+sys.journal.at())
	if sys.journalProxy, err = newProxy("tcp", sys.journal.at()); err != nil {
		return "", err
	}
	return fmt.Sprintf("esdb://%s@127.0.0.1:%d?tlsCAFile=%s", url.UserPassword("bahi", starter.OperatorKey), sys.journalProxy.port(),
		url.QueryEscape(filepath.Join(sys.journal.folder, "gateway", "ca.crt"))), nil
}

// process returns a bahi before its start, with a folder and an output file.
func (sys *system) process(s Settings, name string, args ...string) (*process, error) {
	p := &process{program: s.Program, folder: filepath.Join(sys.folder, name), args: args}
	if err := os.Mkdir(p.folder, 0o700); err != nil {
		return nil, err
	}
	var err error
	if p.output, err = os.Create(filepath.Join(s.Folder, fmt.Sprintf("%d-%s.log", s.Seed, name))); err != nil {
		return nil, err
	}
	return p, p.setClock(0)
}

func (sys *system) url(node int) string { return sys.nodes[node%len(sys.nodes)].at() }

// run runs a command of bahi beside the nodes.
func (sys *system) run(ctx context.Context, args ...string) (string, error) {
	node := sys.nodes[0]
	cmd := exec.CommandContext(ctx, node.program, args...)
	folder, err := os.MkdirTemp(sys.folder, "command-")
	if err != nil {
		return "", err
	}
	cmd.Env = starter.Env(folder, node.env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// stop ends the nodes and drops the database.
func (sys *system) stop() {
	for _, p := range append(sys.nodes, sys.journal) {
		if p != nil {
			p.signal(syscall.SIGCONT, false)
			p.signal(syscall.SIGKILL, true)
			_ = p.output.Close()
		}
	}
	for _, p := range append(sys.proxies, sys.journalProxy) {
		if p != nil {
			p.stop()
		}
	}
	ctx := context.Background()
	for _, name := range []string{"", "_journal", "_behind", "_lost"} { // a leftover is removed with the cluster
		_ = sys.postgres.admin(ctx, `drop database if exists `+sys.name+name+` with (force)`)
	}
	_ = os.RemoveAll(sys.folder)
}
