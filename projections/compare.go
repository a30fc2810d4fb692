package projections

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"bahi/domain/event"
	"bahi/eventstore/signal"
)

// Difference has the differing rows of one table of two folds of the same log.
type Difference struct {
	Table  string         `json:"table"`
	Count  int64          `json:"count"`             // number of rows that only one of the two tables has
	OnlyIn string         `json:"only_in,omitempty"` // the fold that has the table; empty: both have it
	Rows   []DifferentRow `json:"rows"`              // the first differing rows
}

// DifferentRow is a row that only one of the two tables has.
type DifferentRow struct {
	Where string          `json:"where"` // live tables, or log for the result of folding it again
	Row   json.RawMessage `json:"row"`
}

func (d Difference) String() string {
	if d.OnlyIn != "" {
		return fmt.Sprintf("table %s is only in the %s", d.Table, d.OnlyIn)
	}
	if len(d.Rows) == 0 {
		return fmt.Sprintf("table %s: %d rows differ", d.Table, d.Count)
	}
	return fmt.Sprintf("table %s: %d rows differ; the first is only in the %s: %s", d.Table, d.Count, d.Rows[0].Where, d.Rows[0].Row)
}

// The values of Where and OnlyIn.
const (
	inLive = "live tables"
	inLog  = "log"
)

// maxShown is the number of differing rows shown per table.
const maxShown = 10

// Examination is the result of a comparison.
type Examination struct {
	Generation  int
	Position    event.Position // position at which the tables were compared
	Rows        int64          // number of compared rows
	Differences []Difference
}

const (
	caughtUpTries    = 50
	caughtUpInterval = 20 * time.Millisecond
)

// errNotMoving reports that the live tables have stopped before the position of the new ones.
var errNotMoving = errors.New("the live tables have stopped")

// caughtUp waits until a generation reaches the session's position or stops.
func (b Build) caughtUp(ctx context.Context, s *session, of generation) error {
	last := of.Position
	for patience := caughtUpTries; patience > 0; patience-- {
		now, found, err := oneGeneration(ctx, s.conn, `name = $1 and generation = $2`, of.Name, of.Generation)
		if err != nil || !found || now.Position >= s.g.Position {
			return err
		}
		if now.Position > last {
			last, patience = now.Position, caughtUpTries
		}
		if err := signal.Sleep(ctx, caughtUpInterval); err != nil {
			return err
		}
	}
	return errNotMoving
}

// compareWith compares the session's tables row by row with another generation's tables at the same position. The other generation may
// advance meanwhile, because one snapshot has both.
func (b Build) compareWith(ctx context.Context, s *session, of generation) (found Examination, err error) {
	if err := b.caughtUp(ctx, s, of); err != nil {
		return found, err
	}
	decoding, err := newDecoder(ctx, b.Store, b.Projection, b.Reveal)
	if err != nil {
		return found, err
	}
	tx, err := s.conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		return found, err
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) //nolint:errcheck // rolled back on purpose
	of, there, err := oneGeneration(ctx, tx, `name = $1 and generation = $2`, of.Name, of.Generation)
	if err == nil && (!there || of.Position < s.g.Position) {
		err = errNotMoving
	}
	if err != nil {
		return found, err
	}
	// In one transaction, the snapshot has both generations' tables at one position.
	s.kept = nil // the rollback also discards the fold's state
	for d, err := range b.ahead(ctx, decoding, s.g.Position, of.Position, nil) {
		if err != nil {
			return found, err
		}
		if err := guarded(func() error { return b.Projection.fold(ctx, &Batch{Tx: tx}, d) }); err != nil {
			return found, fmt.Errorf("fold %s again: %w", b.Projection.Name, err)
		}
	}
	if _, err := tx.Exec(ctx, freePlans); err != nil {
		return found, err
	}
	found.Generation, found.Position = of.Generation, of.Position
	var columns map[string]string
	if of.Version != s.g.Version {
		columns = b.Projection.common
	}
	found.Rows, found.Differences, err = compare(ctx, tx, of.schema(), s.g.schema(), columns)
	return found, err
}

// compare compares the tables of two schemas: all of them, or the named columns.
func compare(ctx context.Context, tx pgx.Tx, live, fresh string, columns map[string]string) (rows int64, all []Difference, err error) {
	found, _ := tx.Query(ctx, `
		select quote_ident(tablename), bool_or(schemaname = $1), bool_or(schemaname = $2)
		from pg_tables where schemaname in ($1, $2) group by 1 order by 1`, live, fresh)
	type named struct {
		Name          string
		InLive, Fresh bool
	}
	tables, err := pgx.CollectRows(found, pgx.RowToStructByPos[named])
	if err != nil {
		return 0, nil, err
	}
	for _, t := range tables {
		of, chosen := columns[t.Name]
		switch {
		case columns != nil && !chosen:
			continue
		case columns == nil:
			of = "*"
		}
		d, n, err := Difference{Table: t.Name, Count: 1, OnlyIn: inLive, Rows: []DifferentRow{}}, int64(0), error(nil)
		switch {
		case !t.Fresh:
		case !t.InLive:
			d.OnlyIn = inLog
		default:
			d, n, err = compareTable(ctx, tx, t.Name, `(select `+of+` from `+live+`.`+t.Name+`)`, `(select `+of+` from `+fresh+`.`+t.Name+`)`)
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

// compareTable compares two tables as multisets of rows. It first compares the sums of the rows' hashes, which takes one scan without
// sorting. If those differ, it compares row by row, sorted by Postgres.
func compareTable(ctx context.Context, tx pgx.Tx, name, live, fresh string) (d Difference, rows int64, err error) {
	d.Table = name
	var counts, sums [2]string
	for i, table := range []string{live, fresh} {
		if counts[i], sums[i], err = sumOf(ctx, tx, table); err != nil {
			return d, 0, err
		}
	}
	if rows, err = strconv.ParseInt(counts[0], 10, 64); err != nil || counts[0] == counts[1] && sums[0] == sums[1] {
		return d, rows, err
	}
	// No column may have the name _l or _n, because the name would then refer to the column.
	replace := strings.NewReplacer("LIVE", live, "FRESH", fresh)
	found, _ := tx.Query(ctx, replace.Replace(`
		with different as materialized (
			select '`+inLive+`' as place, r from (select _l::text as r from LIVE _l except all select _n::text from FRESH _n) l
			union all
			select '`+inLog+`', r from (select _n::text as r from FRESH _n except all select _l::text from LIVE _l) n
		), first as (select place, r from different order by r, place limit $1)
		select f.place, (select count(*) from different), coalesce(
			(select to_json(_l)::text from LIVE _l where _l::text = f.r limit 1), (select to_json(_n)::text from FRESH _n where _n::text = f.r `+
		`limit 1))
		from first f order by f.r, f.place`), maxShown)
	var row struct{ where, text string }
	_, err = pgx.ForEachRow(found, []any{&row.where, &d.Count, &row.text}, func() error {
		d.Rows = append(d.Rows, DifferentRow{Where: row.where, Row: json.RawMessage(row.text)})
		return nil
	})
	if err == nil && d.Count == 0 {
		err = errors.New("the tables' hashes differ and their rows do not")
	}
	return d, rows, err
}

// sumOf returns a table's number of rows and the sum of their hashes.
func sumOf(ctx context.Context, tx pgx.Tx, table string) (count, sum string, err error) {
	hashed := func(hash string) error {
		return pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
			return tx.QueryRow(ctx, `select count(*)::text, coalesce(sum(`+hash+`), 0)::text from `+table+` _r`).Scan(&count, &sum)
		})
	}
	err = hashed(`hash_record_extended(_r, 0)`)
	if server, ok := errors.AsType[*pgconn.PgError](err); ok && server.Code == "42883" { // json, for example, has no hash
		err = hashed(`hashtextextended(_r::text, 0)`) // takes four times as long
	}
	return count, sum, err
}
