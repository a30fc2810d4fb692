package projections

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/eventstore"
)

// Errors of an operator's requests.
var (
	ErrNoBuild              = fault.New(fault.Conflict, "The projection is not being rebuilt")
	ErrNotBuilt             = fault.New(fault.Conflict, "The projection is not built yet")
	ErrNotParked            = fault.New(fault.Conflict, "The projection is not parked")
	ErrNotPaused            = fault.New(fault.Conflict, "The projection is not paused")
	ErrNoPreviousGeneration = fault.New(fault.Conflict, "No earlier generation is kept to go back to")
	ErrNotDiffers           = fault.New(fault.Conflict, "The rebuild does not wait for its differences to be accepted")
)

// change updates generations. It tries the conditions on name and version in turn until one matches a generation. If none does, change
// returns the error in parameter otherwise.
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

// Pause pauses the projection's build, or without a build the projection. Its reads are then stale.
func Pause(ctx context.Context, pool *pgxpool.Pool, p *Projection) error {
	return change(ctx, pool, p, ErrNotBuilt, `paused = true`, isBuilt, isLive)
}

// Resume resumes a paused build or projection.
func Resume(ctx context.Context, pool *pgxpool.Pool, p *Projection) error {
	return change(ctx, pool, p, ErrNotPaused, `paused = false`, `paused and name = $1 and version = $2`)
}

// Accept makes the build's tables live despite their differences.
func Accept(ctx context.Context, pool *pgxpool.Pool, p *Projection) error {
	return change(ctx, pool, p, ErrNotDiffers, `accepted = true`, `status = '`+differs+`' and name = $1 and version = $2`)
}

// Throttle limits the build to the given number of events per second; 0: no limit.
func Throttle(ctx context.Context, pool *pgxpool.Pool, p *Projection, perSecond int) error {
	return change(ctx, pool, p, ErrNoBuild, fmt.Sprintf(`throttle = nullif(%d, 0)`, perSecond), isBuilt)
}

// Retry makes a parked projection or build try its event again.
func Retry(ctx context.Context, pool *pgxpool.Pool, p *Projection) error {
	return change(ctx, pool, p, ErrNotParked, `error = null, error_at = null, error_position = null, error_program = null`,
		`error is not null and name = $1 and version = $2`)
}

// ParkedAt returns nil if the projection or its build is parked at the event, otherwise [ErrNotParked].
func ParkedAt(ctx context.Context, pool *pgxpool.Pool, p *Projection, at event.Position) error {
	var parked bool
	err := pool.QueryRow(ctx, `select exists (select from projection.generation where name = $1 and version = $2 and error_position = $3)`,
		p.Name, p.Version, int64(at)).Scan(&parked)
	if err == nil && !parked {
		err = ErrNotParked
	}
	return err
}

// Differences returns the differences from the live tables that the build has found.
func (b Build) Differences(ctx context.Context) ([]Difference, error) {
	conn, err := connect(ctx, b.Config, b.Projection)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the connection is discarded
	g, found, err := b.underWay(ctx, conn)
	if err == nil && !found {
		err = ErrNoBuild
	}
	return g.Differences, err
}

// ErrInUse reports an attempt to drop tables that this program's version may read.
var ErrInUse = errors.New("the generation is of this program's own version: cancel its build, or let its time end")

// Drop drops the tables of another version. Programs of that version must then rebuild them.
func (b Build) Drop(ctx context.Context, number int) error {
	conn, err := connect(ctx, b.Config, b.Projection)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the connection is discarded
	g, found, err := oneGeneration(ctx, conn, `name = $1 and generation = $2`, b.Projection.Name, number)
	switch {
	case err != nil:
		return err
	case !found:
		return fmt.Errorf("%s has no generation %d", b.Projection.Name, number)
	case g.Version == b.Projection.Version:
		return ErrInUse
	}
	if _, err := become(ctx, conn, statusScratch, unused, `name = $1 and generation = $2`, g.Name, g.Generation); err != nil {
		return err
	}
	return drop(ctx, conn, g)
}

// cancelTimeout is the time that Cancel waits for a build to release its tables. Later, a process with [Runner.MaintainGenerations] drops
// them.
const cancelTimeout = 15 * time.Second

// Cancel ends the build and drops its tables.
func (b Build) Cancel(ctx context.Context) error {
	conn, err := connect(ctx, b.Config, b.Projection)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the connection is discarded
	found, err := become(ctx, conn, statusScratch, unused, isBuilt, b.Projection.Name, b.Projection.Version)
	if err != nil {
		return fmt.Errorf("cancel the build of %s: %w", b.Projection.Name, err)
	}
	if len(found) == 0 {
		return ErrNoBuild
	}
	dropping, cancel := context.WithTimeout(ctx, cancelTimeout)
	defer cancel()
	if err := found[0].lock().wait(dropping, conn); err == nil { // its process notices and releases the lock
		err = drop(dropping, conn, found[0])
		if err == nil {
			return nil
		}
		b.Log.Warn("build cancelled; its tables will be dropped later", "projection", found[0].Name, "generation", found[0].Generation,
			"error", err)
	}
	return nil
}

const (
	// takenUpTimeout is the time that a rollback waits until a serving process has folded the kept generation up to the live one's
	// position.
	takenUpTimeout = 15 * time.Second

	// currentTimeout is the time that a rollback waits again after the live generation was stopped.
	currentTimeout = 2 * time.Second
)

// Rollback makes the kept previous generation live again. It keeps the replaced generation for the given time.
func (b Build) Rollback(ctx context.Context, keep time.Duration) error {
	conn, err := connect(ctx, b.Config, b.Projection)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the connection is discarded
	kept, found, err := oneGeneration(ctx, conn, isKept, b.Projection.Name, b.Projection.Version)
	if err != nil {
		return err
	}
	if !found {
		return ErrNoPreviousGeneration
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
	defer looking.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the connection is discarded
	err = b.keptUpTo(ctx, looking, kept, live.Position, takenUpTimeout)
	if err == nil {
		_, err = move(ctx, conn, kept, nil, keep, func(live event.Position) error {
			return b.keptUpTo(ctx, looking, kept, live, currentTimeout)
		})
	}
	if err != nil {
		return fmt.Errorf("roll %s back: %w", b.Projection.Name, err)
	}
	b.Log.Info("rolled back to an earlier generation", "projection", kept.Name, "generation", kept.Generation, "instead_of", live.Generation)
	return nil
}

// keptUpTo waits until a kept generation reaches the live one's position.
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
			return ErrNoPreviousGeneration
		case now.Position >= min(live, head): // a live position of another log may exceed the head
			return nil
		case now.Error != nil:
			return fmt.Errorf("the kept generation has stopped at position %d: %s", now.Position, *now.Error)
		}
		select {
		case <-time.After(time.Millisecond):
		case <-late:
			return fmt.Errorf("the kept generation is at position %d, and the live one at %d: is a process serving?", now.Position, live)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Estimate is the estimated cost of a build.
type Estimate struct {
	Events event.Position // number of events to fold
	Rate   int64          // events per second, measured at the beginning of the log
	Then   time.Duration  // duration of the phases after the fill, by the last build; 0: unknown
	Bytes  int64          // size of the live tables
}

// sample is the number of events that an estimate folds.
const sample = 2 * fillBatch

// Estimate folds the beginning of the log into scratch tables and measures the rate.
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
	_, c := b.control(ctx, s)
	defer c.end()
	if err := b.fill(ctx, s, c, upTo); err != nil {
		return e, err
	}
	e.Rate = s.g.Rate
	if s.g.ThenEach != nil {
		e.Then = time.Duration(*s.g.ThenEach) * time.Duration(e.Events) // positions are less than 2^63
	}
	return e, nil
}
