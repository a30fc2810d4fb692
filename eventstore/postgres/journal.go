package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/journal"
	"bahi/eventstore/signal"
	"bahi/eventstore/tlog"
)

const (
	// findEntries returns events after a position, in order, as entries of the journal.
	findEntries = `select ` + columns + `, open_ended from log.event where position > $1 order by position limit $2`

	// insertEntries inserts entries of the journal after the log's head.
	insertEntries = `
		insert into log.event (position, revision, recorded_at, id, open_ended, stream, type, data, meta)
		select u.position, u.revision, u.recorded_at, u.id, u.open_ended, u.stream, u.type, u.data::json, u.meta::json
		from unnest($1::bigint[], $2::bigint[], $3::timestamptz[], $4::uuid[], $5::bool[], $6::text[], $7::text[], $8::text[], $9::text[])
			u (position, revision, recorded_at, id, open_ended, stream, type, data, meta)
		order by u.position`

	// maxLevel limits the entries of one section that [leveling] copies.
	maxLevel = 512

	// maxMoved limits how often the journal's end may move between two reads.
	maxMoved = 10

	// wholeInterval is the interval between two checks that the journal lacks no event.
	wholeInterval = time.Hour
)

// errNoJournal refuses to open a log with a journal without that journal.
var errNoJournal = errors.New(
	"this log has a journal in EventStoreDB: set EVENTSTORE_URL. Without it, acknowledged writes would not be in the journal")

// leveling makes a log and its journal equal: it copies what one lacks at its end from the other. The log and the journal have only events
// that were decided under the log's lock. Every acknowledged event is in at least one of them.
type leveling struct {
	journal *journal.Journal
	fill    bool // even an empty journal
	log     *slog.Logger
	show    func(done, of int64) // receives the progress; may be nil
}

// level works in sections, each of which is committed.
func (l leveling) level(ctx context.Context, conn *pgx.Conn) error {
	for moved := 0; ; {
		var done bool
		err := pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) (err error) {
			if _, err = tx.Exec(ctx, lockLog); err == nil {
				done, err = l.section(ctx, tx)
			}
			return err
		})
		switch {
		case errors.Is(err, journal.ErrMoved) && moved < maxMoved: // by a node that was paused while it had the lock
			moved++
		case err != nil:
			return fmt.Errorf("compare the log with its journal: %w", err)
		case done:
			return nil
		}
	}
}

// section copies one section under the log's lock. done: both are equal.
func (l leveling) section(ctx context.Context, tx pgx.Tx) (done bool, err error) {
	last, _, err := l.journal.Last(ctx)
	if err != nil {
		return false, err
	}
	head, _, err := readHead(tx.Query(ctx, findHead))
	if err != nil {
		return false, err
	}
	switch {
	case last.Position == 0 && head > 0 && !l.fill:
		return false, journal.ErrEmpty
	case last.Position > 0 && head == 0:
		if named, err := l.journal.Named(ctx); err != nil || !named {
			return false, errors.Join(err, journal.ErrUnnamed)
		}
	case head > 0 && last.Position > 0:
		if err := l.compare(ctx, tx, min(head, last.Position)); err != nil {
			return false, err
		}
	}
	if l.show != nil {
		l.show(int64(min(head, last.Position)), int64(max(head, last.Position)))
	}
	switch {
	case head < last.Position:
		l.log.Warn("the log lacks events of its journal; copying them", "head", head, "journal", last.Position)
		return false, l.toLog(ctx, tx, head)
	case head > last.Position:
		l.log.Warn("the journal lacks events of the log; copying them", "head", head, "journal", last.Position)
		return false, l.toJournal(ctx, tx, last.Position)
	default:
		return true, l.bind(ctx, tx)
	}
}

// compare returns an error if the log and the journal have different events at a position.
func (l leveling) compare(ctx context.Context, tx pgx.Tx, at event.Position) error {
	here, err := readEntries(tx.Query(ctx, findEntries, int64(at-1), 1))
	if err != nil {
		return err
	}
	there, found, err := l.journal.At(ctx, at)
	if err == nil && (!found || len(here) != 1 || tlog.LeafHash(here[0].Stored) != tlog.LeafHash(there.Stored)) {
		err = fmt.Errorf("%w, %d", journal.ErrDiverged, at)
	}
	return err
}

func (l leveling) toLog(ctx context.Context, tx pgx.Tx, head event.Position) error {
	for entries, err := range l.journal.After(ctx, head) {
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, insertEntries, entryColumns(entries)...)
		return err
	}
	return journal.ErrMoved // its newest events are unreadable
}

// toJournal appends whole transactions, in groups below the server's usual limit. Only a single transaction may exceed it.
func (l leveling) toJournal(ctx context.Context, tx pgx.Tx, last event.Position) error {
	entries, err := readEntries(tx.Query(ctx, findEntries, int64(last), eventstore.MaxEvents+maxLevel))
	if err != nil {
		return err
	}
	n, bytes := 0, 0
	for i := 0; i < len(entries); {
		size, end := 0, i
		for more := 1; more > 0 && end < len(entries); end++ {
			e := entries[end]
			size += journal.Size(e.Stream, event.Proposed{Type: e.Type, Data: e.Data, Meta: e.Meta})
			more = event.More(e.Meta)
		}
		if n > 0 && (bytes+size > journal.MaxBytes || end > maxLevel) {
			break
		}
		n, bytes, i = end, bytes+size, end
	}
	return l.journal.Append(ctx, last, entries[:n])
}

// bind records the log in the server and the journal in the log. From then on, no node serves one without the other.
func (l leveling) bind(ctx context.Context, tx pgx.Tx) error {
	var bound bool
	err := tx.QueryRow(ctx, `select journal is not distinct from $1 from log.identity`, l.journal.Stream()).Scan(&bound)
	if err != nil || bound {
		return err
	}
	if err := l.journal.Name(ctx); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `update log.identity set journal = $1`, l.journal.Stream())
	return err
}

// readEntries returns the events of findEntries.
func readEntries(rows pgx.Rows, err error) (entries []journal.Entry, _ error) {
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(r pgx.CollectableRow) (e journal.Entry, err error) {
		var position int64
		err = r.Scan(&position, &e.Stream, &e.Revision, &e.ID, &e.Type, &e.Data, &e.Meta, &e.At, &e.OpenEnded)
		e.Position, e.At = event.Position(position), e.At.UTC()
		return e, err
	})
}

// entryColumns returns the arguments of insertEntries.
func entryColumns(entries []journal.Entry) []any {
	var (
		n                            = len(entries)
		positions, revisions         = make([]int64, n), make([]int64, n)
		times                        = make([]time.Time, n)
		ids                          = make([]pgtype.UUID, n)
		open                         = make([]bool, n)
		streams, types, datas, metas = make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	)
	for i, e := range entries {
		positions[i], revisions[i], times[i], ids[i], open[i] = int64(e.Position), e.Revision, e.At, pgUUID(e.ID), e.OpenEnded
		streams[i], types[i], datas[i], metas[i] = e.Stream, e.Type, string(e.Data), string(e.Meta)
	}
	return []any{positions, revisions, times, ids, open, streams, types, datas, metas}
}

// journalError is an error that does not close the appender's connection.
type journalError struct{ error }

func (e *journalError) Unwrap() error { return e.error }

// level makes the log and its journal equal after a new connection of the appender, or an unexpected end of the journal.
func (a *appender) level(ctx context.Context) error {
	if a.journal == nil || a.leveled {
		return nil
	}
	if err := (leveling{journal: a.journal, log: a.log}).level(ctx, a.conn); err != nil {
		return &journalError{err}
	}
	a.leveled, a.head = true, uuid.Nil // the window lacks the copied events
	a.tail.headMoved(0)
	return nil
}

// insertJournaled appends a plan under the log's lock, and to the journal between its insertion and its commit. So Postgres has accepted
// all that reaches the journal, and only a lost connection can prevent the commit.
func (a *appender) insertJournaled(ctx context.Context, p *plan) (at time.Time, err error) {
	rows, _ := a.conn.Query(ctx, insertGroup, p.columns(a.window.head, true)...)
	at, done, err := a.inserted(rows, p)
	if err == nil && !done {
		err = errHeadMoved
	}
	if err != nil {
		return at, err
	}
	entries := make([]journal.Entry, len(p.events))
	for i, e := range p.events {
		e.At = at
		entries[i] = journal.Entry{Stored: e, OpenEnded: p.open[i]}
	}
	a.leveled = false // until both have the group
	if err := a.journal.Append(ctx, a.window.head, entries); err != nil {
		return at, &journalError{err}
	}
	if _, err := a.conn.Exec(ctx, `commit`); err != nil {
		a.conn.Close(ctx) //nolint:errcheck // the next connection gets the group from the journal
		return at, err
	}
	a.leveled = true
	return at, nil
}

// watchJournal checks regularly that the journal is uncut, until the context ends.
func watchJournal(ctx context.Context, j *journal.Journal, log *slog.Logger) {
	for signal.Sleep(ctx, wholeInterval) == nil {
		if err := j.Whole(ctx); err != nil && ctx.Err() == nil {
			log.Error("checking the journal failed", "stream", j.Stream(), "error", err)
		}
	}
}

// openJournal checks a journal and makes the log equal to it.
func openJournal(ctx context.Context, pool *pgxpool.Pool, j *journal.Journal, log *slog.Logger) error {
	if err := j.Whole(ctx); err != nil {
		return err
	}
	return pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) error { return leveling{journal: j, log: log}.level(ctx, conn.Conn()) })
}

// level makes the log and its journal equal after a new connection, which may be to a server that lacked the newest events.
func (s *Store) level(ctx context.Context, conn *pgx.Conn) {
	if j := s.appender.journal; j != nil {
		if err := (leveling{journal: j, log: s.log}).level(ctx, conn); err != nil && ctx.Err() == nil {
			s.log.Warn("comparing the log with its journal failed", "error", err)
		}
	}
}

// restored reports whether the journal gave the log back an event that it had lost.
func (s *Store) restored(ctx context.Context, at event.Position) bool {
	if s.appender.journal == nil {
		return false
	}
	var head event.Position
	err := s.pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) (err error) {
		s.level(ctx, conn.Conn())
		head, _, err = readHead(conn.Query(ctx, findHead))
		return err
	})
	return err == nil && head >= at
}

// CopyToJournal copies the log in the pool's migrated database to a journal that is empty or has a part of the copy, and binds them. From
// then on, no node serves the log without it. No node may serve the log during the copy.
func CopyToJournal(
	ctx context.Context, pool *pgxpool.Pool, server journal.Server, log *slog.Logger, show func(done, of int64),
) (stream string, err error) {
	id, _, err := identify(ctx, pool)
	if err != nil {
		return "", err
	}
	j := journal.New(server, id, log)
	if err := j.Whole(ctx); err != nil {
		return "", err
	}
	l := leveling{journal: j, fill: true, log: slog.New(slog.DiscardHandler), show: show}
	return j.Stream(), pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) error { return l.level(ctx, conn.Conn()) })
}
