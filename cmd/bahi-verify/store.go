//go:build !js

package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/event"
	"bahi/eventstore/audit"
)

type storeCommand struct {
	given
	compared

	URL string `name:"url" required:"" env:"DATABASE_URL" help:"The database: postgres://user@host/database."`
}

// Run prints what was found out about the log in the database.
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
	return c.verify(ctx, log.source(), total, c.given, status)
}

// storedLog is the log in a database, which is read by plain SQL: nothing of Bahi's stands between the auditor and the rows.
type storedLog struct {
	conn   *pgx.Conn // for the events
	tiles  *pgx.Conn // beside them
	id     uuid.UUID
	schema string // of the tables with the tree; empty: there are none
}

func openStore(ctx context.Context, url string) (*storedLog, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, errors.New("the URL of the database is not of the form postgres://user@host/database") // it may hold a password
	}
	config.RuntimeParams["default_transaction_read_only"] = "on"
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
	// Not every log has been served by a Bahi that keeps a tree.
	var generation int
	err = l.conn.QueryRow(ctx, `select generation from projection.generation where name = 'audit' and live order by version desc limit 1`).Scan(&generation)
	if err == nil {
		l.schema = fmt.Sprintf("audit_g%d", generation)
	}
	return &l, nil
}

func (l *storedLog) close(ctx context.Context) {
	for _, conn := range []*pgx.Conn{l.conn, l.tiles} {
		if conn != nil {
			_ = conn.Close(ctx) // what was read is read
		}
	}
}

func (l *storedLog) source() source {
	return source{
		name: "the database", origin: audit.Origin(l.id), events: l.events,
		verify: func(ctx context.Context, t trust, kept []audit.Kept, progress func(uint64)) (audit.Result, error) {
			notes, err := l.notes(ctx)
			if err != nil {
				return audit.Result{}, err
			}
			own, err := t.keys.Collect(audit.Origin(l.id), "the database's own", []byte(strings.Join(notes, "\n")))
			if err != nil {
				f := audit.Finding{Kind: audit.Rewritten, Why: "What was signed was changed: " + err.Error() + "."}
				return audit.Result{Finding: &f}, nil //nolint:nilerr // that is the answer
			}
			evidence := audit.Evidence{Kept: append(audit.BesideTheLog(own), kept...), Progress: progress}
			if l.schema != "" {
				evidence.Tiles = l
			}
			return audit.Verify(ctx, l.events(ctx), evidence)
		},
	}
}

// events yields all events in the order of their positions, as the rows have them.
func (l *storedLog) events(ctx context.Context) iter.Seq2[event.Stored, error] {
	return func(yield func(event.Stored, error) bool) {
		rows, err := l.conn.Query(ctx, `select position, stream, revision, id, type, data::text, meta::text, recorded_at from log.event order by position`)
		if err != nil {
			yield(event.Stored{}, fmt.Errorf("read the log: %w", err))
			return
		}
		defer rows.Close()
		for rows.Next() {
			var e event.Stored
			if err := rows.Scan(&e.Position, &e.Stream, &e.Revision, &e.ID, &e.Type, &e.Data, &e.Meta, &e.At); err != nil {
				yield(event.Stored{}, fmt.Errorf("read the log: %w", err))
				return
			}
			if !yield(e, nil) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(event.Stored{}, fmt.Errorf("read the log: %w", err))
		}
	}
}

// notes are the checkpoints that the database has, if it has any.
func (l *storedLog) notes(ctx context.Context) ([]string, error) {
	var there bool
	if err := l.conn.QueryRow(ctx, `select to_regclass('audit.checkpoint') is not null`).Scan(&there); err != nil || !there {
		return nil, err
	}
	rows, _ := l.conn.Query(ctx, `select note from audit.checkpoint where abandoned is null order by number`)
	notes, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("read the checkpoints: %w", err)
	}
	return notes, nil
}

// ReadTiles implements [audit.Tiles].
func (l *storedLog) ReadTiles(ctx context.Context, ids []audit.TileID) ([][]byte, error) {
	levels, indexes := make([]int64, len(ids)), make([]int64, len(ids))
	for i, id := range ids {
		levels[i], indexes[i] = int64(id.Level), int64(id.Index)
	}
	rows, _ := l.tiles.Query(ctx, `select coalesce(t.hashes, '') from unnest($1::bigint[], $2::bigint[]) with ordinality asked (level, index, nth)
		left join `+pgx.Identifier{l.schema, "tile"}.Sanitize()+` t on t.level = asked.level and t.index = asked.index order by nth`, levels, indexes)
	return pgx.CollectRows(rows, pgx.RowTo[[]byte])
}
