package projections

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/signal"
)

// Reactor is a subscriber to the log with effects outside its tables. So it has no generations and is never rebuilt. Package reactors
// defines reactors.
type Reactor struct {
	p         *Projection
	forward   Forwarding // nil: the reactor does not forward
	beginning bool       // without a checkpoint, start at the log's beginning instead of its head
}

// React returns a reactor to events of the named types. The effect of react in tx commits together with the reactor's checkpoint. The first
// event that causes an error parks the reactor.
func React(name string, types []string, react func(ctx context.Context, tx pgx.Tx, events []event.Recorded[any]) error) *Reactor {
	fold := Apply(types, func(ctx context.Context, b *Batch, events []event.Recorded[any]) error {
		return react(ctx, b.Tx, events)
	})
	p := Define(name, 0, "", fold)
	p.idle, p.personal = idleReactor, false // opens no personal values
	return &Reactor{p: p}
}

// WithBatchDelay is [Projection.WithBatchDelay] for a reactor.
func (a *Reactor) WithBatchDelay(most time.Duration) *Reactor {
	a.p.WithBatchDelay(most)
	return a
}

// Forwarding sends events to another program in order. It returns the number of events that the program has stored. After an error, the
// reactor is parked at the first event that is not stored. While that program is unavailable, it MUST NOT return: it MUST call waits with
// the reason, and with nil when it continues. It MUST return when its context ends, because another process then has the checkpoint.
type Forwarding func(ctx context.Context, events []event.Stored, waits func(why error)) (kept int, err error)

// Forward returns a reactor that forwards all events as stored. After a crash it may forward events again after its last written
// checkpoint. A checkpoint of another log parks it.
func Forward(name string, fromBeginning bool, forward Forwarding) *Reactor {
	p := Define(name, 0, "")
	p.raw, p.forwards = &Fold{}, true
	return &Reactor{p: p, forward: forward, beginning: fromBeginning}
}

// idleReactor is the time that the checkpoint of a reactor may lag behind events without a reaction. No request depends on the checkpoint,
// and after a crash the reactor skips these events again.
const idleReactor = time.Second

// ownedInterval is the interval at which an idle reactor checks whether its checkpoint was moved.
const ownedInterval = time.Second

// React runs the reactors on the log until ctx ends. [Runner.Statuses] has their states, so they need a separate runner.
func (r *Runner) React(ctx context.Context, all ...*Reactor) error {
	followers := make([]*follower, len(all))
	for i, a := range all {
		log := r.log.With("reactor", a.p.Name)
		followers[i] = &follower{r: r, p: a.p, log: log, k: reactorRow{Reactor: a, r: r, log: log}}
	}
	watching, stop := context.WithCancel(ctx)
	var watched sync.WaitGroup
	watched.Go(func() { r.watch(watching) })
	defer watched.Wait()
	defer stop()
	return r.follow(ctx, followers)
}

// EnsureCheckpoints creates checkpoints at the log's head for reactors without one in this log. Call it before this process writes:
// otherwise a reactor skips the events that were appended before its start. Do not call it for reactors that forward.
func (r *Runner) EnsureCheckpoints(ctx context.Context, all ...*Reactor) error {
	head, id, err := NewestBefore(ctx, r.store, eventstore.End)
	if err != nil {
		return err
	}
	for _, a := range all {
		var moved bool
		err := r.pool.QueryRow(ctx, `
			insert into reactor.checkpoint (name, store_id, position, event_id) values ($1, $2, $3, $4)
			on conflict (name) do update set store_id = $2, position = $3, event_id = $4, error = null, error_at = null, error_position = null,
				wait_reason = null
			where checkpoint.store_id <> $2 returning xmax <> 0`, a.p.Name, r.store.ID(), int64(head), id).Scan(&moved)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
		case err != nil:
			return fmt.Errorf("place the checkpoint of %s: %w", a.p.Name, err)
		case moved:
			r.log.Warn("reactor's checkpoint is of another log; starting at the head of this one", "reactor", a.p.Name, "head", head,
				"log", r.store.ID())
		}
	}
	return nil
}

// watch makes reactors read their checkpoints again after these were moved.
func (r *Runner) watch(ctx context.Context) {
	for signal.Sleep(ctx, ownedInterval) == nil {
		rows, _ := r.pool.Query(ctx, `select name from reactor.checkpoint where owner is distinct from $1`, r.owner)
		lost, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			continue // the reactors get the same error
		}
		r.mu.Lock()
		for _, name := range lost {
			if s := r.status[name]; s != nil && s.Working && r.again[name] != nil {
				r.again[name]()
			}
		}
		r.mu.Unlock()
	}
}

// Checkpoint is a reactor's checkpoint.
type Checkpoint struct {
	Name       string
	StoreID    uuid.UUID
	Position   event.Position
	EventID    *uuid.UUID // id of the event at that position; nil at the beginning of the log
	Error      *string    // error that parked the reactor
	WaitReason *string    // reason for waiting that requires no operator
}

// Checkpoints returns the checkpoints of all reactors that ever ran, by name.
func Checkpoints(ctx context.Context, db querier) ([]Checkpoint, error) {
	return checkpoints(ctx, db, `true`)
}

// CheckpointOf returns the checkpoint of a reactor, whichever process runs it. It returns nil if the reactor never ran.
func CheckpointOf(ctx context.Context, db querier, name string) (*Checkpoint, error) {
	found, err := checkpoints(ctx, db, `name = $1`, name)
	if len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

const checkpointColumns = `name, store_id, position, event_id, error, wait_reason`

func checkpoints(ctx context.Context, db querier, where string, args ...any) ([]Checkpoint, error) {
	rows, _ := db.Query(ctx, `select `+checkpointColumns+` from reactor.checkpoint where `+where+` order by name`, args...)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Checkpoint])
	if err != nil {
		return nil, fmt.Errorf("read checkpoints of reactors: %w", err)
	}
	return found, nil
}

// ReactorParkedAt returns [ErrNotParked] unless the reactor is parked at that event.
func ReactorParkedAt(ctx context.Context, db querier, name string, at event.Position) error {
	rows, _ := db.Query(ctx, `select 1 from reactor.checkpoint where name = $1 and error_position = $2`, name, int64(at))
	found, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err == nil && len(found) == 0 {
		err = ErrNotParked
	}
	return err
}

// RetryReactor makes a parked reactor try its event again. It returns [ErrNotParked] if it is not parked.
func RetryReactor(ctx context.Context, db querier, name string) error {
	done, err := db.Exec(ctx, `
		update reactor.checkpoint set error = null, error_at = null, error_position = null where name = $1 and error is not null`, name)
	if err != nil {
		return fmt.Errorf("retry %s: %w", name, err)
	}
	if done.RowsAffected() == 0 {
		return ErrNotParked
	}
	return nil
}
