package reactors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"bahi/domain"
	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/projections"
)

// Runner runs reactors on the log. Of several processes on one database, one runs a reactor while the others are on standby.
type Runner struct {
	store  eventstore.Store
	pool   *pgxpool.Pool
	jobs   *Jobs
	runner *projections.Runner
}

// NewRunner returns a runner whose reactors add to jobs.
func NewRunner(store eventstore.Store, pool *pgxpool.Pool, jobs *Jobs, log *slog.Logger) *Runner {
	return &Runner{store: store, pool: pool, jobs: jobs, runner: projections.NewRunner(store, pool, log)}
}

// TakeOverAfter sets the time without progress after which this process takes over another's reactors.
func (r *Runner) TakeOverAfter(silent time.Duration) { r.runner.Silent = silent }

// Place is [projections.Runner.EnsureCheckpoints]: from now on the reactors miss no event.
func (r *Runner) Place(ctx context.Context, all ...*Reactor) error {
	return r.runner.EnsureCheckpoints(ctx, followers(r.jobs, all)...)
}

// Run runs reactors until ctx ends.
func (r *Runner) Run(ctx context.Context, all ...*Reactor) error {
	return r.runner.React(ctx, followers(r.jobs, all)...)
}

func followers(jobs *Jobs, all []*Reactor) []*projections.Reactor {
	of := make([]*projections.Reactor, len(all))
	for i, a := range all {
		of[i] = a.follower(jobs)
	}
	return of
}

// Statuses returns the state of this process's reactors by name.
func (r *Runner) Statuses() map[string]projections.Status { return r.runner.Statuses() }

// replayBatch is the number of events in one transaction of a replay.
const replayBatch = 500

// Replayed is the result of a replay.
type Replayed struct {
	Events int // number of events with a reaction
	Jobs   int // number of new jobs; River still had the others
	UpTo   event.Position
}

// Replay repeats the reaction to the events after a position, up to the reactor's checkpoint, or the log's head if it never ran. The
// reactor may run meanwhile, and its checkpoint does not change. Replay adds no job that River still has, whatever its state. River deletes
// finished jobs after a day, and Replay adds those again. A failed replay may be repeated.
func (r *Runner) Replay(ctx context.Context, reactor *Reactor, after event.Position,
	progress func(at, upTo event.Position)) (done Replayed, err error) {
	if done.UpTo, err = r.checkpointOf(ctx, reactor); err != nil {
		return done, err
	}
	wanted := map[string]bool{}
	for _, t := range reactor.types {
		wanted[t] = true
	}
	var batch []event.Recorded[any]
	flush := func(at event.Position) error {
		added, err := r.add(ctx, reactor, batch)
		if err != nil {
			return fmt.Errorf("replay %s up to position %d: %w", reactor.Name, at, err)
		}
		done.Events, done.Jobs = done.Events+len(batch), done.Jobs+added
		batch = batch[:0]
		if progress != nil {
			progress(at, done.UpTo)
		}
		return nil
	}
	for e, err := range r.store.ReadAll(ctx, after, eventstore.Forwards) {
		if err != nil {
			return done, err
		}
		if e.Position > done.UpTo {
			break
		}
		if !wanted[e.Type] {
			continue
		}
		recorded, err := domain.Catalogue.Decode(e)
		if err != nil {
			return done, err
		}
		batch = append(batch, recorded)
		if len(batch) == replayBatch {
			if err := flush(e.Position); err != nil {
				return done, err
			}
		}
	}
	return done, flush(done.UpTo)
}

// ErrOtherLog reports that a reactor's checkpoint is of another log.
var ErrOtherLog = errors.New("the reactor's checkpoint is of another log; run it once, so that it starts at the head of this one")

func (r *Runner) checkpointOf(ctx context.Context, reactor *Reactor) (event.Position, error) {
	c, err := projections.CheckpointOf(ctx, r.pool, reactor.Name)
	switch {
	case err != nil:
		return 0, err
	case c == nil:
		return r.store.Head(ctx)
	case c.StoreID != r.store.ID():
		return 0, ErrOtherLog
	}
	return c.Position, nil
}

// add adds the jobs that follow from the events.
func (r *Runner) add(ctx context.Context, reactor *Reactor, events []event.Recorded[any]) (added int, err error) {
	err = pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error {
		added, err = reactor.react(ctx, r.jobs, tx, events)
		return err
	})
	return added, err
}

// Progress is a reactor's progress for operators.
type Progress struct {
	Name     string
	State    string // live, parked, or new if it never ran
	Position event.Position
	Error    string
}

// List returns the progress of the reactors, in their order.
func List(ctx context.Context, pool *pgxpool.Pool, all ...*Reactor) ([]Progress, error) {
	known, err := projections.Checkpoints(ctx, pool)
	if err != nil {
		return nil, err
	}
	list := make([]Progress, len(all))
	for i, a := range all {
		list[i] = Progress{Name: a.Name, State: "new"}
		for _, c := range known {
			if c.Name != a.Name {
				continue
			}
			list[i].State, list[i].Position = "live", c.Position
			if c.Error != nil {
				list[i].State, list[i].Error = "parked", *c.Error
			}
		}
	}
	return list, nil
}
