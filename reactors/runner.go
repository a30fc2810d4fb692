package reactors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"bahi/domain"
	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/projections"
)

// Runner brings the log to reactors. Of several processes on one database, one works on a reactor while
// the others stand by.
type Runner struct {
	store  eventstore.Store
	pool   *pgxpool.Pool
	jobs   *Jobs
	runner *projections.Runner
}

// NewRunner makes a runner whose reactors add to jobs.
func NewRunner(store eventstore.Store, pool *pgxpool.Pool, jobs *Jobs, log *slog.Logger) *Runner {
	return &Runner{store: store, pool: pool, jobs: jobs, runner: projections.NewRunner(store, pool, log)}
}

// TakeOverAfter sets how long another process may hang before this one takes over its reactors.
func (r *Runner) TakeOverAfter(silent time.Duration) { r.runner.Silent = silent }

// Run follows the log until ctx ends.
func (r *Runner) Run(ctx context.Context, all ...*Reactor) error {
	followers := make([]*projections.Reactor, len(all))
	for i, a := range all {
		followers[i] = a.follower(r.jobs)
	}
	return r.runner.React(ctx, followers...)
}

// Statuses answers what this process knows of its reactors, by name.
func (r *Runner) Statuses() map[string]projections.Status { return r.runner.Statuses() }

// Moved answers a channel that is closed when a reactor of this process has moved after the call.
func (r *Runner) Moved() <-chan struct{} { return r.runner.Moved() }

// replayBatch is how many events one transaction of a replay goes over.
const replayBatch = 500

// Replayed tells what a replay did.
type Replayed struct {
	Events int // that the reactor reacts to
	Jobs   int // that were added; those that River still had are not
	UpTo   event.Position
}

// Replay goes once more over the events after a position, up to where the reactor stands (the log's
// head, if it has never run), and adds the jobs that follow from them. The reactor itself need not stop
// for it, and its checkpoint stays. A job that River still has is not added again, whatever became of
// it; one that was done and cleared away (River keeps done jobs for a day) is done once more. Replay is
// for an operator who knows that, and can be begun again after it failed.
func (r *Runner) Replay(ctx context.Context, reactor *Reactor, after event.Position, progress func(at, upTo event.Position)) (done Replayed, err error) {
	if done.UpTo, err = r.standsAt(ctx, reactor); err != nil {
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

// ErrOtherLog tells that a reactor has followed another log than the one at hand.
var ErrOtherLog = errors.New("the reactor's checkpoint is of another log; let it run once, so that it starts at the head of this one")

func (r *Runner) standsAt(ctx context.Context, reactor *Reactor) (event.Position, error) {
	all, err := projections.Checkpoints(ctx, r.pool)
	if err != nil {
		return 0, err
	}
	for _, c := range all {
		switch {
		case c.Name != reactor.Name:
		case c.StoreID != r.store.ID():
			return 0, ErrOtherLog
		default:
			return c.Position, nil
		}
	}
	return r.store.Head(ctx)
}

// add adds what follows from the events.
func (r *Runner) add(ctx context.Context, reactor *Reactor, events []event.Recorded[any]) (added int, err error) {
	err = pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error {
		added, err = reactor.react(ctx, r.jobs, tx, events)
		return err
	})
	return added, err
}

// Stands is how far a reactor is, as an operator sees it.
type Stands struct {
	Name     string
	State    string // live, parked, or new: it has never run
	Position event.Position
	Log      uuid.UUID
	Error    string
}

// List answers how far the reactors are, in their order.
func List(ctx context.Context, pool *pgxpool.Pool, all ...*Reactor) ([]Stands, error) {
	known, err := projections.Checkpoints(ctx, pool)
	if err != nil {
		return nil, err
	}
	list := make([]Stands, len(all))
	for i, a := range all {
		list[i] = Stands{Name: a.Name, State: "new"}
		for _, c := range known {
			if c.Name != a.Name {
				continue
			}
			list[i].State, list[i].Position, list[i].Log = "live", c.Position, c.StoreID
			if c.Error != nil {
				list[i].State, list[i].Error = "parked", *c.Error
			}
		}
	}
	return list, nil
}

// Retry lets a parked reactor try its event again, which helps when the program has changed.
func Retry(ctx context.Context, pool *pgxpool.Pool, name string) error {
	return projections.RetryReactor(ctx, pool, name)
}
