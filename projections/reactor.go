package projections

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/event"
)

// Reactor is a follower of the log whose effects leave its tables. So it has no generations and is never rebuilt. Package reactors
// makes them.
type Reactor struct {
	p         *Projection
	forward   Forwarding // nil: it reacts
	beginning bool       // without a checkpoint it starts at the log's beginning, instead of its head
}

// React makes a reactor of events of the named types. What react does in tx takes effect together with
// the reactor's checkpoint, once. An error for which the events are to blame parks the reactor at the
// first of them.
func React(name string, types []string, react func(ctx context.Context, tx pgx.Tx, events []event.Recorded[any]) error) *Reactor {
	fold := Apply(types, func(ctx context.Context, b *Batch, events []event.Recorded[any]) error {
		return react(ctx, b.Tx, events)
	})
	p := Define(name, 0, "", fold)
	p.idle, p.personal = idleReactor, false // it opens no personal values
	return &Reactor{p: p}
}

// Forwarding hands events to another program, in their order. It returns how many of them that program keeps, all when there is no
// error. It MUST NOT return while that program is away, but tell why it waits, and nil when it goes on. An error is of the first event
// that is not kept: the reactor is parked there. It MUST heed its context, which ends when another process has the checkpoint.
type Forwarding func(ctx context.Context, events []event.Stored, waits func(why error)) (kept int, err error)

// Forward makes a reactor of all events as they are stored. An event may be forwarded again after a crash, before its checkpoint is
// written. A checkpoint of another log parks it.
func Forward(name string, fromBeginning bool, forward Forwarding) *Reactor {
	p := Define(name, 0, "")
	p.raw, p.forwards = &Fold{}, true
	return &Reactor{p: p, forward: forward, beginning: fromBeginning}
}

// idleReactor is how long a reactor's checkpoint may wait that only passes over events: nobody's answer
// depends on it, and after a crash those events are passed over once more.
const idleReactor = time.Second

// ownedEvery is how soon a reactor with nothing to do notices that somebody has moved its checkpoint.
const ownedEvery = time.Second

// React brings the log to the reactors until ctx ends. [Runner.Statuses] has theirs, so they need a runner of their own.
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

// watch lets reactors look again whose checkpoints somebody else has moved.
func (r *Runner) watch(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(ownedEvery):
		}
		rows, _ := r.pool.Query(ctx, `select name from reactor.checkpoint where owner is distinct from $1`, r.owner)
		lost, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			continue // the reactors meet it too
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

// Checkpoint is how far a reactor has come.
type Checkpoint struct {
	Name     string
	StoreID  uuid.UUID
	Position event.Position
	EventID  *uuid.UUID // of the event at that position, nil at the beginning of the log
	Error    *string    // why it is parked
	Waits    *string    // for what, where it goes on by itself
}

// Checkpoints returns those of all reactors that ever ran, by name.
func Checkpoints(ctx context.Context, db querier) ([]Checkpoint, error) {
	return checkpoints(ctx, db, `true`)
}

const checkpointColumns = `name, store_id, position, event_id, error, waits`

func checkpoints(ctx context.Context, db querier, where string, args ...any) ([]Checkpoint, error) {
	rows, _ := db.Query(ctx, `select `+checkpointColumns+` from reactor.checkpoint where `+where+` order by name`, args...)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Checkpoint])
	if err != nil {
		return nil, fmt.Errorf("read checkpoints of reactors: %w", err)
	}
	return found, nil
}

// ReactorParkedAt returns [ErrNotParked] when the reactor has not stopped at the event of a position.
func ReactorParkedAt(ctx context.Context, db querier, name string, at event.Position) error {
	rows, _ := db.Query(ctx, `select 1 from reactor.checkpoint where name = $1 and error_position = $2`, name, int64(at))
	found, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err == nil && len(found) == 0 {
		err = ErrNotParked
	}
	return err
}

// RetryReactor lets a parked reactor try its event again. It answers [ErrNotParked] when it is not parked.
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
