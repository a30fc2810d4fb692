package projections

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/event"
)

// Reactor is a follower of the log whose effects leave its tables. So it has no generations, is never
// built anew, and starts at the head of a log that it does not know. Package reactors makes them.
type Reactor struct {
	p *Projection
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
	return &Reactor{p}
}

// idleReactor is how long a reactor's checkpoint may wait that only passes over events: nobody's answer
// depends on it, and after a crash those events are passed over once more.
const idleReactor = time.Second

// React brings the log to the reactors until ctx ends. They stand among the [Runner.Statuses], so they
// have a runner of their own.
func (r *Runner) React(ctx context.Context, all ...*Reactor) error {
	followers := make([]*follower, len(all))
	for i, a := range all {
		log := r.log.With("reactor", a.p.Name)
		followers[i] = &follower{r: r, p: a.p, log: log, k: reactorRow{r: r, p: a.p, log: log}}
	}
	return r.follow(ctx, followers)
}

// Checkpoint is how far a reactor has come.
type Checkpoint struct {
	Name     string
	StoreID  uuid.UUID
	Position event.Position
	EventID  *uuid.UUID // of the event at that position, nil at the beginning of the log
	Error    *string    // why it is parked
}

// Checkpoints answers those of all reactors that ever ran, by name.
func Checkpoints(ctx context.Context, db querier) ([]Checkpoint, error) {
	return checkpoints(ctx, db, `true`)
}

const checkpointColumns = `name, store_id, position, event_id, error`

func checkpoints(ctx context.Context, db querier, where string, args ...any) ([]Checkpoint, error) {
	rows, _ := db.Query(ctx, `select `+checkpointColumns+` from reactor.checkpoint where `+where+` order by name`, args...)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Checkpoint])
	if err != nil {
		return nil, fmt.Errorf("read checkpoints of reactors: %w", err)
	}
	return found, nil
}

// ReactorParkedAt answers [ErrNotParked] when the reactor does not stand still at the event of a position.
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
