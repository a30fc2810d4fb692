package history

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"bahi/internal/test/bench"
	"bahi/internal/test/starter"
)

// Settings determine a history. The seed determines the calls and the faults; their times depend on the machine.
type Settings struct {
	Seed    uint64        `json:"seed"`
	Length  time.Duration `json:"length"`
	Nodes   int           `json:"nodes"`
	Log     string        `json:"log"` // postgres or journal
	Faults  []string      `json:"faults"`
	Clients int           `json:"clients"`
	Program string        `json:"-"` // path of bahi
	Folder  string        `json:"-"` // receives the output of the processes

	Report func(fault string) `json:"-"` // called before each fault; may be nil
}

// run is a history being recorded.
type run struct {
	settings   Settings
	postgres   *Postgres
	sys        *system
	load       *load
	faults     injector
	failedOver bool
	lost       int64
	findings   []string
}

func (r *run) report(fault string) {
	if r.settings.Report != nil {
		r.settings.Report(fault)
	}
}

// Record starts the nodes, records what clients see while faults happen, and reads everything once more at the end.
func Record(ctx context.Context, p *Postgres, s Settings) (h History, err error) {
	sys, err := startSystem(ctx, p, s)
	if err != nil {
		return h, err
	}
	defer sys.stop()
	r := &run{settings: s, postgres: p, sys: sys, load: newLoad(sys)}
	r.faults = injector{rand.New(rand.NewPCG(s.Seed, 1<<32)), s.Faults}
	during, end := context.WithTimeout(ctx, s.Length)
	defer end()
	var clients sync.WaitGroup
	clients.Go(func() { r.load.renew(during, s.Seed) })
	for n := range s.Clients {
		clients.Go(func() { r.load.client(n, s.Seed).run(during) })
	}
	err = r.inject(during)
	clients.Wait()
	if err == nil {
		err = r.recover(ctx)
	}
	if err != nil {
		return h, err
	}
	r.readAll(ctx)
	h = History{Settings: s, Calls: r.load.calls, Lost: r.lost}
	h.Log, err = r.readLog(ctx)
	if err == nil {
		out, wrong := sys.run(ctx, "doctor")
		// a failover may lose keys, which the journal does not contain
		keyless := r.failedOver && s.Log == "journal" && strings.Contains(out, "the vault has neither the key")
		if wrong != nil && !keyless {
			r.findings = append(r.findings, fmt.Sprintf("bahi doctor: %v: %s", wrong, out))
		}
	}
	h.Findings = r.findings
	return h, err
}

// recoverTimeout limits the time in which the nodes must become ready after the last fault.
const recoverTimeout = 2 * time.Minute

// recover waits until all nodes are ready. After a lost tail an operator must first accept the loss.
func (r *run) recover(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, recoverTimeout)
	defer cancel()
	for n := range r.sys.nodes {
		for {
			a, err := r.load.send(within, n, request{method: "GET", path: "/readyz", key: starter.OperatorKey})
			if err == nil && a.Status == http.StatusOK {
				break
			}
			if wrong := r.supervise(); wrong != nil {
				return wrong
			}
			if within.Err() != nil {
				r.findings = append(r.findings, fmt.Sprintf("node %d is not ready after %v: %s", n, recoverTimeout, a.Body))
				break
			}
			sleep(within, 50*time.Millisecond)
		}
	}
	return ctx.Err()
}

// readAll reads every account once more, from each node.
func (r *run) readAll(ctx context.Context) {
	type account struct {
		id        int64
		workspace string
	}
	seen := map[account]bool{}
	for _, c := range slices.Clip(r.load.calls) {
		if c.Account != 0 {
			seen[account{c.Account, c.Workspace}] = true
		}
	}
	for a := range seen {
		for n := range r.sys.nodes {
			c, got, err := r.read(ctx, n, a.id, a.workspace)
			for until := time.Now().Add(recoverTimeout); err == nil && time.Now().Before(until) &&
				(c.Stale || got.Status == http.StatusServiceUnavailable); { // tables without a WAL are folded again
				c, got, err = r.read(ctx, n, a.id, a.workspace)
			}
			if got.Status == http.StatusNotFound && r.failedOver {
				continue // the account was opened after the copy, and lost
			}
			if err != nil || !c.ok() || c.Stale {
				r.findings = append(r.findings, fmt.Sprintf("the last read of account %d fails: %d %s %v", a.id, got.Status, got.Body, err))
				continue
			}
			r.load.note(c)
		}
	}
}

// read reads an account from a node.
func (r *run) read(ctx context.Context, node int, account int64, workspace string) (c Call, got bench.Answer, err error) {
	c = Call{Client: r.settings.Clients + 1, Node: node, Op: List, Account: account, Workspace: workspace}
	out := c.request()
	out.key, out.header = starter.OperatorKey, append(out.header, "Bahi-Workspace: "+workspace)
	c.Start = time.Since(r.load.began)
	got, err = r.load.send(ctx, node, out)
	c.End, c.Status = time.Since(r.load.began), got.Status
	if err == nil {
		err = c.decode(got)
	}
	return c, got, err
}

// readLog reads the log from the database.
func (r *run) readLog(ctx context.Context) (log []Event, err error) {
	conn, err := pgx.Connect(ctx, r.postgres.through(r.sys.name, nil))
	if err != nil {
		return nil, err
	}
	rows, _ := conn.Query(ctx, `select position, stream, revision, type, data from log.event order by position`) // CollectRows has the error
	log, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Event])
	return log, errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
}

// proxy forwards connections to an address. It can cut, slow or stop them.
type proxy struct {
	network, target string
	listener        net.Listener

	mu    sync.Mutex
	open  map[net.Conn]bool
	delay time.Duration
	away  bool // refuses new connections
}

func newProxy(network, target string) (*proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{network: network, target: target, listener: listener, open: map[net.Conn]bool{}}
	go p.serve()
	return p, nil
}

func (p *proxy) port() int { return p.listener.Addr().(*net.TCPAddr).Port }

func (p *proxy) serve() {
	for {
		in, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		network, target, away := p.network, p.target, p.away
		p.mu.Unlock()
		out, err := net.Dial(network, target)
		if err != nil || away {
			_ = in.Close()
			if err == nil {
				_ = out.Close()
			}
			continue
		}
		p.mu.Lock()
		p.open[in], p.open[out] = true, true
		p.mu.Unlock()
		go p.pass(in, out)
		go p.pass(out, in)
	}
}

// pass copies from one side to the other until one ends.
func (p *proxy) pass(to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		p.mu.Lock()
		delay := p.delay
		p.mu.Unlock()
		time.Sleep(delay)
		if n > 0 {
			if _, wrong := to.Write(buffer[:n]); wrong != nil {
				err = wrong
			}
		}
		if err != nil {
			break
		}
	}
	p.close(to, from)
}

func (p *proxy) close(all ...io.Closer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range all {
		_ = c.Close() // it may be closed already
		delete(p.open, c.(net.Conn))
	}
}

// cut closes all connections, and refuses new ones while it is away.
func (p *proxy) cut(away bool) {
	p.mu.Lock()
	p.away = away
	all := make([]io.Closer, 0, len(p.open))
	for c := range p.open {
		all = append(all, c)
	}
	p.mu.Unlock()
	p.close(all...)
}

// slow delays each piece in both directions.
func (p *proxy) slow(delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = delay
}

func (p *proxy) stop() {
	_ = p.listener.Close()
	p.cut(true)
}
