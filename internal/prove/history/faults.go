package history

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"bahi/internal/test/bench"

	"github.com/jackc/pgx/v5"
)

// faults are the faults by name. Each repairs its damage before it returns, even if the context has ended.
var faults = map[string]func(*run, context.Context) error{
	"kill":     (*run).kill,
	"stop":     (*run).pause,
	"pgkill":   (*run).killPostgres,
	"pgstop":   (*run).pausePostgres,
	"cut":      (*run).cut,
	"slow":     (*run).slow,
	"disk":     (*run).fillDisk,
	"failover": (*run).failOver,
	"journal":  (*run).journalAway,
	"clock":    (*run).clockJumps,
	"pgclock":  (*run).postgresClockJumps,
}

// Faults returns the names of all faults.
func Faults() (names []string) {
	for name := range faults {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// injector chooses the faults.
type injector struct {
	*rand.Rand

	names []string
}

func (r *run) between(ctx context.Context, least, most time.Duration) {
	sleep(ctx, least+time.Duration(r.faults.Int64N(int64(most-least))))
}

// inject injects one fault after another until the context ends.
func (r *run) inject(ctx context.Context) error {
	r.between(ctx, 300*time.Millisecond, 1500*time.Millisecond)
	for ctx.Err() == nil && len(r.faults.names) > 0 {
		name := r.faults.names[r.faults.IntN(len(r.faults.names))]
		r.report(name)
		if err := faults[name](r, ctx); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := r.supervise(); err != nil {
			return err
		}
		r.between(ctx, 200*time.Millisecond, 2*time.Second)
	}
	return nil
}

func (r *run) node() *process { return r.sys.nodes[r.faults.IntN(len(r.sys.nodes))] }

func (r *run) kill(ctx context.Context) error {
	node := r.node()
	node.signal(syscall.SIGKILL, true)
	r.between(ctx, 0, time.Second)
	return r.restart(node)
}

// restart starts a process, and tries again if it ends: a start fails while the journal or the database is unreachable.
func (r *run) restart(p *process) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	for {
		err := p.start(ctx)
		if err == nil || ctx.Err() != nil {
			return err
		}
		sleep(ctx, 200*time.Millisecond)
	}
}

// supervise restarts nodes that ended by themselves, as a service manager does: a start without a database fails.
func (r *run) supervise() error {
	for _, node := range r.sys.nodes {
		if node.hasEnded() {
			if err := r.restart(node); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *run) pause(ctx context.Context) error {
	node := r.node()
	node.signal(syscall.SIGSTOP, false)
	r.between(ctx, 500*time.Millisecond, 8*time.Second) // longer than --takeover-after, or not
	node.signal(syscall.SIGCONT, false)
	return nil
}

// killPostgres kills the postmaster, or one of its processes, which ends all others.
func (r *run) killPostgres(context.Context) error {
	pid := r.postgres.cluster.PID()
	if children := bench.ChildrenOf(pid); len(children) > 0 && r.faults.IntN(2) == 0 {
		pid = children[r.faults.IntN(len(children))]
	}
	if pid != 0 {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
	}
	return nil
}

// pausePostgres stops one of Postgres's processes, or all.
func (r *run) pausePostgres(ctx context.Context) error {
	pids := bench.ChildrenOf(r.postgres.cluster.PID())
	if len(pids) > 0 && r.faults.IntN(2) == 0 {
		pids = []int{pids[r.faults.IntN(len(pids))]}
	}
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGSTOP)
	}
	r.between(ctx, 200*time.Millisecond, 5*time.Second)
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
	return nil
}

func (r *run) cut(ctx context.Context) error {
	via := r.sys.proxies[r.faults.IntN(len(r.sys.proxies))]
	away := r.faults.IntN(2) == 0
	via.cut(away)
	if away {
		r.between(ctx, 100*time.Millisecond, 4*time.Second)
		via.cut(false)
	}
	return nil
}

func (r *run) slow(ctx context.Context) error {
	via := r.sys.proxies[r.faults.IntN(len(r.sys.proxies))]
	via.slow(time.Duration(5+r.faults.IntN(200)) * time.Millisecond)
	r.between(ctx, time.Second, 4*time.Second)
	via.slow(0)
	return nil
}

// fillDisk keeps Postgres's disk full for a while. Postgres frees some space again and again, which it fills.
func (r *run) fillDisk(ctx context.Context) error {
	ballast := filepath.Join(r.postgres.dir, "ballast")
	until := time.Now().Add(time.Second + time.Duration(r.faults.Int64N(int64(3*time.Second))))
	var err error
	for err == nil && time.Now().Before(until) {
		var f *os.File
		if f, err = os.OpenFile(ballast, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
			if _, err = io.Copy(f, zeros{}); errors.Is(err, syscall.ENOSPC) {
				err = nil
			}
			err = errors.Join(err, f.Close())
		}
		sleep(ctx, 20*time.Millisecond)
	}
	return errors.Join(err, os.Remove(ballast))
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// failOver replaces the database by a copy that is a second old, once per history. With a journal, the log loses nothing.
func (r *run) failOver(ctx context.Context) error {
	if r.failedOver {
		return nil
	}
	r.failedOver = true
	name := r.sys.name
	begun := time.Since(r.load.began)
	if err := r.alone(`create database ` + name + `_behind template ` + name); err != nil {
		return err
	}
	r.noteFailover(Copy, begun)
	r.between(ctx, 500*time.Millisecond, 1500*time.Millisecond)
	conn, err := pgx.Connect(context.Background(), r.postgres.through(name+"_behind", nil))
	if err != nil {
		return err
	}
	var newest int64
	err = conn.QueryRow(context.Background(), `select coalesce(max(position), 0) from log.event`).Scan(&newest)
	if err = errors.Join(err, conn.Close(context.Background())); err != nil {
		return err
	}
	begun = time.Since(r.load.began)
	if err := r.alone(`alter database `+name+` rename to `+name+`_lost`, `alter database `+name+`_behind rename to `+name); err != nil {
		return err
	}
	if r.settings.Log == "journal" {
		return nil
	}
	r.lost = newest
	r.noteFailover(Promote, begun)
	for range 40 { // the signer detects the loss, if it had signed the lost events
		sleep(context.Background(), 250*time.Millisecond)
		if _, err := r.sys.run(context.Background(), "audit", "accept-restore", "--reason", "history"); err == nil {
			return nil
		}
	}
	return nil
}

func (r *run) noteFailover(op operation, begun time.Duration) {
	if r.settings.Log != "journal" {
		r.load.note(Call{Client: r.settings.Clients, Op: op, Start: begun, End: time.Since(r.load.began), Status: 200})
	}
}

// alone runs statements that need all connections closed.
func (r *run) alone(statements ...string) error {
	name := r.sys.name
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	for done := 0; ctx.Err() == nil; sleep(ctx, 20*time.Millisecond) {
		err := r.postgres.admin(ctx, `do $$ begin if exists (select from pg_database where datname = '`+name+`') then
			alter database `+name+` allow_connections false; end if; end $$`,
			`select pg_terminate_backend(pid) from pg_stat_activity where datname = '`+name+`'`)
		for err == nil && done < len(statements) {
			if err = r.postgres.admin(ctx, statements[done]); err == nil {
				done++
			}
		}
		if done == len(statements) && r.postgres.admin(ctx, `alter database `+name+` allow_connections true`) == nil {
			return nil
		}
	}
	return ctx.Err()
}

// journalAway cuts the connection to the journal, slows it, or stops or kills the journal.
func (r *run) journalAway(ctx context.Context) error {
	if r.sys.journal == nil {
		return nil
	}
	switch r.faults.IntN(4) {
	case 0:
		r.sys.journalProxy.cut(true)
		r.between(ctx, 200*time.Millisecond, 5*time.Second)
		r.sys.journalProxy.cut(false)
	case 1:
		r.sys.journalProxy.slow(time.Duration(5+r.faults.IntN(100)) * time.Millisecond)
		r.between(ctx, time.Second, 3*time.Second)
		r.sys.journalProxy.slow(0)
	case 2:
		r.sys.journal.signal(syscall.SIGSTOP, false)
		r.between(ctx, 200*time.Millisecond, 5*time.Second)
		r.sys.journal.signal(syscall.SIGCONT, false)
	default:
		r.sys.journal.signal(syscall.SIGKILL, true)
		r.between(ctx, 0, time.Second)
		return r.restart(r.sys.journal)
	}
	return nil
}
