package projections

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"bahi/eventstore/signal"
)

// lookInterval is the interval at which a process searches for builds that other processes have requested.
const lookInterval = time.Second

// maintainAgain is the pause after a failure with a generation.
const maintainAgain = 5 * time.Second

// MaintainGenerations works on all generations except the live ones until ctx ends. It builds requested generations, resumes interrupted
// builds, keeps the generations for a rollback up to date, and drops the rest. One of several processes works on a generation.
func (r *Runner) MaintainGenerations(ctx context.Context, all ...*Projection) error {
	var (
		mu     sync.Mutex
		tended = map[string]bool{}
		done   sync.WaitGroup
	)
	defer done.Wait()
	r.clearFailures(ctx, all)
	byName := make(map[string]*Projection, len(all))
	for _, p := range all {
		byName[p.Name] = p
	}
	for ctx.Err() == nil {
		others, err := r.look(ctx, byName)
		if err != nil && ctx.Err() == nil {
			r.log.Warn("looking up builds failed", "error", err)
		}
		for _, g := range others {
			mu.Lock()
			busy := tended[g.schema()]
			tended[g.schema()] = true
			mu.Unlock()
			if busy {
				continue
			}
			done.Go(func() {
				r.maintainOne(ctx, byName[g.Name], g)
				mu.Lock()
				defer mu.Unlock()
				delete(tended, g.schema())
			})
		}
		select {
		case <-ctx.Done():
		case <-r.asked:
		case <-time.After(lookInterval):
		}
	}
	return nil
}

// Ask wakes [Runner.MaintainGenerations] for a build that this process has entered into the registry.
func (r *Runner) Ask() {
	select {
	case r.asked <- struct{}{}:
	default: // a wake-up is already pending
	}
}

// look returns the generations of the projections that require work. It notifies each follower of a generation that is no longer live. It
// includes expired generations of other versions, because maybe no process of such a version starts again.
func (r *Runner) look(ctx context.Context, all map[string]*Projection) ([]generation, error) {
	names, versions := namesAndVersions(maps.Values(all))
	found, err := generations(ctx, r.pool, `exists (
		select from unnest($1::text[], $2::int[]) p (name, version)
		where p.name = generation.name and (p.version = generation.version or status = 'scratch' or keep_until <= now()))`, names, versions)
	if err != nil {
		return nil, err
	}
	var others []generation
	for _, g := range found {
		switch {
		case g.Status == statusLive:
			r.read(all[g.Name], g.Generation)
		case g.Status == statusScratch, g.Over, g.Error == nil:
			others = append(others, g)
		}
	}
	return others, nil
}

// namesAndVersions returns the names and versions of projections as two columns, for one query.
func namesAndVersions(all iter.Seq[*Projection]) (names []string, versions []int) {
	for p := range all {
		names, versions = append(names, p.Name), append(versions, p.Version)
	}
	return names, versions
}

// maintainOne does the work on a generation unless another process does it.
func (r *Runner) maintainOne(ctx context.Context, p *Projection, g generation) {
	err := r.tryMaintain(ctx, p, g)
	if err == nil || ctx.Err() != nil || errors.Is(err, ErrCancelled) || errors.Is(err, ErrFenced) { // no failure
		return
	}
	r.log.Warn("maintaining a generation failed; retrying later", "projection", g.Name, "generation", g.Generation, "error", err)
	_ = signal.Sleep(ctx, maintainAgain)
}

func (r *Runner) tryMaintain(ctx context.Context, p *Projection, g generation) error {
	conn, err := connect(ctx, r.config, p)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the connection is discarded, and its lock with it
	if mine, err := g.lock().try(ctx, conn); err != nil || !mine {
		return err
	}
	g, found, err := oneGeneration(ctx, conn, `name = $1 and generation = $2 and status <> 'live'`, g.Name, g.Generation)
	b := r.build(p)
	switch {
	case err != nil || !found:
		return err
	case g.Status == statusScratch:
		return drop(ctx, conn, g)
	case g.Over:
		return retireKept(ctx, conn, g)
	case g.Status == statusKept:
		return b.keep(ctx, conn, g)
	default:
		return b.work(ctx, conn, g)
	}
}

// build returns this process's Build of a projection.
func (r *Runner) build(p *Projection) Build {
	return Build{Store: r.store, Config: r.config, Projection: p, Reveal: r.Reveal, Log: r.log, Program: r.Program, Now: r.Now, Stay: true}
}

// keep keeps a previous generation up to date until it is live again or expires.
func (b Build) keep(ctx context.Context, conn *pgx.Conn, g generation) error {
	s := b.session(conn, g)
	if err := s.own(ctx); err != nil {
		return err
	}
	if s.g.Status != statusKept {
		return nil
	}
	if err := verify(ctx, b.Store, s.g); err != nil {
		if _, other := errors.AsType[*mismatch](err); other {
			b.noteFailure(ctx, s, err)
		}
		return err
	}
	watched, c := b.control(ctx, s)
	err := b.follow(watched, s, c.over.Load)
	if fenced := context.Cause(watched); errors.Is(fenced, ErrFenced) {
		err = fenced // the generation is live again, or replaced
	}
	c.end()
	switch {
	case err == nil:
		return retireKept(ctx, conn, s.g)
	case ctx.Err() == nil && !isTransient(conn, err):
		b.noteFailure(ctx, s, err)
	}
	return err
}

// retireKept expires a kept generation.
func retireKept(ctx context.Context, conn *pgx.Conn, g generation) error {
	expired, err := become(ctx, conn, statusScratch, unused, `name = $1 and generation = $2 and keep_until <= now()`, g.Name, g.Generation)
	if err != nil || len(expired) == 0 {
		return err
	}
	return drop(ctx, conn, g)
}

// clearFailures makes failed builds of earlier processes try again, because this process may be a newer program.
func (r *Runner) clearFailures(ctx context.Context, all []*Projection) {
	names, versions := namesAndVersions(slices.Values(all))
	_, err := r.pool.Exec(ctx, `update projection.generation set error = null, error_at = null, error_position = null
		where (name, version) in (select * from unnest($1::text[], $2::int[])) and status <> 'live' and error is not null`, names, versions)
	if err != nil && ctx.Err() == nil {
		r.log.Warn("clearing the failures of builds failed", "error", err)
	}
}

// sweep drops scratch generations of ended processes.
func sweep(ctx context.Context, conn *pgx.Conn, p *Projection) error {
	left, err := generations(ctx, conn, `name = $1 and status = 'scratch'`, p.Name)
	if err != nil {
		return fmt.Errorf("find the leftovers of builds of %s: %w", p.Name, err)
	}
	for _, g := range left {
		free, err := g.lock().try(ctx, conn)
		if err != nil {
			return err
		}
		if !free {
			continue
		}
		err = drop(ctx, conn, g)
		if notReleased := g.lock().release(ctx, conn); err == nil {
			err = notReleased
		}
		if err != nil && !isBusy(err) { // another sweep will drop it
			return fmt.Errorf("drop the leftovers of a build of %s: %w", p.Name, err)
		}
	}
	return nil
}
