package projections

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

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
		err = errors.Join(err, b.giveUp(ctx, s), s.conn.Close(context.WithoutCancel(ctx)))
	}()
	if err := b.fill(ctx, s); err != nil {
		return found, fmt.Errorf("fold %s anew: %w", b.Projection.Name, err)
	}
	if err := b.caughtUp(ctx, s); err != nil {
		return found, err
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
	for d, err := range b.ahead(ctx, s.g.Position, live.Position) {
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

// caughtUp waits until the live tables have come as far as the scratch ones, as long as they come on.
func (b Build) caughtUp(ctx context.Context, s *session) error {
	var last event.Position
	for patience := caughtUpTries; patience > 0; patience-- {
		live, found, err := liveGeneration(ctx, s.conn, b.Projection)
		if err != nil || !found || live.Position >= s.g.Position {
			return err
		}
		if live.Position > last {
			last, patience = live.Position, caughtUpTries
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(caughtUpEvery):
		}
	}
	return nil
}

const (
	caughtUpTries = 20
	caughtUpEvery = 20 * time.Millisecond
)

// compare holds every table of two schemas against one another.
func compare(ctx context.Context, tx pgx.Tx, live, anew string) (rows int64, all []Difference, err error) {
	found, _ := tx.Query(ctx, `
		select quote_ident(tablename), bool_or(schemaname = $1), bool_or(schemaname = $2)
		from pg_tables where schemaname in ($1, $2) group by 1 order by 1`, live, anew)
	type named struct {
		Name         string
		InLive, Anew bool
	}
	tables, err := pgx.CollectRows(found, pgx.RowToStructByPos[named])
	if err != nil {
		return 0, nil, err
	}
	for _, t := range tables {
		d, n, err := Difference{Table: t.Name, Count: 1, Where: inLive}, int64(0), error(nil)
		switch {
		case !t.Anew:
		case !t.InLive:
			d.Where = inLog
		default:
			d, n, err = compareTable(ctx, tx, t.Name, live+"."+t.Name, anew+"."+t.Name)
		}
		if err != nil {
			return 0, nil, fmt.Errorf("compare %s: %w", t.Name, err)
		}
		rows += n
		if d.Count > 0 {
			all = append(all, d)
		}
	}
	return rows, all, nil
}

// The places where a row may be that the other has not.
const (
	inLive = "live tables"
	inLog  = "log"
)

// compareTable holds two tables against one another as bags of rows. What it does not find room for in
// memory, Postgres sorts on disk. No column is called _l or _n, which would then mean the column.
func compareTable(ctx context.Context, tx pgx.Tx, name, live, anew string) (d Difference, rows int64, err error) {
	d.Table = name
	replace := strings.NewReplacer("LIVE", live, "ANEW", anew)
	err = tx.QueryRow(ctx, replace.Replace(`
		with odd as materialized (
			select '`+inLive+`' as place, r from (select _l::text as r from LIVE _l except all select _n::text from ANEW _n) l
			union all
			select '`+inLog+`', r from (select _n::text as r from ANEW _n except all select _l::text from LIVE _l) n
		), first as (select place, r from odd order by r, place limit 1)
		select (select count(*) from LIVE), (select count(*) from odd),
			coalesce((select place from first), ''), coalesce((select r from first), '')`)).Scan(&rows, &d.Count, &d.Where, &d.Row)
	if err != nil || d.Count == 0 {
		return d, rows, err
	}
	err = tx.QueryRow(ctx, replace.Replace(`
		select coalesce((select to_json(_l)::text from LIVE _l where _l::text = $1 limit 1), (select to_json(_n)::text from ANEW _n where _n::text = $1 limit 1))`),
		d.Row).Scan(&d.Row)
	return d, rows, err
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
		d, err := b.decode(ctx, batch)
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
