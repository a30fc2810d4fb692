package projections

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"bahi/domain/event"
	"bahi/eventstore"
)

// Difference is what two folds of the same log do not agree on.
type Difference struct {
	Table string
	Count int64  // of rows that are in one only
	Row   string // the first of them, as JSON
	Where string // which of the two has it
}

func (d Difference) String() string {
	return fmt.Sprintf("table %s: %d rows differ; the first is only in the %s: %s", d.Table, d.Count, d.Where, d.Row)
}

// Examination is what [Build.Examine] found.
type Examination struct {
	Generation  int
	Position    event.Position // at which the tables were compared
	Rows        int64          // that were compared
	Differences []Difference
}

// Examine folds the log anew into scratch tables and compares them with the live ones, row by row, as
// of the same position. The live ones may move on meanwhile.
func (b Build) Examine(ctx context.Context) (found Examination, err error) {
	s, err := b.open(ctx)
	if err != nil {
		return found, err
	}
	defer func() {
		err = errors.Join(err, drop(context.WithoutCancel(ctx), s.conn, s.g), s.conn.Close(context.WithoutCancel(ctx)))
	}()
	if err := b.fill(ctx, s); err != nil {
		return found, fmt.Errorf("fold %s anew: %w", b.Projection.Name, err)
	}
	tx, err := s.conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		return found, err
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) //nolint:errcheck // nothing in it is to stay
	live, ok, err := liveGeneration(ctx, tx, b.Projection)
	switch {
	case err != nil:
		return found, err
	case !ok:
		return found, fmt.Errorf("projection %s is not built yet", b.Projection.Name)
	case live.Position < s.g.Position:
		return found, fmt.Errorf("projection %s stands at position %d, and the log went to %d when the check began: let it catch up first",
			b.Projection.Name, live.Position, s.g.Position)
	}
	// In the same transaction, so that its snapshot of the live tables and these are of one position.
	for d, err := range ahead(ctx, b.Store, b.Projection, s.g.Position, live.Position) {
		if err != nil {
			return found, err
		}
		if err := b.Projection.fold(ctx, &Batch{Tx: tx}, d.events, d.names); err != nil {
			return found, fmt.Errorf("fold %s anew: %w", b.Projection.Name, err)
		}
	}
	found.Generation, found.Position = live.Generation, live.Position
	found.Rows, found.Differences, err = compare(ctx, tx, live.schema(), s.g.schema())
	return found, err
}

// compare holds every table of two schemas against one another.
func compare(ctx context.Context, tx pgx.Tx, live, anew string) (rows int64, all []Difference, err error) {
	found, _ := tx.Query(ctx, `select quote_ident(tablename) from pg_tables where schemaname = any($1) group by 1 order by 1`, []string{live, anew})
	tables, err := pgx.CollectRows(found, pgx.RowTo[string])
	if err != nil {
		return 0, nil, err
	}
	for _, t := range tables {
		d := Difference{Table: t}
		var n int64
		found, err := tx.Query(ctx, strings.NewReplacer("LIVE", live+"."+t, "ANEW", anew+"."+t).Replace(`
			with l as materialized (select l::text as r, to_json(l)::text as j from LIVE l),
			n as materialized (select n::text as r, to_json(n)::text as j from ANEW n),
			odd as (
				(select 'live tables' as place, r, min(j) as j from l where r not in (select r from n) group by r)
				union all
				(select 'log' as place, r, min(j) as j from n where r not in (select r from l) group by r)
			)
			select (select count(*) from l), (select count(*) from odd),
				coalesce((select place from odd order by r limit 1), ''), coalesce((select j from odd order by r limit 1), '')`))
		if err != nil {
			return 0, nil, err
		}
		_, err = pgx.ForEachRow(found, []any{&n, &d.Count, &d.Where, &d.Row}, func() error { return nil })
		if err != nil {
			return 0, nil, fmt.Errorf("compare %s: %w", t, err)
		}
		rows += n
		if d.Count > 0 {
			all = append(all, d)
		}
	}
	return rows, all, nil
}

// Fold folds a whole log into scratch tables in batches of a size, as a running projection would, and
// lets with look at them, beside those that a build makes. It is for tests.
func (b Build) Fold(ctx context.Context, size int) (differences []Difference, err error) {
	one, err := b.open(ctx)
	if err != nil {
		return nil, err
	}
	two, err := b.open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		for _, s := range []*session{one, two} {
			err = errors.Join(err, drop(ctx, s.conn, s.g), s.conn.Close(ctx))
		}
	}()
	err = pgx.BeginFunc(ctx, one.conn, func(tx pgx.Tx) error { return inSchema(ctx, tx, one.g.schema(), b.Projection.after) })
	if err != nil {
		return nil, err
	}
	one.g.Building = false
	var batch eventstore.Batch
	flush := func() error {
		d, err := b.Projection.decode(batch)
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
	if err := errors.Join(flush(), b.fill(ctx, two)); err != nil {
		return nil, err
	}
	err = pgx.BeginFunc(ctx, one.conn, func(tx pgx.Tx) (err error) {
		_, differences, err = compare(ctx, tx, one.g.schema(), two.g.schema())
		return err
	})
	return differences, err
}
