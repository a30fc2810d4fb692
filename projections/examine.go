package projections

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"bahi/domain/event"
	"bahi/eventstore"
)

// Examine folds the log into scratch tables. It compares them row by row with the live tables at the same position. The live tables may
// advance meanwhile.
func (b Build) Examine(ctx context.Context) (found Examination, err error) {
	s, err := b.scratch(ctx)
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, b.throwAway(ctx, s)) }()
	of, there, err := liveGeneration(ctx, s.conn, b.Projection)
	if err == nil && !there {
		err = fmt.Errorf("projection %s is not built yet", b.Projection.Name)
	}
	if err != nil {
		return found, err
	}
	if err := verify(ctx, b.Store, of); err != nil {
		return found, err
	}
	if err := b.refold(ctx, s, of.Position); err != nil {
		return found, fmt.Errorf("fold %s again: %w", b.Projection.Name, err)
	}
	if err := b.indexForMore(ctx, s, of); err != nil {
		return found, err
	}
	if err := b.enter(ctx, s.conn, s, comparing); err != nil {
		return found, err
	}
	return b.compareWith(ctx, s, of)
}

// indexForMore creates the indexes if the live tables have advanced meanwhile. A fold into filled tables looks up rows by key (see keyed);
// without indexes it would scan a whole table for each row.
func (b Build) indexForMore(ctx context.Context, s *session, of generation) error {
	now, there, err := oneGeneration(ctx, s.conn, `name = $1 and generation = $2`, of.Name, of.Generation)
	if err != nil || !there || now.Position <= s.g.Position {
		return err
	}
	if err := b.makeIndexes(ctx, s); err != nil {
		return fmt.Errorf("create indexes: %w", err)
	}
	return nil
}

// scratch creates a generation that never becomes live. Its lock ends with the connection.
func (b Build) scratch(ctx context.Context) (*session, error) {
	conn, err := connect(ctx, b.Config, b.Projection)
	if err != nil {
		return nil, err
	}
	if err := sweep(ctx, conn, b.Projection); err != nil {
		return nil, errors.Join(err, conn.Close(ctx))
	}
	s := b.session(conn, generation{})
	s.check = true
	s.g, err = newGeneration(ctx, conn, b.Projection, b.Store.ID(), b.How, statusScratch)
	if err == nil {
		_, err = conn.Exec(ctx, `update projection.generation set owner = $3 where name = $1 and generation = $2`, s.g.Name, s.g.Generation,
			s.owner)
	}
	if err == nil {
		err = b.makeTables(ctx, s)
	}
	if err == nil {
		err = useSchema(ctx, conn, s.g.schema())
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close(ctx))
	}
	return s, nil
}

// throwAwayTimeout is the timeout for dropping scratch tables. After it, a serving process or the next check drops them.
const throwAwayTimeout = 10 * time.Second

// throwAway drops scratch tables. It uses a new connection if the session's connection was lost.
func (b Build) throwAway(ctx context.Context, s *session) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), throwAwayTimeout)
	defer cancel()
	defer s.conn.Close(ctx) //nolint:errcheck // the connection is discarded
	if !s.conn.IsClosed() {
		return drop(ctx, s.conn, s.g)
	}
	conn, err := connect(ctx, b.Config, b.Projection)
	if err != nil {
		return err
	}
	return errors.Join(drop(ctx, conn, s.g), conn.Close(ctx))
}

// refold fills scratch tables up to a position. It creates no indexes: a comparison at that position needs none.
func (b Build) refold(ctx context.Context, s *session, limit event.Position) error {
	watched, c := b.control(ctx, s)
	defer c.end()
	if err := b.fill(watched, s, c, limit); err != nil {
		return err
	}
	return b.completeTables(watched, s, freePlans)
}

// analyze collects Postgres's statistics of the tables that have rows. Without statistics, a plan assumes few rows and may compare each row
// of one table with each row of another. analyze skips empty tables: with statistics, plans would read the whole table, and prepared
// statements keep such a plan while the table fills.
func analyze(ctx context.Context, s *session) error {
	var all string
	err := s.conn.QueryRow(ctx, `select coalesce(string_agg(format('%I.%I', schemaname, tablename), ', '), '') from pg_tables
		where schemaname = $1 and pg_relation_size(format('%I.%I', schemaname, tablename)::regclass) > 0`, s.g.schema()).Scan(&all)
	if err == nil && all != "" {
		_, err = s.conn.Exec(ctx, `analyze `+all)
	}
	return err
}

// Fold is for tests. It folds the whole log in batches of a size, like a running projection, and compares the tables with those of a fill
// that is interrupted and resumed several times.
func (b Build) Fold(ctx context.Context, size, stops int) (differences []Difference, err error) {
	one, err := b.scratch(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.throwAway(ctx, one)) }()
	two, err := b.scratch(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.throwAway(ctx, two)) }()
	if err := b.index(ctx, one); err != nil {
		return nil, err
	}
	decoding, err := newDecoder(ctx, b.Store, b.Projection, b.Reveal)
	if err != nil {
		return nil, err
	}
	var batch eventstore.Batch
	flush := func() error {
		d, err := decoding.decode(ctx, batch)
		if err == nil && d.upTo > 0 {
			err = one.apply(ctx, d)
		}
		batch = eventstore.Batch{}
		return err
	}
	for e, err := range b.Store.ReadAll(ctx, 0, eventstore.Forwards) {
		if err != nil {
			return nil, err
		}
		batch.Events, batch.UpTo = append(batch.Events, e), e.Position
		if len(batch.Events) == size {
			if err := flush(); err != nil {
				return nil, err
			}
		}
	}
	head, err := b.Store.Head(ctx)
	if err := errors.Join(err, flush()); err != nil {
		return nil, err
	}
	for nth := range stops {
		watched, c := b.control(ctx, two)
		err = b.fill(watched, two, c, head*event.Position(nth+1)/event.Position(stops+1))
		c.end()
		if err != nil {
			return nil, err
		}
	}
	if err := b.refold(ctx, two, head); err != nil {
		return nil, err
	}
	err = pgx.BeginFunc(ctx, one.conn, func(tx pgx.Tx) (err error) {
		_, differences, err = compare(ctx, tx, one.g.schema(), two.g.schema(), nil)
		return err
	})
	return differences, err
}
