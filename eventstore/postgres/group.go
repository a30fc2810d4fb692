package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"bahi/domain/event"
	"bahi/eventstore"
)

const (
	// maxRevision is greater than any revision, and adding to it does not overflow.
	maxRevision = int64(1) << 62
)

const (
	// lockLog holds the log's lock until the commit. Each later statement has its own snapshot, and so sees all earlier appends.
	lockLog = `select pg_advisory_xact_lock(8241001)`

	// insertGroup inserts a group's events after the head $1, at which it was validated. It inserts nothing if the log has another head, or
	// another process holds the exclusive lock. Several processes may insert at once under the shared lock: the primary key on position
	// accepts one of them. $1 is committed, so position order remains commit order. A subquery tries the lock once: a try per row could
	// succeed half-way. $9: this process has the exclusive lock.
	insertGroup = `
		insert into log.event (position, revision, recorded_at, id, open_ended, stream, type, data, meta)
		select $1 + n, u.revision, greatest(head.recorded_at, now), u.id, u.open_ended, u.stream, u.type, u.data::json, u.meta::json
		from unnest($2::text[], $3::bigint[], $4::uuid[], $5::bool[], $6::text[], $7::text[], $8::text[])
				with ordinality u (stream, revision, id, open_ended, type, data, meta, n),
			clock_timestamp() now,
			(select 1) always left join (select position, recorded_at from log.event order by position desc limit 1) head on true
		where coalesce(head.position, 0) = $1 and ($9 or (select pg_try_advisory_xact_lock_shared(8241001)))
		order by n
		returning recorded_at`

	// findHead returns the newest event; findAfter returns a known event and those after it.
	findHead  = `select position, id from log.event order by position desc limit 1`
	findAfter = `select position, id, stream, revision from log.event where position >= $1 order by position limit $2`

	// findRevisions returns the last revision of each stream, -1 if it does not exist.
	findRevisions = `
		select stream, coalesce((select e.revision from log.event e where e.stream = u.stream order by e.revision desc limit 1), -1)
		from unnest($1::text[]) u (stream)`

	// findKnown returns the events that were appended earlier without an exact revision.
	findKnown = `
		select e.stream, e.id from unnest($1::text[], $2::uuid[]) u (stream, id)
		join log.event e on e.stream = u.stream and e.id = u.id and e.open_ended`

	// findLost returns the ids of events that are not at their positions.
	findLost = `
		select u.id from unnest($1::bigint[], $2::uuid[]) u (position, id) left join log.event e on e.position = u.position
		where e.id is distinct from u.id`

	// findExact and findOpen return the events of a write that are in the log at the expected revisions, in order.
	findExact = `
		select e.position, e.revision, e.recorded_at from unnest($2::uuid[]) with ordinality a (id, n)
		join log.event e on e.stream = $1 and e.revision = $3 + a.n and e.id = a.id
		order by a.n`
	findOpen = `
		select e.position, e.revision, e.recorded_at from unnest($2::uuid[]) with ordinality a (id, n)
		join log.event e on e.stream = $1 and e.id = a.id and e.open_ended
		order by a.n`
)

// calm is the number of successive undisturbed groups after which a process assumes that it is the only writer.
const calm = 16

// maxCatchUp limits how many events of other processes a window adds.
const maxCatchUp = 4096

// attempt appends a group. It sends the callers their results and returns the transactions to retry. If it returns an error, no caller has
// a result. Then nothing was appended if the connection is still open; otherwise (a.conn is nil) the outcome is unknown.
func (a *appender) attempt(ctx context.Context, group []*pending) (again []*pending, err error) {
	answer, cancel := context.WithTimeout(ctx, a.timeouts.answer)
	defer cancel()
	if err = a.level(ctx); err != nil {
		return nil, a.broken(err)
	}
	var p *plan
	if a.journal == nil && a.undisturbed >= calm && a.head != uuid.Nil {
		p = a.plan(group, nil)
	}
	at, done := time.Time{}, false
	if p != nil && !p.undecided {
		at, done, err = a.insertCalm(answer, p)
	}
	if err == nil && !done {
		p, at, err = a.insertLocked(answer, group)
	}
	if err != nil {
		return nil, a.broken(err)
	}
	a.conclude(p, at)
	return a.explain(ctx, p), nil
}

// insertCalm appends a plan if no other process has appended since the last group. done is false if one has.
func (a *appender) insertCalm(ctx context.Context, p *plan) (at time.Time, done bool, err error) {
	if len(p.events) == 0 {
		head, _, err := readHead(a.conn.Query(ctx, findHead))
		return at, head == a.window.head, err
	}
	rows, _ := a.conn.Query(ctx, insertGroup, p.columns(a.window.head, false)...)
	at, done, err = a.inserted(rows, p)
	if isDouble(err) { // another process took the position; or an event is already in its stream, which the locked attempt finds
		return at, false, nil
	}
	return at, done, err
}

// inserted returns when a plan's events were recorded; done is false if none were inserted.
func (a *appender) inserted(rows pgx.Rows, p *plan) (at time.Time, done bool, err error) {
	n := 0
	_, err = pgx.ForEachRow(rows, []any{&at}, func() error {
		n++
		return nil
	})
	if err == nil && n != 0 && n != len(p.events) {
		return at, false, fmt.Errorf("%d of %d events were inserted", n, len(p.events))
	}
	return at.UTC(), n > 0, err
}

// insertLocked appends a group under the log's exclusive lock, so that the head cannot move between its validation and its commit.
func (a *appender) insertLocked(ctx context.Context, group []*pending) (p *plan, at time.Time, err error) {
	defer func() {
		if a.locked = false; err != nil {
			a.unlock(ctx)
		}
	}()
	looked, err := a.lockAndLook(ctx, group)
	if err != nil {
		return nil, at, err
	}
	p = a.plan(group, looked)
	if a.journal != nil && len(p.events) > 0 {
		at, err = a.insertJournaled(ctx, p)
		return p, at, err
	}
	batch := &pgx.Batch{}
	if len(p.events) > 0 {
		batch.Queue(insertGroup, p.columns(a.window.head, true)...)
	}
	batch.Queue(`commit`)
	answers := a.conn.SendBatch(ctx, batch)
	if len(p.events) > 0 {
		var done bool
		rows, _ := answers.Query()
		if at, done, err = a.inserted(rows, p); err == nil && !done {
			err = errHeadMoved
		}
	}
	if err == nil {
		_, err = answers.Exec()
	}
	if closeErr := answers.Close(); err == nil {
		err = closeErr
	}
	return p, at, err
}

// errHeadMoved reports that the log's lock does not keep others from appending.
var errHeadMoved = errors.New("the log's head moved while its lock was held")

// lockAndLook begins a transaction with the log's lock unless the connection has one. It adds the events of other processes to the window,
// and looks up the streams that the window lacks.
func (a *appender) lockAndLook(ctx context.Context, group []*pending) (*lookedUp, error) {
	head, known := a.window.head, a.head != uuid.Nil
	var unknown, streams []string
	var ids []pgtype.UUID
	for _, m := range group {
		for c, asOf := range m.streams {
			if _, changed := a.window.last[c.Stream]; !known || !changed && !a.window.trusts(c.Expected, asOf) {
				unknown = append(unknown, c.Stream)
			}
		}
		if m.open() {
			for _, e := range m.Writes[0].Events {
				streams, ids = append(streams, m.Writes[0].Stream), append(ids, pgUUID(e.ID))
			}
		}
	}
	batch := &pgx.Batch{}
	begins := 0
	if !a.locked {
		batch.Queue(`begin`)
		batch.Queue(lockLog)
		begins = 2
	}
	if known {
		batch.Queue(findAfter, int64(head), maxCatchUp+1)
	}
	batch.Queue(findHead)
	batch.Queue(findRevisions, unknown)
	batch.Queue(findKnown, streams, ids)
	answers := a.conn.SendBatch(ctx, batch)
	defer answers.Close() //nolint:errcheck // of reads
	for range begins {
		if _, err := answers.Exec(); err != nil {
			return nil, err
		}
	}
	attached := false
	if known {
		var err error
		if attached, err = a.catchUp(answers.Query()); err != nil {
			return nil, err
		}
	}
	newest, id, err := readHead(answers.Query())
	if err != nil {
		return nil, err
	}
	looked := &lookedUp{repeated: map[appendedEvent]bool{}}
	if looked.revisions, err = readRevisions(answers.Query()); err != nil {
		return nil, err
	}
	rows, _ := answers.Query()
	var e appendedEvent
	if _, err := pgx.ForEachRow(rows, []any{&e.stream, &e.id}, func() error {
		looked.repeated[e] = true
		return nil
	}); err != nil {
		return nil, err
	}
	if err := answers.Close(); err != nil {
		return nil, err
	}
	if a.undisturbed++; newest != head {
		a.undisturbed, a.shared = 0, known
	}
	a.head = id
	if attached && a.window.head == newest {
		return looked, a.findLost(ctx, group, looked)
	}
	// A state that was read earlier may include events that the log has lost since, up to the greatest position seen.
	a.window.reset(newest, max(newest, event.Position(a.seen.Load())+1))
	if err := a.findLost(ctx, group, looked); err != nil || !known { // not known: all streams were looked up
		return looked, err
	}
	var all []string
	for _, m := range group {
		for c := range m.streams {
			all = append(all, c.Stream)
		}
	}
	looked.revisions, err = readRevisions(a.conn.Query(ctx, findRevisions, all))
	return looked, err
}

// findLost finds the transactions with an AsOfID that the log has lost.
func (a *appender) findLost(ctx context.Context, group []*pending, looked *lookedUp) error {
	var positions []int64
	var ids []pgtype.UUID
	for _, m := range group {
		if !m.isRecent(&a.window) {
			positions, ids = append(positions, int64(m.AsOf)), append(ids, pgUUID(m.AsOfID))
		}
	}
	if len(ids) == 0 {
		return nil
	}
	looked.lost = map[uuid.UUID]bool{}
	rows, _ := a.conn.Query(ctx, findLost, positions, ids)
	var id uuid.UUID
	_, err := pgx.ForEachRow(rows, []any{&id}, func() error {
		looked.lost[id] = true
		return nil
	})
	return err
}

// catchUp adds other processes' events to the window. It returns false if the log no longer has the event at the window's head.
func (a *appender) catchUp(rows pgx.Rows, _ error) (attached bool, err error) {
	var (
		position int64
		id       uuid.UUID
		c        change
	)
	attached = a.window.head == 0
	_, err = pgx.ForEachRow(rows, []any{&position, &id, &c.stream, &c.revision}, func() error {
		switch {
		case event.Position(position) == a.window.head:
			attached = id == a.head
		case attached && event.Position(position) == a.window.head+1:
			a.window.add(c.stream, c.revision)
		}
		return nil
	})
	return attached, err
}

func readHead(rows pgx.Rows, _ error) (head event.Position, id uuid.UUID, err error) {
	var position int64
	_, err = pgx.ForEachRow(rows, []any{&position, &id}, func() error { return nil })
	return event.Position(position), id, err
}

func readRevisions(rows pgx.Rows, _ error) (map[string]int64, error) {
	revisions := map[string]int64{}
	var (
		stream   string
		revision int64
	)
	_, err := pgx.ForEachRow(rows, []any{&stream, &revision}, func() error {
		revisions[stream] = revision
		return nil
	})
	return revisions, err
}

// conclude passes appended events to subscribers and sends the results of the accepted transactions.
func (a *appender) conclude(p *plan, at time.Time) {
	position := a.window.head
	if n := len(p.events); n > 0 {
		for i := range p.events {
			p.events[i].At = at
			a.window.add(p.events[i].Stream, p.events[i].Revision)
		}
		a.head = p.events[n-1].ID
		a.sees(a.window.head)
		a.tail.committed(p.events)
	}
	a.window.trim()
	next := 0
	for _, m := range p.accepted {
		done := eventstore.Appended{Position: position}
		if m.events > 0 {
			first, last := p.events[next], p.events[next+m.events-1]
			done = eventstore.Appended{First: first.Position, Position: last.Position, Revision: last.Revision, At: last.At}
			next, position = next+m.events, last.Position
		}
		m.reply <- eventstore.Result{Appended: done}
	}
}

// sees records a position that this process has seen.
func (a *appender) sees(position event.Position) {
	for old := a.seen.Load(); uint64(position) > old && !a.seen.CompareAndSwap(old, uint64(position)); old = a.seen.Load() {
	}
}

// explain sends a result for each transaction that a plan refused: the first result if an earlier call appended the transaction, otherwise
// the violated expectation. It returns the transactions that it could not look up, because the connection was lost.
func (a *appender) explain(ctx context.Context, p *plan) (again []*pending) {
	for i, m := range p.refused {
		if a.conn == nil { // lost while explaining the previous one
			again = append(again, m)
			continue
		}
		done, found, err := a.find(ctx, m)
		switch {
		case err != nil:
			a.log.Warn("looking up an earlier append failed; retrying", "error", a.broken(err))
			again = append(again, m)
		case found:
			m.reply <- eventstore.Result{Appended: done}
		default:
			m.fail(p.wrong[i])
		}
	}
	return again
}

// find returns the outcome of a transaction if all of its events are where they would have been inserted.
func (a *appender) find(ctx context.Context, p *pending) (done eventstore.Appended, found bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, a.timeouts.ask)
	defer cancel()
	for i, w := range p.Writes {
		here, found, err := a.findWrite(ctx, w)
		if err != nil || !found {
			return done, false, err
		}
		if i > 0 {
			here.First = done.First
		}
		done = here
	}
	return done, len(p.Writes) > 0, nil
}

// findWrite returns the outcome of a write if all of its events are there and adjacent.
func (a *appender) findWrite(ctx context.Context, w eventstore.Write) (done eventstore.Appended, found bool, err error) {
	ids := make([]uuid.UUID, len(w.Events))
	for i, e := range w.Events {
		ids[i] = e.ID
	}
	sql, args := findOpen, []any{w.Stream, ids}
	if w.Expected >= eventstore.NoStream {
		sql, args = findExact, append(args, min(int64(w.Expected), maxRevision))
	}
	var position, revision int64
	var at time.Time
	n := 0
	rows, _ := a.conn.Query(ctx, sql, args...)
	_, err = pgx.ForEachRow(rows, []any{&position, &revision, &at}, func() error {
		if n == 0 {
			done.First = event.Position(position)
		}
		if n == 0 || revision == done.Revision+1 {
			n++
		}
		done = eventstore.Appended{First: done.First, Position: event.Position(position), Revision: revision, At: at.UTC(), Replayed: true}
		return nil
	})
	return done, n == len(ids), err
}

// broken disconnects if err means that the connection is lost, the server is shutting down, or the server is
// read-only. It returns err.
func (a *appender) broken(err error) error {
	server, answered := errors.AsType[*pgconn.PgError](err)
	_, journals := errors.AsType[*journalError](err)
	if !a.conn.IsClosed() && (journals || answered && !strings.HasPrefix(server.Code, "57P") && server.Code != "25006") {
		return err
	}
	a.disconnect()
	return err
}

// concernsData reports whether the server rejected the data: data exceptions (class 22), constraint violations
// (23), statements that are too complex (54). The journal rejects what is too large.
func concernsData(err error) bool {
	server, answered := errors.AsType[*pgconn.PgError](err)
	return errors.Is(err, eventstore.ErrBadEvent) || answered &&
		(strings.HasPrefix(server.Code, "22") || strings.HasPrefix(server.Code, "23") || strings.HasPrefix(server.Code, "54"))
}

// isDouble reports whether err is a unique violation.
func isDouble(err error) bool {
	server, answered := errors.AsType[*pgconn.PgError](err)
	return answered && server.Code == "23505"
}
