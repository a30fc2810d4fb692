package postgres

import (
	"context"
	"errors"
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

// check rejects what Postgres would reject in the middle of a group that other callers share.
func check(r eventstore.Request) error { return r.Check(maxGroupEvents) }

const (
	// lockLog holds the log's lock until the commit. Each later statement has its own snapshot, and so sees all
	// earlier appends.
	lockLog = `select pg_advisory_xact_lock(8241001)`

	// appendGroup inserts those appends of a group whose streams match. The arrays have one element per event. The
	// events of one append are adjacent and share $3 (expected) and $4 (id of its first event): all are inserted,
	// or none.
	appendGroup = `
		with head as materialized (
			select position, recorded_at from log.event order by position desc limit 1
		)
		insert into log.event (position, revision, recorded_at, id, open_ended, stream, type, data, meta)
		select
			coalesce((select position from head), 0) + row_number() over (order by n),
			current + nth,
			greatest((select recorded_at from head), now),
			id, expected < -1, stream, type, data::json, meta::json
		from (
			select u.*, coalesce((
				select e.revision from log.event e where e.stream = u.stream order by e.revision desc limit 1), -1) as current
			from unnest($1::int[], $2::text[], $3::bigint[], $4::uuid[], $5::uuid[], $6::text[], $7::text[], $8::text[])
				with ordinality u (nth, stream, expected, first_id, id, type, data, meta, n)
		) asked, clock_timestamp() now
		where expected = current
			or expected < -1 and (expected = -2 or current >= 0) and not exists (
				select from log.event e where e.open_ended and e.stream = asked.stream and e.id = first_id)
		order by n
		returning position, revision, recorded_at, stream`

	// appendOne is appendGroup for a single event, the usual case of a lone client. Its plan is half as large, which
	// saves a fifth of the time.
	appendOne = `
		insert into log.event (position, revision, recorded_at, id, open_ended, stream, type, data, meta)
		select coalesce(head.position, 0) + 1, current + 1, greatest(head.recorded_at, clock_timestamp()),
			$3, $2::bigint < -1, $1, $4, $5::json, $6::json
		from (select coalesce((
				select e.revision from log.event e where e.stream = $1 order by e.revision desc limit 1), -1) as current) asked
			left join (select position, recorded_at from log.event order by position desc limit 1) head on true
		where $2::bigint = current
			or $2 < -1 and ($2 = -2 or current >= 0) and not exists (
				select from log.event e where e.open_ended and e.stream = $1 and e.id = $3)
		returning position, revision, recorded_at, stream`

	// appendNext inserts a single event right after the newest known one ($1 - 1) if the log's exclusive lock is
	// free. Several processes may do so at once under the shared lock: the primary key on position accepts one of
	// them, and as $1 follows an event that is known to be committed, position order remains commit order. If the
	// position is taken or the stream does not match, it inserts nothing, and appendOne finds out why. Saving
	// lockLog saves a lone client a third of its time.
	appendNext = `
		insert into log.event (position, revision, recorded_at, id, open_ended, stream, type, data, meta)
		select $1::bigint, $2::bigint, greatest($3, clock_timestamp()), $4::uuid, false, $5::text, $6, $7::json, $8::json
		where pg_try_advisory_xact_lock_shared(8241001)
			and ($2 = 0 or exists (select from log.event where stream = $5 and revision = $2 - 1))
		on conflict do nothing
		returning position, revision, recorded_at, stream`

	// findExact and findOpen return the events of an append that are in the log at the expected place, in order,
	// and the stream's last revision.
	findExact = `
		select e.position, e.revision, e.recorded_at, ` + lastRevision + `
		from unnest($2::uuid[]) with ordinality a (id, n)
		left join log.event e on e.stream = $1 and e.revision = $3 + a.n and e.id = a.id
		order by a.n`
	findOpen = `
		select e.position, e.revision, e.recorded_at, ` + lastRevision + `
		from unnest($2::uuid[]) with ordinality a (id, n)
		left join log.event e on e.stream = $1 and e.id = a.id and e.open_ended
		order by a.n`
	lastRevision = `coalesce((select l.revision from log.event l where l.stream = $1 order by l.revision desc limit 1), -1)`
)

// placed is the place of an appended event.
type placed struct {
	position int64
	revision int64
	at       time.Time
	stream   string
}

// attempt appends a group in one transaction and one round trip. It sends the callers their results and returns
// the appends to retry. If it returns an error, no caller has a result: nothing was appended if the connection
// is still open; otherwise (a.conn is nil) the outcome is unknown.
func (a *appender) attempt(ctx context.Context, group []*pending) (again []*pending, err error) {
	done, err := a.send(ctx, group)
	if err != nil {
		return nil, a.broken(err)
	}
	return a.explain(ctx, a.conclude(group, done)), nil
}

func (a *appender) send(ctx context.Context, group []*pending) (done []placed, err error) {
	ctx, cancel := context.WithTimeout(ctx, a.timeouts.answer)
	defer cancel()
	single := len(group) == 1 && len(group[0].Events) == 1
	if single && group[0].Expected >= eventstore.NoStream && a.undisturbed >= calm {
		if done, err = a.sendNext(ctx, group[0]); err != nil || len(done) > 0 {
			return done, err
		}
	}
	batch := &pgx.Batch{}
	batch.Queue(lockLog)
	if single {
		p, e := group[0], group[0].Events[0]
		batch.Queue(appendOne, p.Stream, int64(p.Expected), e.ID, e.Type, string(e.Data), string(e.Meta))
	} else {
		batch.Queue(appendGroup, columnsOf(group)...)
	}
	answers := a.conn.SendBatch(ctx, batch)
	if _, err = answers.Exec(); err == nil {
		rows, _ := answers.Query()
		done, err = pgx.CollectRows(rows, scanPlaced)
	}
	if closeErr := answers.Close(); err == nil { // its error is that of the commit
		err = closeErr
	}
	return done, err
}

// sendNext appends after the newest known event, or appends nothing.
func (a *appender) sendNext(ctx context.Context, p *pending) ([]placed, error) {
	e := p.Events[0]
	rows, _ := a.conn.Query(ctx, appendNext, a.newest.position+1, min(int64(p.Expected), maxRevision)+1, a.newest.at, e.ID, p.Stream, e.Type, string(e.Data), string(e.Meta))
	return pgx.CollectRows(rows, scanPlaced)
}

func scanPlaced(row pgx.CollectableRow) (p placed, err error) {
	err = row.Scan(&p.position, &p.revision, &p.at, &p.stream)
	return p, err
}

// calm is the number of successive undisturbed groups after which a process assumes that it is the only writer.
const calm = 16

// follow remembers the newest event and counts undisturbed groups.
func (a *appender) follow(done []placed) {
	if done[0].position == a.newest.position+1 {
		a.undisturbed++
	} else {
		a.undisturbed = 0
	}
	a.newest = done[len(done)-1]
}

func pgUUID(id uuid.UUID) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: true} }

// columnsOf returns the arguments of appendGroup.
func columnsOf(group []*pending) []any {
	var (
		n                            = len(group)
		nth                          = make([]int32, 0, n)
		streams, types, datas, metas = make([]string, 0, n), make([]string, 0, n), make([]string, 0, n), make([]string, 0, n)
		expected                     = make([]int64, 0, n)
		firsts, ids                  = make([]pgtype.UUID, 0, n), make([]pgtype.UUID, 0, n) // pgx encodes its own type faster
	)
	for _, p := range group {
		for k, e := range p.Events {
			nth = append(nth, int32(k+1))
			streams, expected = append(streams, p.Stream), append(expected, int64(p.Expected))
			firsts, ids = append(firsts, pgUUID(p.Events[0].ID)), append(ids, pgUUID(e.ID))
			types = append(types, e.Type)
			datas, metas = append(datas, string(e.Data)), append(metas, string(e.Meta))
		}
	}
	return []any{nth, streams, expected, firsts, ids, types, datas, metas}
}

// conclude passes appended events to followers, sends the results, and returns the appends that were refused.
// It matches events to appends by stream, which a group has once; two streams may hold the same event id.
func (a *appender) conclude(group []*pending, done []placed) (refused []*pending) {
	if len(done) == 0 {
		return group
	}
	a.follow(done)
	events := make([]event.Stored, 0, len(done))
	var accepted []*pending
	for _, p := range group {
		if len(events) == len(done) || done[len(events)].stream != p.Stream {
			refused = append(refused, p)
			continue
		}
		accepted = append(accepted, p)
		for _, e := range p.Events {
			d := done[len(events)]
			events = append(events, event.Stored{
				Position: event.Position(d.position), Stream: p.Stream, Revision: d.revision,
				ID: e.ID, Type: e.Type, Data: e.Data, Meta: e.Meta, At: d.at.UTC(),
			})
		}
	}
	a.tail.committed(events)
	n := 0
	for _, p := range accepted {
		n += len(p.Events)
		first, last := events[n-len(p.Events)], events[n-1]
		p.reply <- eventstore.Result{Appended: eventstore.Appended{First: first.Position, Position: last.Position, Revision: last.Revision, At: last.At}}
	}
	return refused
}

// explain sends the results of appends that were refused: an earlier call had appended them, or the stream does
// not match. It returns those for which neither holds, because the stream has changed since, or the connection
// was lost.
func (a *appender) explain(ctx context.Context, refused []*pending) (again []*pending) {
	for _, p := range refused {
		if a.conn == nil { // lost while explaining the previous append
			again = append(again, p)
			continue
		}
		found, err := a.find(ctx, p)
		switch {
		case err != nil:
			a.log.Warn("determining why an append was refused failed; retrying", "error", a.broken(err))
			again = append(again, p)
		case found.all:
			p.reply <- eventstore.Result{Appended: found.Appended}
		case found.some || !holds(p.Expected, found.current):
			p.fail(&eventstore.WrongRevision{Stream: p.Stream, Expected: p.Expected, Actual: found.current})
		default:
			again = append(again, p)
		}
	}
	return again
}

// found is what the log has of an append.
type found struct {
	eventstore.Appended

	all, some bool  // of its events, consecutive
	current   int64 // revision of the stream's last event
}

// find looks up the events of an append where they would have been inserted.
func (a *appender) find(ctx context.Context, p *pending) (f found, err error) {
	ctx, cancel := context.WithTimeout(ctx, a.timeouts.ask)
	defer cancel()
	ids := make([]uuid.UUID, len(p.Events))
	for i, e := range p.Events {
		ids[i] = e.ID
	}
	sql, args := findOpen, []any{p.Stream, ids}
	if p.Expected >= eventstore.NoStream {
		sql, args = findExact, append(args, min(int64(p.Expected), maxRevision))
	}
	var (
		position, revision *int64
		at                 *time.Time
	)
	f.all = true
	rows, _ := a.conn.Query(ctx, sql, args...)
	_, err = pgx.ForEachRow(rows, []any{&position, &revision, &at, &f.current}, func() error {
		if position == nil || f.some && *revision != f.Revision+1 {
			f.all = false
		}
		if position != nil {
			first := f.First
			if !f.some {
				first = event.Position(*position)
			}
			f.some = true
			f.Appended = eventstore.Appended{First: first, Position: event.Position(*position), Revision: *revision, At: at.UTC(), Replayed: true}
		}
		return nil
	})
	return f, err
}

// holds reports whether a stream whose last revision is current matches expected.
func holds(expected eventstore.Expected, current int64) bool {
	switch expected {
	case eventstore.Any:
		return true
	case eventstore.StreamExists:
		return current >= 0
	default:
		return int64(expected) == current
	}
}

// broken disconnects if err means that the connection is lost, the server is shutting down, or the server is
// read-only. It returns err.
func (a *appender) broken(err error) error {
	server, answered := errors.AsType[*pgconn.PgError](err)
	if answered && !a.conn.IsClosed() && !strings.HasPrefix(server.Code, "57P") && server.Code != "25006" {
		return err
	}
	a.disconnect()
	return err
}

// concernsData reports whether the server rejected the data: data exceptions (class 22), constraint violations
// (23), statements that are too complex (54).
func concernsData(err error) bool {
	server, answered := errors.AsType[*pgconn.PgError](err)
	return answered && (strings.HasPrefix(server.Code, "22") || strings.HasPrefix(server.Code, "23") || strings.HasPrefix(server.Code, "54"))
}

// isDouble reports whether err is a unique violation.
func isDouble(err error) bool {
	server, answered := errors.AsType[*pgconn.PgError](err)
	return answered && server.Code == "23505"
}
