package history

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
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
	r.faults = injector{rand.New(rand.NewPCG(s.Seed, 1<<32)), s.Faults} //nolint:gosec // a seed repeats it
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
		if out, wrong := sys.run(ctx, "doctor"); wrong != nil {
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
			a, err := r.load.send(within, n, request{method: "GET", path: "/readyz", key: operatorKey})
			if err == nil && a.status == http.StatusOK {
				break
			}
			if wrong := r.supervise(); wrong != nil {
				return wrong
			}
			if within.Err() != nil {
				r.findings = append(r.findings, fmt.Sprintf("node %d is not ready after %v: %s", n, recoverTimeout, a.body))
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
	for _, c := range r.load.calls[:len(r.load.calls):len(r.load.calls)] {
		if c.Account != 0 {
			seen[account{c.Account, c.Workspace}] = true
		}
	}
	for a := range seen {
		for n := range r.sys.nodes {
			c := Call{Client: r.settings.Clients + 1, Node: n, Op: List, Account: a.id, Workspace: a.workspace}
			out := c.request()
			out.key, out.header["Bahi-Workspace"] = operatorKey, a.workspace
			c.Start = time.Since(r.load.began)
			got, err := r.load.send(ctx, n, out)
			c.End, c.Status = time.Since(r.load.began), got.status
			if err == nil {
				err = c.decode(got)
			}
			if got.status == http.StatusNotFound && r.failedOver {
				continue // the account was opened after the copy, and lost
			}
			if err != nil || !c.ok() || c.Stale {
				r.findings = append(r.findings, fmt.Sprintf("the last read of account %d fails: %d %s %v", a.id, got.status, got.body, err))
				continue
			}
			r.load.note(c)
		}
	}
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
