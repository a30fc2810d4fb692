//go:build !js

package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"bahi/domain/event"
	"bahi/eventstore/archive"
	"bahi/eventstore/tlog"
)

type storeCommand struct {
	given
	compared

	URL string `name:"url" required:"" env:"DATABASE_URL" help:"The database: postgres://user@host/database."`
}

// Run prints the result for the log in the database.
func (c storeCommand) Run(ctx context.Context, status *int) error {
	log, err := openStore(ctx, c.URL)
	if err != nil {
		return err
	}
	defer log.close(ctx)
	var total uint64
	if err := log.conn.QueryRow(ctx, `select coalesce(max(position), 0) from log.event`).Scan(&total); err != nil {
		return fmt.Errorf("find the newest event: %w", err)
	}
	if total == 0 && log.tables != log.id {
		return fmt.Errorf("the tables belong to the log %s, which is not in this database: its log is empty, and its events are lost", log.tables)
	}
	return c.verify(ctx, log.source(), total, c.given, status)
}

// storedLog is the log in a database, read with plain SQL: no code of Bahi is between the auditor and the rows.
type storedLog struct {
	conn   *pgx.Conn // for the events
	tiles  *pgx.Conn // for reads in parallel
	id     uuid.UUID
	tables uuid.UUID // the log that the tree belongs to
	schema string    // schema with the tree's tables; empty if there are none
}

func openStore(ctx context.Context, url string) (*storedLog, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, errors.New("the URL of the database is not of the form postgres://user@host/database") // it may contain a password
	}
	config.RuntimeParams["default_transaction_read_only"] = "on"
	config.RuntimeParams["jit"] = "off"
	config.RuntimeParams["application_name"] = "bahi-verify"
	var l storedLog
	if l.conn, err = pgx.ConnectConfig(ctx, config); err != nil {
		return nil, fmt.Errorf("reach the database: %w", err)
	}
	if l.tiles, err = pgx.ConnectConfig(ctx, config); err != nil {
		l.close(ctx)
		return nil, fmt.Errorf("reach the database: %w", err)
	}
	if err := l.conn.QueryRow(ctx, `select store_id from log.identity`).Scan(&l.id); err != nil {
		l.close(ctx)
		return nil, fmt.Errorf("find the log in the database: %w", err)
	}
	// An old Bahi, which built no tree, left no such tables.
	var generation int
	l.tables = l.id
	err = l.conn.QueryRow(ctx, `select generation, store_id from projection.generation where name = 'audit' and status = 'live'
		order by version desc limit 1`).Scan(&generation, &l.tables)
	if err == nil {
		l.schema = fmt.Sprintf("audit_g%d", generation)
	}
	return &l, nil
}

func (l *storedLog) close(ctx context.Context) {
	for _, conn := range []*pgx.Conn{l.conn, l.tiles} {
		if conn != nil {
			_ = conn.Close(ctx) // nothing was written
		}
	}
}

func (l *storedLog) source() archive.Source {
	return archive.Source{
		Name: "the database", Origin: tlog.Origin(l.id), Events: l.events, Live: true,
		Verify: func(ctx context.Context, g archive.Given, kept []tlog.RetainedCheckpoint, progress func(uint64)) (tlog.Result, error) {
			notes, err := l.notes(ctx)
			if err != nil {
				return tlog.Result{}, err
			}
			own, wrong := g.Keys.ParseBundled(tlog.Origin(l.id), "the database's own", notes)
			evidence := tlog.Evidence{Kept: append(own, kept...), Progress: progress}
			if l.schema != "" {
				evidence.Tiles = l
			}
			r, err := tlog.Verify(ctx, l.events(ctx), evidence)
			if wrong != nil {
				r = r.Also(tlog.Falsified(wrong))
			}
			return r, err
		},
	}
}

// events yields all events by position, as the rows have them.
func (l *storedLog) events(ctx context.Context) iter.Seq2[event.Stored, error] {
	return func(yield func(event.Stored, error) bool) {
		rows, err := l.conn.Query(ctx, `select position, stream, revision, id, type, data::text, meta::text, recorded_at from log.event
			order by position`)
		if err != nil {
			yield(event.Stored{}, fmt.Errorf("read the log: %w", err))
			return
		}
		defer rows.Close()
		for rows.Next() {
			var (
				e  event.Stored
				at int64
				on pgtype.Timestamptz
			)
			if err := rows.Scan(&at, &e.Stream, &e.Revision, &e.ID, &e.Type, &e.Data, &e.Meta, &on); err != nil {
				yield(event.Stored{}, fmt.Errorf("read the log: %w", err))
				return
			}
			e.Position, e.At = event.Position(max(at, 0)), bounded(on) // negative positions become 0, which is invalid too
			if !yield(e, nil) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(event.Stored{}, fmt.Errorf("read the log: %w", err))
		}
	}
}

// bounded returns the time, limited to the years that can be printed.
func bounded(on pgtype.Timestamptz) time.Time {
	first, last := time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 999999000, time.UTC)
	switch {
	case on.InfinityModifier == pgtype.NegativeInfinity || on.InfinityModifier == pgtype.Finite && on.Time.Before(first):
		return first
	case on.InfinityModifier == pgtype.Infinity || on.Time.After(last):
		return last
	}
	return on.Time
}

// notes returns the checkpoints in the database, if any.
func (l *storedLog) notes(ctx context.Context) ([][]byte, error) {
	var there bool
	if err := l.conn.QueryRow(ctx, `select to_regclass('audit.checkpoint') is not null`).Scan(&there); err != nil || !there {
		return nil, err
	}
	// Anybody with write access can mark a checkpoint as abandoned. Only the log's own event counts.
	rows, _ := l.conn.Query(ctx, `select convert_to(c.note, 'UTF8') from audit.checkpoint c where c.abandoned is null or not exists (
		select from log.event e where e.stream = 'audit-log' and e.type = 'CheckpointRestoreAccepted'
			and c.number <= (e.data ->> 'last_number')::bigint and c.size > (e.data -> 'kept' ->> 'size')::bigint)
		order by c.number`)
	notes, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	if err != nil {
		return nil, fmt.Errorf("read the checkpoints: %w", err)
	}
	return notes, nil
}

// ReadTiles implements [tlog.Tiles].
func (l *storedLog) ReadTiles(ctx context.Context, ids []tlog.TileID) ([][]byte, error) {
	levels, indexes := make([]int64, len(ids)), make([]int64, len(ids))
	for i, id := range ids {
		levels[i], indexes[i] = int64(id.Level), int64(id.Index)
	}
	rows, _ := l.tiles.Query(ctx, `select coalesce(t.hashes, '') from unnest($1::bigint[], $2::bigint[]) with ordinality asked (level, index,
		nth)
		left join `+pgx.Identifier{l.schema, "tile"}.Sanitize()+` t on t.level = asked.level and t.index = asked.index order by nth`,
		levels, indexes)
	return pgx.CollectRows(rows, pgx.RowTo[[]byte])
}
