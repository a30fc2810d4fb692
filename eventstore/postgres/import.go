package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"bahi/domain/event"
	"bahi/eventstore"
)

// ErrNotEmpty reports that the target log has events.
var ErrNotEmpty = errors.New("the log has events already")

// Import has the events for an empty log: all of another log.
type Import struct {
	// StoreID is the log's new id: that of the log that it replaces, or uuid.Nil for a new id.
	StoreID uuid.UUID
	// Events start at position 1, without gaps in positions or in a stream's revisions.
	Events iter.Seq2[event.Stored, error]
	// Within, if not nil, runs in the same transaction after the events; its error rolls everything back.
	Within func(ctx context.Context, tx pgx.Tx) error
}

// Into fills the log in the pool's migrated database, in one transaction, and returns the log's id. It returns [ErrNotEmpty], or the fault
// of the events. No [Store] may have the log open, because its id changes.
//
// A stored event does not record the expectation of its append. Into marks all events as appended without an exact revision, so a retry
// with any expectation finds them.
func (in Import) Into(ctx context.Context, pool *pgxpool.Pool) (store uuid.UUID, err error) {
	err = pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if store, err = in.into(ctx, tx); err != nil || in.Within == nil {
			return err
		}
		return in.Within(ctx, tx)
	})
	if err != nil {
		return uuid.Nil, fmt.Errorf("import into the event log: %w", err)
	}
	return store, nil
}

func (in Import) into(ctx context.Context, tx pgx.Tx) (store uuid.UUID, err error) {
	for _, sql := range []string{
		lockLog,
		`set local synchronous_commit = on`,
		`set local enable_seqscan = on`, // every event is read
	} {
		if _, err := tx.Exec(ctx, sql); err != nil {
			return store, err
		}
	}
	var head int64
	if err := tx.QueryRow(ctx, `select log.head()`).Scan(&head); err != nil {
		return store, err
	}
	if head > 0 {
		return store, fmt.Errorf("%w, up to position %d; an import fills an empty one", ErrNotEmpty, head)
	}
	id := in.StoreID
	if id == uuid.Nil {
		id = uuid.New()
	}
	if err := tx.QueryRow(ctx, `update log.identity set store_id = $1, journal = null returning store_id`, id).Scan(&store); err != nil {
		return store, err
	}
	return store, withoutIndexes(ctx, tx, func() error { return in.copyEvents(ctx, tx) })
}

func (in Import) copyEvents(ctx context.Context, tx pgx.Tx) error {
	next, stop := iter.Pull2(in.Events)
	defer stop()
	source := &copySource{next: next}
	_, err := tx.CopyFrom(ctx, pgx.Identifier{"log", "event"},
		[]string{"position", "revision", "recorded_at", "id", "open_ended", "stream", "type", "data", "meta"}, source)
	if source.err != nil {
		return source.err // the cause; Postgres reports only that the client gave up
	}
	return err
}

// copySource feeds events to COPY. It checks what an append would check.
type copySource struct {
	next func() (event.Stored, error, bool)
	e    event.Stored // the current event
	err  error
}

// Next implements [pgx.CopyFromSource].
func (s *copySource) Next() bool {
	e, err, more := s.next()
	if !more || err != nil {
		s.err = err
		return false
	}
	switch {
	case e.Position != s.e.Position+1:
		s.err = fmt.Errorf("position %d follows position %d", e.Position, s.e.Position)
	case e.At.Before(s.e.At):
		s.err = fmt.Errorf("position %d was recorded earlier than its predecessor", e.Position)
	case !eventstore.ValidName(e.Stream) || !eventstore.ValidName(e.Type) || e.ID == uuid.Nil:
		s.err = fmt.Errorf("position %d has no id, or an invalid name of a stream or type", e.Position)
	case !eventstore.ValidJSON(e.Data) || !eventstore.ValidJSON(e.Meta):
		s.err = fmt.Errorf("position %d has a payload or metadata that is not JSON in UTF-8", e.Position)
	}
	s.e = e
	return s.err == nil
}

// Values implements [pgx.CopyFromSource].
func (s *copySource) Values() ([]any, error) {
	e := s.e
	return []any{int64(e.Position), e.Revision, e.At, pgUUID(e.ID), true, e.Stream, e.Type, e.Data, e.Meta}, nil
}

// Err implements [pgx.CopyFromSource].
func (s *copySource) Err() error { return s.err }

// withoutIndexes drops the indexes on streams, fills the log, and creates the indexes again. This is faster than
// maintaining them, and the unique ones find faults in the streams.
func withoutIndexes(ctx context.Context, tx pgx.Tx, fill func() error) error {
	const revisions, ids = `event_stream_revision_idx`, `event_stream_id_idx`
	definitions := map[string]string{}
	for _, name := range []string{revisions, ids} {
		var definition string
		if err := tx.QueryRow(ctx, `select pg_get_indexdef(('log.' || $1)::regclass)`, name).Scan(&definition); err != nil {
			return err
		}
		definitions[name] = definition
		if _, err := tx.Exec(ctx, `drop index log.`+name); err != nil {
			return err
		}
	}
	if err := fill(); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, definitions[revisions])
	if double, ok := errors.AsType[*pgconn.PgError](err); ok && isDouble(err) {
		return fmt.Errorf("two events have the same revision in their stream: %s", double.Detail)
	}
	if err != nil {
		return err
	}
	if err := checkRevisions(ctx, tx); err != nil {
		return err
	}
	err = pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { // a savepoint
		_, err := tx.Exec(ctx, definitions[ids])
		return err
	})
	if !isDouble(err) {
		return err
	}
	// An id that occurs twice in one stream means that at most one of the two appends had no exact revision. Which one is unknown. Into
	// takes the first; a retry without an exact revision will find it.
	for _, sql := range []string{`
		update log.event set open_ended = false where position in (
			select position from (
				select position, row_number() over (partition by stream, id order by position) as nth from log.event) e
			where nth > 1)`, definitions[ids]} {
		if _, err := tx.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

func checkRevisions(ctx context.Context, tx pgx.Tx) error {
	var stream string
	err := tx.QueryRow(ctx, `
		select stream from log.event group by stream having min(revision) <> 0 or max(revision) <> count(*) - 1
		order by min(position) limit 1`).Scan(&stream)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("the revisions of stream %s are not 0, 1, 2 and so on", stream)
}
