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

// ErrNotEmpty tells that an import would have to mix two logs.
var ErrNotEmpty = errors.New("the log has events already")

// Import is what an empty log is filled with: the events of another one, as they were there.
type Import struct {
	// StoreID is the log's name from now on: that of the log whose place it takes, or uuid.Nil for a new one.
	StoreID uuid.UUID
	// Events begin at position 1 and have no gap, neither in their positions nor in a stream's revisions.
	Events iter.Seq2[event.Stored, error]
	// Within does more in the same transaction when the events are there; an error undoes all. May be nil.
	Within func(ctx context.Context, tx pgx.Tx) error
}

// Into fills the log in the pool's database, which must be migrated, and which nobody may have open as a
// [Store]: it would go on under the log's old name. All or nothing is done. It answers the log's name,
// [ErrNotEmpty], or what is wrong with the events.
//
// How an event was appended is not told by the event. Each is taken as one that was appended without an exact
// expected revision, so that whichever way somebody appends it once more, it is found to be there.
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
		`set local enable_seqscan = on`, // the whole log is looked at
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
	if err := tx.QueryRow(ctx, `update log.identity set store_id = $1 returning store_id`, id).Scan(&store); err != nil {
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
		return source.err // Postgres only says that we gave up
	}
	return err
}

// copySource hands events to COPY, and checks what an append would have checked.
type copySource struct {
	next func() (event.Stored, error, bool)
	e    event.Stored // the newest
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
		s.err = fmt.Errorf("position %d was recorded before the one before it", e.Position)
	case !eventstore.Nameable(e.Stream) || !eventstore.Nameable(e.Type) || e.ID == uuid.Nil:
		s.err = fmt.Errorf("position %d has no id, or a stream or type that is no name", e.Position)
	case !eventstore.Storable(e.Data) || !eventstore.Storable(e.Meta):
		s.err = fmt.Errorf("position %d has a payload or metadata that are not JSON in UTF-8", e.Position)
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

// withoutIndexes takes the indexes of streams away, fills the log, and makes them again, as the migrations
// define them: that is faster than to keep them up to date, and tells what is wrong with the streams.
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
		return fmt.Errorf("two events have one place in their stream: %s", double.Detail)
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
	// A stream that has an id twice had it appended with exact revisions, but for once at most. Which of them
	// was that one is not known; the first is what whoever appends it once more is answered.
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
