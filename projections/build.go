package projections

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"

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
	if err := b.fill(ctx, s); err != nil {
		return s.g, errors.Join(fmt.Errorf("build %s: %w", b.Projection.Name, err), drop(context.WithoutCancel(ctx), s.conn, s.g))
	}
	if err := b.golive(ctx, s); err != nil {
		return s.g, fmt.Errorf("switch %s: %w", b.Projection.Name, err)
	}
	return s.g, nil
}

// open makes the empty generation.
func (b Build) open(ctx context.Context) (*session, error) {
	conn, err := connect(ctx, b.Config, b.Projection)
	if err != nil {
		return nil, err
	}
	owner := uuid.New()
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
		return inSchema(ctx, tx, s.g.schema(), b.Projection.after)
	})
	if err != nil {
		return fmt.Errorf("make indexes: %w", err)
	}
	s.g.Building = false
	if err := b.analyze(ctx, s); err != nil {
		return err
	}
	if head, err = b.Store.Head(ctx); err != nil {
		return err
	}
	return b.foldUpTo(ctx, s, head)
}

func (b Build) analyze(ctx context.Context, s *session) error {
	rows, _ := s.conn.Query(ctx, `select quote_ident(tablename) from pg_tables where schemaname = $1`, s.g.schema())
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, t := range tables {
		if _, err := s.conn.Exec(ctx, `analyze `+s.g.schema()+`.`+t); err != nil {
			return fmt.Errorf("analyze %s: %w", t, err)
		}
	}
	return nil
}

// foldUpTo folds the log in large batches, which are read and decoded ahead.
func (b Build) foldUpTo(ctx context.Context, s *session, head event.Position) error {
	for d, err := range ahead(ctx, b.Store, b.Projection, s.g.Position, head) {
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
func ahead(ctx context.Context, store eventstore.Store, p *Projection, after, head event.Position) iter.Seq2[decoded, error] {
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
			for e, err := range store.ReadAll(ctx, after, eventstore.Forwards) {
				if err != nil {
					send(decoded{}, err)
					return
				}
				if e.Position > head {
					break
				}
				batch.Events, batch.UpTo = append(batch.Events, e), e.Position
				if len(batch.Events) == fillBatch {
					if !send(p.decode(batch)) {
						return
					}
					batch.Events = batch.Events[:0]
				}
			}
			if len(batch.Events) > 0 {
				send(p.decode(batch))
			}
		}()
		for b := range batches {
			if !yield(b.d, b.err) {
				return
			}
		}
	}
}

// golive lets readers find the new generation, and drops the one that it replaces.
func (b Build) golive(ctx context.Context, s *session) error {
	old, found, err := liveGeneration(ctx, s.conn, b.Projection)
	if err != nil {
		return err
	}
	err = pgx.BeginFunc(ctx, s.conn, func(tx pgx.Tx) error {
		if found {
			if _, err := tx.Exec(ctx, `update projection.generation set live = false where name = $1 and generation = $2`, old.Name, old.Generation); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, `update projection.generation set live = true, building = false where name = $1 and generation = $2`, s.g.Name, s.g.Generation)
		return err
	})
	if err != nil || !found {
		return err
	}
	b.Log.Info("a new generation is read", "projection", b.Projection.Name, "generation", s.g.Generation, "position", s.g.Position)
	return drop(ctx, s.conn, old)
}

// drop removes a generation that nobody is to read.
func drop(ctx context.Context, conn *pgx.Conn, g generation) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `delete from projection.generation where name = $1 and generation = $2 and not live`, g.Name, g.Generation); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `drop schema if exists `+g.schema()+` cascade`)
		return err
	})
}
