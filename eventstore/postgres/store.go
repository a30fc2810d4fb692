// Package postgres keeps the event log in a Postgres database: dense positions in commit order, group commit,
// subscriptions served from memory.
//
// A position is assigned inside the append's transaction, under a lock that is held until the commit. So positions have no gaps, and
// position order is commit order: a reader that has seen position N has seen everything up to N. The order of sequences and transaction ids
// is not commit order. A reader that restores the commit order from them skips events or stalls.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/journal"
)

// A read's first query fetches few events, because many readers need only one. Each further query fetches more, up to maxChunkBytes.
const (
	firstChunk    = 64
	maxChunk      = 4096
	maxChunkBytes = 4 << 20
)

// Store is the log. [Open] it once per process.
type Store struct {
	id       uuid.UUID
	pool     *pgxpool.Pool
	log      *slog.Logger
	tail     *tail
	appender *appender
	server   journal.Server // nil: none
	stop     context.CancelFunc
	running  sync.WaitGroup
}

var _ eventstore.Store = (*Store)(nil)

// Open opens the log in the pool's migrated database. Close it before the pool. It refuses a log that has a journal.
func Open(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger) (*Store, error) {
	return open(ctx, pool, log, defaultTimeouts, nil)
}

// OpenJournaled opens the log and its journal in a server and makes them equal. Appends go to both. Close closes the server, too.
func OpenJournaled(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger, server journal.Server) (*Store, error) {
	return open(ctx, pool, log, defaultTimeouts, server)
}

func open(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger, p timeouts, server journal.Server) (s *Store, err error) {
	defer func() {
		if err != nil && server != nil {
			server.Close()
		}
	}()
	s = &Store{pool: pool, log: log, tail: newTail()}
	var bound bool
	if s.id, bound, err = identify(ctx, pool); err == nil && bound && server == nil {
		err = errNoJournal
	}
	if err != nil {
		return nil, fmt.Errorf("open the event log: %w", err)
	}
	var j *journal.Journal
	if server != nil {
		j = journal.New(server, s.id, log)
		if err := openJournal(ctx, pool, j, log); err != nil {
			return nil, fmt.Errorf("open the event log: %w", err)
		}
		p.answer += journal.MaxWait
	}
	ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	s.appender = newAppender(ctx, pool.Config().ConnConfig.Copy(), p, s.tail, log)
	if s.appender.journal, s.server = j, server; j != nil {
		s.running.Go(func() { watchJournal(ctx, j, log) })
	}
	s.running.Go(func() { s.appender.run() })
	s.running.Go(func() { sendNotices(ctx, pool, s.tail, s.appender.done, log) })
	s.running.Go(func() { listen(ctx, pool.Config().ConnConfig.Copy(), p, s.tail, log, s.level) })
	return s, nil
}

// identify returns the log's id, and whether it has a journal.
func identify(ctx context.Context, pool *pgxpool.Pool) (id uuid.UUID, bound bool, err error) {
	err = pool.QueryRow(ctx, `select store_id, journal is not null from log.identity`).Scan(&id, &bound)
	return id, bound, err
}

// Close ends subscriptions, finishes the group in progress, and refuses the appends that still wait.
func (s *Store) Close() {
	s.stop()
	s.running.Wait()
	if s.server != nil {
		s.server.Close()
	}
}

// ID implements [eventstore.Store].
func (s *Store) ID() uuid.UUID { return s.id }

// Head implements [eventstore.Store].
func (s *Store) Head(ctx context.Context) (event.Position, error) {
	var head int64
	err := s.pool.QueryRow(ctx, `select coalesce((select position from log.event order by position desc limit 1), 0)`).Scan(&head)
	if err != nil {
		return 0, fmt.Errorf("read the log's head: %w", err)
	}
	s.appender.sees(event.Position(head))
	return event.Position(head), nil
}

// PositionAt implements [eventstore.Store].
func (s *Store) PositionAt(ctx context.Context, at time.Time) (event.Position, error) {
	var found int64
	err := s.pool.QueryRow(ctx, `select log.position_at($1)`, at).Scan(&found)
	if err != nil {
		return 0, fmt.Errorf("find the position of %s: %w", at, err)
	}
	return event.Position(found), nil
}

// ReadStream implements [eventstore.Store].
func (s *Store) ReadStream(ctx context.Context, stream string, from int64, direction eventstore.Direction) iter.Seq2[event.Stored, error] {
	sql := `select ` + columns + ` from log.event where stream = $1 and revision >= $2 order by revision limit $3`
	step := int64(1)
	if direction == eventstore.Backwards {
		sql = `select ` + columns + ` from log.event where stream = $1 and revision <= $2 order by revision desc limit $3`
		step = -1
	}
	return func(yield func(event.Stored, error) bool) {
		if !eventstore.ValidName(stream) {
			return // no stream has such a name, and Postgres would reject the query
		}
		for next, limit, more := from, begins(direction), true; more; {
			var (
				batch []event.Stored
				err   error
			)
			if batch, more, err = s.read(ctx, &limit, sql, stream, next); err != nil {
				yield(event.Stored{}, fmt.Errorf("read stream %s: %w", stream, err))
				return
			}
			for _, e := range batch {
				if !yield(e, nil) {
					return
				}
				next = e.Revision + step
			}
		}
	}
}

// ReadAll implements [eventstore.Store].
func (s *Store) ReadAll(ctx context.Context, from event.Position, direction eventstore.Direction) iter.Seq2[event.Stored, error] {
	return func(yield func(event.Stored, error) bool) {
		for next, limit, more := from, begins(direction), true; more; {
			var (
				batch []event.Stored
				err   error
			)
			if batch, more, err = s.readAll(ctx, &limit, next, direction); err != nil {
				yield(event.Stored{}, err)
				return
			}
			for _, e := range batch {
				if !yield(e, nil) {
					return
				}
				next = e.Position
			}
		}
	}
}

var _ eventstore.FilteredReader = (*Store)(nil)

// sparingSection is the number of positions that one statement of ReadExcluding covers.
const sparingSection = 50_000

// ReadExcluding implements [eventstore.FilteredReader].
func (s *Store) ReadExcluding(ctx context.Context, after, upTo event.Position, without []string) iter.Seq2[event.Stored, error] {
	return s.readSections(ctx, after, upTo, without, sparingSection)
}

func (s *Store) readSections(ctx context.Context, after, upTo event.Position, without []string,
	section event.Position) iter.Seq2[event.Stored, error] {
	const sql = `select ` + columns + ` from log.event where position > $1 and position <= $2 and (position = $2 or type <> ` +
		`all($3::text[])) order by position limit $4`
	return func(yield func(event.Stored, error) bool) {
		limit := firstChunk
		for next := after; next < upTo; {
			end := min(next+section, upTo)
			// A plan for these exact types looks up each in a table. A generic plan would compare an event's type with all of them.
			batch, more, err := s.read(ctx, &limit, sql, pgx.QueryExecModeCacheDescribe, int64(next), int64(end), without)
			if err != nil {
				yield(event.Stored{}, fmt.Errorf("read the log from %d: %w", next, err))
				return
			}
			for _, e := range batch {
				if !yield(e, nil) {
					return
				}
				next = e.Position
			}
			if !more && next < end { // the log ends before it
				return
			}
		}
	}
}

// begins returns the size of a read's first chunk. A backward read mostly needs one event, and others may have a megabyte each.
func begins(d eventstore.Direction) int {
	if d == eventstore.Backwards {
		return 1
	}
	return firstChunk
}

func (s *Store) readAll(ctx context.Context, limit *int, from event.Position, direction eventstore.Direction) ([]event.Stored,
	bool, error) {
	sql := `select ` + columns + ` from log.event where position > $1 order by position limit $2`
	if direction == eventstore.Backwards {
		sql = `select ` + columns + ` from log.event where position < $1 order by position desc limit $2`
	}
	batch, more, err := s.read(ctx, limit, sql, int64(min(from, eventstore.End)))
	if err != nil {
		return nil, false, fmt.Errorf("read the log from %d: %w", from, err)
	}
	return batch, more, nil
}

// read returns the next chunk, reports whether more may follow, and adapts limit to the size of the events.
func (s *Store) read(ctx context.Context, limit *int, sql string, args ...any) (batch []event.Stored, more bool, err error) {
	rows, err := s.pool.Query(ctx, sql, slices.Concat([]any{inBinary}, args, []any{*limit})...)
	if err != nil {
		return nil, false, err
	}
	defer rows.Close()
	if *limit > firstChunk { // the previous chunk was full
		batch = make([]event.Stored, 0, *limit)
	}
	var r row
	defer func() { s.appender.sees(r.Position) }()
	for bytes := 0; rows.Next(); {
		if err := rows.Scan(&r); err != nil {
			return nil, false, err
		}
		batch = append(batch, r.Stored)
		if bytes += len(r.Data) + len(r.Meta); bytes > maxChunkBytes {
			*limit = len(batch)
			return batch, true, nil
		}
	}
	more = len(batch) == *limit
	if *limit = min(8**limit, maxChunk); !more {
		*limit = firstChunk
	}
	return batch, more, rows.Err()
}

// Append implements [eventstore.Store].
func (s *Store) Append(ctx context.Context, t eventstore.Transaction) (eventstore.Appended, error) {
	r := s.AppendEach(ctx, []eventstore.Transaction{t})[0]
	return r.Appended, r.Err
}

// AppendEach implements [eventstore.Store].
func (s *Store) AppendEach(ctx context.Context, all []eventstore.Transaction) []eventstore.Result {
	results := make([]eventstore.Result, len(all))
	waiting := make([]*pending, len(all))
	for i, t := range all {
		if waiting[i], results[i].Err = newPending(ctx, t); results[i].Err == nil {
			results[i].Err = s.appender.enqueue(waiting[i])
		}
	}
	for i := range all {
		if results[i].Err == nil {
			results[i] = s.appender.result(waiting[i])
		}
	}
	return results
}

// Subscribe implements [eventstore.Store].
func (s *Store) Subscribe(ctx context.Context, after event.Position) iter.Seq2[eventstore.Batch, error] {
	return s.SubscribeDelayed(ctx, after, eventstore.DeliveryDelay{
		For: func([]event.Stored) time.Duration { return 0 }, Over: func() <-chan struct{} { return nil },
	})
}

var _ eventstore.DelayedSubscriber = (*Store)(nil)

// SubscribeDelayed implements [eventstore.DelayedSubscriber].
func (s *Store) SubscribeDelayed(ctx context.Context, after event.Position, p eventstore.DeliveryDelay) iter.Seq2[eventstore.Batch, error] {
	return func(yield func(eventstore.Batch, error) bool) {
		var (
			next, last = after, uuid.Nil // last is the id of the event at next, once it was yielded
			looked     int
			limit      = firstChunk
			more       bool // events follow the last query's result, perhaps without a notice
		)
		// take returns the next events, from memory or by a query.
		take := func() ([]event.Stored, error) {
			batch, known := s.tail.after(next, &looked)
			if known && (!more || len(batch) > 0) {
				return batch, nil
			}
			batch, found, err := s.look(ctx, &limit, next, last)
			more = found
			return batch, err
		}
		for {
			if ctx.Err() != nil { // even while the log is busy
				yield(eventstore.Batch{}, ctx.Err())
				return
			}
			over := p.Over()
			w := s.tail.wait(p.For) // before the query, so that no change is missed
			batch, err := take()
			if err == nil {
				batch, err = s.whole(ctx, batch)
			}
			if err == nil && len(batch) == 0 {
				select {
				case <-ctx.Done():
					err = ctx.Err()
				case <-s.appender.done:
					err = errClosed
				case <-w.wake:
				case <-over:
				}
			}
			s.tail.leave(w)
			switch {
			case err != nil:
				yield(eventstore.Batch{}, err)
				return
			case len(batch) == 0:
			case batch[0].Position != next+1:
				yield(eventstore.Batch{}, fmt.Errorf("the log is damaged: position %d is followed by %d", next, batch[0].Position))
				return
			default:
				next, last = batch[len(batch)-1].Position, batch[len(batch)-1].ID
				s.appender.sees(next)
				if !yield(eventstore.Batch{Events: batch, UpTo: next}, nil) {
					return
				}
			}
		}
	}
}

// whole returns a batch with the rest of its last transaction.
func (s *Store) whole(ctx context.Context, batch []event.Stored) ([]event.Stored, error) {
	if len(batch) == 0 {
		return batch, nil
	}
	last := batch[len(batch)-1]
	next, end := last.Position, last.Position+event.Position(event.More(last.Meta))
	for batch = slices.Clip(batch); next < end; next = batch[len(batch)-1].Position {
		limit := int(end - next)
		rest, _, err := s.readAll(ctx, &limit, next, eventstore.Forwards)
		if err != nil || len(rest) == 0 { // another program's metadata may announce more events than follow
			return batch, err
		}
		batch = append(batch, rest...)
	}
	return batch, nil
}

// followed returns the event at a position, without its payload, and those after it.
const followed = `
	select position, stream, revision, id, type,
		case when position > $1 then data else '{}' end, case when position > $1 then meta else '{}' end, recorded_at
	from log.event where position >= $1 order by position limit $2`

// look returns the events after a position, and reports whether more may follow. The same query reads the event at the position. look
// returns ErrTailLost if that event is missing, or its id is not the known one.
func (s *Store) look(ctx context.Context, limit *int, at event.Position, id uuid.UUID) (batch []event.Stored, more bool, err error) {
	if at >= eventstore.End { // position 0 never has an event
		return nil, false, nil
	}
	announced, newest := s.tail.announced(), event.Position(0)
	*limit = max(*limit, 2) // one for the event at the position
	if batch, more, err = s.read(ctx, limit, followed, int64(at)); err != nil {
		return nil, false, fmt.Errorf("read the log from %d: %w", at, err)
	}
	if n := len(batch); n > 0 {
		newest = batch[n-1].Position
	}
	if !more && newest < announced { // a notice announced more: this server lags behind the one that sent it
		s.tail.reset()
	}
	if at == 0 {
		return batch, more, nil
	}
	if (len(batch) == 0 || batch[0].Position != at) && s.restored(ctx, at) {
		return s.look(ctx, limit, at, id)
	}
	if len(batch) == 0 || batch[0].Position != at || id != uuid.Nil && batch[0].ID != id {
		return nil, false, fmt.Errorf("follow the log after position %d: %w", at, eventstore.ErrTailLost)
	}
	return batch[1:], more, nil
}

var (
	errClosed   = errors.New("the event log is closed")
	errTooOften = errors.New("the stream changed, or the connection was lost, at every try")
)
