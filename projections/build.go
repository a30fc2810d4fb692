package projections

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/event"
	"bahi/eventstore"
)

const (
	// fillBatch is how many events one transaction of a fill folds: large, so that what they have in
	// common is written once.
	fillBatch = 10_000

	// readAhead is how many batches are read and decoded while one is folded.
	readAhead = 2
)

// Build makes a new generation of a projection and lets it be read.
type Build struct {
	Store      eventstore.Store
	Config     *pgx.ConnConfig
	Projection *Projection
	Reveal     Reveal // nil when the projection has no personal values
	Log        *slog.Logger
	Progress   func(done, total event.Position) // may be nil
}

// Run fills a new generation from the log's beginning, makes its indexes, catches up, and puts it in
// the place of the live one, which is dropped. Readers see the old one or the new one, never a mix.
func (b Build) Run(ctx context.Context) error {
	_, err := b.run(ctx)
	return err
}

func (b Build) run(ctx context.Context) (generation, error) {
	s, err := b.open(ctx)
	if err != nil {
		return generation{}, err
	}
	defer s.conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // it is given up
	err = b.fill(ctx, s)
	if err != nil {
		err = fmt.Errorf("build %s: %w", b.Projection.Name, err)
		if !isTransient(s.conn, err) {
			err = &unbuildable{err}
		}
	} else if err = b.golive(ctx, s); err != nil {
		err = fmt.Errorf("switch %s: %w", b.Projection.Name, err)
	}
	if err != nil {
		err = errors.Join(err, b.giveUp(ctx, s))
	}
	return s.g, err
}

// giveUpWithin is how long a failed build may take to drop what it has made. If it cannot, the next one
// does it.
const giveUpWithin = 5 * time.Second

// giveUp drops the generation, on another connection if the session's own was lost.
func (b Build) giveUp(ctx context.Context, s *session) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveUpWithin)
	defer cancel()
	if !s.conn.IsClosed() {
		return drop(ctx, s.conn, s.g)
	}
	conn, err := connect(ctx, b.Config, b.Projection)
	if err != nil {
		return err
	}
	return errors.Join(drop(ctx, conn, s.g), conn.Close(ctx))
}

// unbuildable is why a build will not get any further when it is begun again.
type unbuildable struct{ error }

func (u *unbuildable) Unwrap() error { return u.error }

// open makes the empty generation.
func (b Build) open(ctx context.Context) (*session, error) {
	conn, err := connect(ctx, b.Config, b.Projection)
	if err != nil {
		return nil, err
	}
	owner := uuid.New()
	if err := sweep(ctx, conn, b.Projection); err != nil {
		return nil, errors.Join(err, conn.Close(ctx))
	}
	g, err := newGeneration(ctx, conn, b.Projection, b.Store.ID(), owner)
	if err == nil {
		err = useSchema(ctx, conn, g.schema())
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close(ctx))
	}
	return &session{p: b.Projection, g: g, owner: owner, conn: conn}, nil
}

// fill folds the log up to its head, makes what is made after the fill, and catches up.
func (b Build) fill(ctx context.Context, s *session) error {
	head, err := b.Store.Head(ctx)
	if err != nil {
		return err
	}
	if err := b.foldUpTo(ctx, s, head); err != nil {
		return err
	}
	err = pgx.BeginFunc(ctx, s.conn, func(tx pgx.Tx) error {
		if err := b.Projection.finish(ctx, &Batch{Tx: tx, Filling: true, Kept: s.kept}); err != nil {
			return err
		}
		s.kept = nil
		return nil
	})
	if err == nil {
		err = b.afterFill(ctx, s)
	}
	if err != nil {
		return fmt.Errorf("make indexes: %w", err)
	}
	s.g.Building = false
	if head, err = b.Store.Head(ctx); err != nil {
		return err
	}
	return b.foldUpTo(ctx, s, head)
}

// afterFill runs what stands behind the fill in the DDL: its indexes two at a time, since nothing else
// has to be done meanwhile, and then the rest.
func (b Build) afterFill(ctx context.Context, s *session) error {
	indexes, rest := b.Projection.indexes()
	helper, err := connect(ctx, b.Config, b.Projection)
	if err != nil {
		return err
	}
	defer helper.Close(context.WithoutCancel(ctx)) //nolint:errcheck // nothing is left to lose
	if err := useSchema(ctx, helper, s.g.schema()); err != nil {
		return err
	}
	todo, failed := make(chan string, len(indexes)), make(chan error, 2)
	for _, index := range indexes {
		todo <- index
	}
	close(todo)
	for _, conn := range []*pgx.Conn{s.conn, helper} {
		go func() {
			for index := range todo {
				if _, err := conn.Exec(ctx, index); err != nil {
					failed <- err
					return
				}
			}
			failed <- nil
		}()
	}
	if err := errors.Join(<-failed, <-failed); err != nil {
		return err
	}
	return pgx.BeginFunc(ctx, s.conn, func(tx pgx.Tx) error { return inSchema(ctx, tx, s.g.schema(), rest) })
}

// foldUpTo folds the log in large batches, which are read and decoded ahead.
func (b Build) foldUpTo(ctx context.Context, s *session, head event.Position) error {
	for d, err := range b.ahead(ctx, s.g.Position, head) {
		if d.upTo > s.g.Position {
			// Not event by event to find one at fault: what is kept for the fill's end would be lost.
			if applyErr := guarded(func() error { return s.apply(ctx, d) }); applyErr != nil {
				return applyErr
			}
			if b.Progress != nil {
				b.Progress(s.g.Position, head)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ahead yields the log in decoded batches up to head, while the next ones are read and decoded.
func (b Build) ahead(ctx context.Context, after, head event.Position) iter.Seq2[decoded, error] {
	type item struct {
		d   decoded
		err error
	}
	return func(yield func(decoded, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		batches := make(chan item, readAhead)
		send := func(d decoded, err error) bool {
			select {
			case batches <- item{d, err}:
				return err == nil
			case <-ctx.Done():
				return false
			}
		}
		go func() {
			defer close(batches)
			batch := eventstore.Batch{}
			for e, err := range b.Store.ReadAll(ctx, after, eventstore.Forwards) {
				if err != nil {
					send(decoded{}, err)
					return
				}
				if e.Position > head {
					break
				}
				batch.Events, batch.UpTo = append(batch.Events, e), e.Position
				if len(batch.Events) == fillBatch {
					if !send(b.decode(ctx, batch)) {
						return
					}
					batch.Events = batch.Events[:0]
				}
			}
			if len(batch.Events) > 0 {
				send(b.decode(ctx, batch))
			}
		}()
		for next := range batches {
			if !yield(next.d, next.err) {
				return
			}
		}
	}
}

func (b Build) decode(ctx context.Context, batch eventstore.Batch) (decoded, error) {
	d, err := b.Projection.decode(batch)
	return b.Projection.open(ctx, b.Reveal, d, err)
}

// golive lets readers find the new generation, and drops the one that it replaces. A runner that works
// on that one learns of it with its next batch.
func (b Build) golive(ctx context.Context, s *session) error {
	var (
		old   generation
		found bool
	)
	err := pgx.BeginFunc(ctx, s.conn, func(tx pgx.Tx) (err error) {
		if err := lockRegistry(ctx, tx); err != nil {
			return err
		}
		if old, found, err = liveGeneration(ctx, tx, b.Projection); err != nil {
			return err
		}
		if found {
			if _, err := tx.Exec(ctx, `update projection.generation set live = false where name = $1 and generation = $2`, old.Name, old.Generation); err != nil {
				return err
			}
		}
		done, err := tx.Exec(ctx, `
			update projection.generation set live = true, building = false where name = $1 and generation = $2 and owner = $3`,
			s.g.Name, s.g.Generation, s.owner)
		if err == nil && done.RowsAffected() == 0 {
			err = ErrFenced
		}
		return err
	})
	if err != nil || !found {
		return err
	}
	b.Log.Info("a new generation is read", "projection", b.Projection.Name, "generation", s.g.Generation, "position", s.g.Position)
	// What came while the last look at the log was folded is in the old generation alone, and no runner
	// looks at the new one before something else comes.
	head, err := b.Store.Head(ctx)
	if err == nil {
		err = b.foldUpTo(ctx, s, head)
	}
	if err != nil && !errors.Is(err, ErrFenced) { // fenced: a runner does it
		b.Log.Warn("a new generation is read, and is late", "projection", b.Projection.Name, "error", err)
	}
	if err := drop(ctx, s.conn, old); err != nil {
		b.Log.Warn("an old generation was not dropped; the next build does it", "projection", b.Projection.Name, "generation", old.Generation, "error", err)
	}
	return nil
}

// lockRegistry keeps others from making, switching or dropping generations until tx ends.
func lockRegistry(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtext('projection.generation'))`)
	return err
}

// drop removes a generation that nobody is to read. The tables go first: a runner holds them when it
// comes to the registry, and must not meet somebody there who waits for them.
func drop(ctx context.Context, conn *pgx.Conn, g generation) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if err := lockRegistry(ctx, tx); err != nil {
			return err
		}
		if live, err := generations(ctx, tx, `name = $1 and generation = $2 and live`, g.Name, g.Generation); err != nil || len(live) > 0 {
			return err
		}
		if _, err := tx.Exec(ctx, `drop schema if exists `+g.schema()+` cascade`); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `delete from projection.generation where name = $1 and generation = $2`, g.Name, g.Generation)
		return err
	})
}

// sweep drops generations of the projection that nobody reads and nobody builds any more: those of
// builds that were killed.
func sweep(ctx context.Context, conn *pgx.Conn, p *Projection) error {
	left, err := generations(ctx, conn, `name = $1 and not live`, p.Name)
	if err != nil {
		return fmt.Errorf("find what builds of %s left: %w", p.Name, err)
	}
	for _, g := range left {
		var nobodys bool
		if err := conn.QueryRow(ctx, `select `+tryHold, g.schema()).Scan(&nobodys); err != nil {
			return err
		}
		if !nobodys {
			continue
		}
		err := drop(ctx, conn, g)
		if _, letGoErr := conn.Exec(ctx, `select `+letGo, g.schema()); err == nil {
			err = letGoErr
		}
		if err != nil {
			return fmt.Errorf("drop what a build of %s left: %w", p.Name, err)
		}
	}
	return nil
}

// hold is the SQL of the lock that says that somebody builds the generation of a schema, tryHold of the
// question whether nobody does, letGo of its end. It lasts no longer than the connection.
const (
	hold    = `pg_advisory_lock(8241003, hashtext($1))`
	tryHold = `pg_try_advisory_lock(8241003, hashtext($1))`
	letGo   = `pg_advisory_unlock(8241003, hashtext($1))`
)
