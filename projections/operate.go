package projections

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"bahi/domain/event"
	"bahi/eventstore"
)

// What is answered to an operator who asks for what cannot be.
var (
	ErrNoBuild     = errors.New("the projection is not being built")
	ErrNotBuilt    = errors.New("the projection is not built yet")
	ErrNotParked   = errors.New("the projection is not parked")
	ErrNotPaused   = errors.New("the projection is not paused")
	ErrNothingKept = errors.New("no earlier generation is kept")
	ErrNotDiffers  = errors.New("the build does not wait for its differences to be accepted")
)

// change changes the generations that conditions on name and version find: those of the first condition
// that finds any. It answers otherwise when none does.
func change(ctx context.Context, pool *pgxpool.Pool, p *Projection, otherwise error, set string, conditions ...string) error {
	for _, where := range conditions {
		done, err := pool.Exec(ctx, `update projection.generation set `+set+` where `+where, p.Name, p.Version)
		if err != nil {
			return fmt.Errorf("change %s: %w", p.Name, err)
		}
		if done.RowsAffected() > 0 {
			return nil
		}
	}
	return otherwise
}

// Pause pauses the projection's build, where none is under way the projection itself: its
// answers are stale from then on.
func Pause(ctx context.Context, pool *pgxpool.Pool, p *Projection) error {
	return change(ctx, pool, p, ErrNotBuilt, `paused = true`, isBuilt, isLive)
}

// Resume ends that, for both.
func Resume(ctx context.Context, pool *pgxpool.Pool, p *Projection) error {
	return change(ctx, pool, p, ErrNotPaused, `paused = false`, `paused and name = $1 and version = $2`)
}

// Accept lets the build's tables be read though they differ from the live ones.
func Accept(ctx context.Context, pool *pgxpool.Pool, p *Projection) error {
	return change(ctx, pool, p, ErrNotDiffers, `accepted = true`, isBuilt+` and phase = '`+differs+`'`)
}

// Throttle bounds the events a second that the build folds; 0: no bound.
func Throttle(ctx context.Context, pool *pgxpool.Pool, p *Projection, perSecond int) error {
	return change(ctx, pool, p, ErrNoBuild, fmt.Sprintf(`throttle = nullif(%d, 0)`, perSecond), isBuilt)
}

// Retry lets a parked projection, or its parked build, try its event again: when what was in the way is
// gone, or an operator lets it pass over the event.
func Retry(ctx context.Context, pool *pgxpool.Pool, p *Projection) error {
	return change(ctx, pool, p, ErrNotParked, `error = null, error_at = null, error_position = null, error_type = null, error_program = null`,
		`error is not null and name = $1 and version = $2`)
}

// ParkedAt returns the event at which the projection or its build has stopped, or [ErrNotParked].
func ParkedAt(ctx context.Context, pool *pgxpool.Pool, p *Projection, at event.Position) error {
	var parked bool
	err := pool.QueryRow(ctx, `select exists (select from projection.generation where name = $1 and version = $2 and error_position = $3)`,
		p.Name, p.Version, int64(at)).Scan(&parked)
	if err == nil && !parked {
		err = ErrNotParked
	}
	return err
}

// Differences returns how the build differs from the live tables, as far as it has found out.
func (b Build) Differences(ctx context.Context) ([]Difference, error) {
	conn, err := connect(ctx, b.Config, b.Projection)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // nothing is left to lose
	g, found, err := b.underWay(ctx, conn)
	if err == nil && !found {
		err = ErrNoBuild
	}
	return g.Differences, err
}

// ErrInUse refuses to drop tables that this program reads or may read again.
var ErrInUse = errors.New("the generation is of this program's own version: cancel its build, or let its time end")

// Drop drops the tables of another version, which a program of that version then has to build again.
func (b Build) Drop(ctx context.Context, number int) error {
	conn, err := connect(ctx, b.Config, b.Projection)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // nothing is left to lose
	g, found, err := oneGeneration(ctx, conn, `name = $1 and generation = $2`, b.Projection.Name, number)
	switch {
	case err != nil:
		return err
	case !found:
		return fmt.Errorf("%s has no generation %d", b.Projection.Name, number)
	case g.Version == b.Projection.Version:
		return ErrInUse
	}
	_, err = conn.Exec(ctx, `update projection.generation set live = false, scratch = true, owner = null where name = $1 and generation = $2`, g.Name, g.Generation)
	if err != nil {
		return err
	}
	return drop(ctx, conn, g)
}

// cancelWithin is how long a cancelled build may take to let its tables go. Afterwards they are dropped by
// a process that tends the projection.
const cancelWithin = 15 * time.Second

// Cancel ends the build and drops what it has made.
func (b Build) Cancel(ctx context.Context) error {
	conn, err := connect(ctx, b.Config, b.Projection)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // nothing is left to lose
	rows, _ := conn.Query(ctx, `update projection.generation set scratch = true, owner = null where `+isBuilt+` returning `+generationColumns,
		b.Projection.Name, b.Projection.Version)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[generation])
	if err != nil {
		return fmt.Errorf("cancel the build of %s: %w", b.Projection.Name, err)
	}
	if len(found) == 0 {
		return ErrNoBuild
	}
	dropping, cancel := context.WithTimeout(ctx, cancelWithin)
	defer cancel()
	if _, err := conn.Exec(dropping, `select `+hold, found[0].schema()); err == nil { // its process learns of it, and goes
		err = drop(dropping, conn, found[0])
		if err == nil {
			return nil
		}
		b.Log.Warn("a cancelled build is dropped later", "projection", found[0].Name, "generation", found[0].Generation, "error", err)
	}
	return nil
}

const (
	// takenUpWithin is how long a rollback waits for the kept generation to come to where the live one is: a
	// process that serves takes it up by then.
	takenUpWithin = 15 * time.Second

	// currentWithin is how long it waits once more, while the live one has stopped for it.
	currentWithin = 2 * time.Second
)

// Rollback lets the generation be read again that was read before, which has followed the log since. The
// one that it replaces is kept as long in its turn.
func (b Build) Rollback(ctx context.Context, keep time.Duration) error {
	conn, err := connect(ctx, b.Config, b.Projection)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // nothing is left to lose
	kept, found, err := oneGeneration(ctx, conn, isKept, b.Projection.Name, b.Projection.Version)
	if err != nil {
		return err
	}
	if !found {
		return ErrNothingKept
	}
	if err := verify(ctx, b.Store, kept); err != nil {
		return fmt.Errorf("roll %s back: %w", b.Projection.Name, err)
	}
	live, found, err := liveGeneration(ctx, conn, b.Projection)
	if err != nil {
		return err
	}
	if !found {
		return ErrNotBuilt
	}
	looking, err := connect(ctx, b.Config, b.Projection)
	if err != nil {
		return err
	}
	defer looking.Close(context.WithoutCancel(ctx)) //nolint:errcheck // nothing is left to lose
	err = b.keptUpTo(ctx, looking, kept, live.Position, takenUpWithin)
	if err == nil {
		_, err = move(ctx, conn, kept, nil, keep, func(live event.Position) error {
			return b.keptUpTo(ctx, looking, kept, live, currentWithin)
		})
	}
	if err != nil {
		return fmt.Errorf("roll %s back: %w", b.Projection.Name, err)
	}
	b.Log.Info("an earlier generation is read again", "projection", kept.Name, "generation", kept.Generation, "instead_of", live.Generation)
	return nil
}

// keptUpTo returns when a kept generation has come to where the live one is.
func (b Build) keptUpTo(ctx context.Context, db querier, kept generation, live event.Position, within time.Duration) error {
	head, err := b.Store.Head(ctx)
	if err != nil {
		return err
	}
	for late := time.After(within); ; {
		now, found, err := oneGeneration(ctx, db, isKept+` and generation = $3`, kept.Name, kept.Version, kept.Generation)
		switch {
		case err != nil:
			return err
		case !found:
			return ErrNothingKept
		case now.Position >= min(live, head): // of another log, the live one may be anywhere
			return nil
		case now.Error != nil:
			return fmt.Errorf("the kept generation stands still at position %d: %s", now.Position, *now.Error)
		}
		select {
		case <-time.After(time.Millisecond):
		case <-late:
			return fmt.Errorf("the kept generation is at position %d, and the live one at %d: is there a process that serves?", now.Position, live)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Estimate is what a build would do.
type Estimate struct {
	Events event.Position // to fold
	Rate   int64          // events a second, as measured on the beginning of the log
	Then   time.Duration  // that the phases behind the fill take, by the last build; 0: none was measured
	Bytes  int64          // that the live tables take
}

// sample is how many events an estimate folds.
const sample = 2 * fillBatch

// Estimate folds the beginning of the log into tables that it throws away, and answers how long it takes.
func (b Build) Estimate(ctx context.Context) (e Estimate, err error) {
	if e.Events, err = b.Store.Head(ctx); err != nil {
		return e, err
	}
	s, err := b.scratch(ctx)
	if err != nil {
		return e, err
	}
	defer func() { err = errors.Join(err, b.throwAway(ctx, s)) }()
	err = s.conn.QueryRow(ctx, `
		select coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint
		from projection.generation g join pg_namespace n on n.nspname = g.name || '_g' || g.generation
		join pg_class c on c.relnamespace = n.oid and c.relkind = 'r' where `+isLive, b.Projection.Name, b.Projection.Version).Scan(&e.Bytes)
	if err != nil {
		return e, err
	}
	var upTo event.Position
	n := 0
	for stored, err := range b.Store.ReadAll(ctx, 0, eventstore.Forwards) {
		if err != nil {
			return e, err
		}
		if upTo = stored.Position; n == sample {
			break
		}
		n++
	}
	_, c, err := b.control(ctx, s)
	if err != nil {
		return e, err
	}
	defer c.end()
	if err := b.fill(ctx, s, c, upTo); err != nil {
		return e, err
	}
	e.Rate = s.g.Rate
	if s.g.ThenEach != nil {
		e.Then = time.Duration(*s.g.ThenEach * float64(e.Events) * float64(time.Second))
	}
	return e, nil
}
