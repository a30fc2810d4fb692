package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"bahi/domain/event"
	"bahi/eventstore"
)

const (
	maxName  = 512      // of a stream or a type, in bytes
	maxEvent = 16 << 20 // payload and metadata, in bytes
)

// check refuses what Postgres would refuse in the middle of somebody else's group.
func check(r eventstore.Request) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", eventstore.ErrBadEvent, fmt.Sprintf(format, args...))
	}
	if len(r.Events) == 0 || len(r.Events) > maxGroupEvents {
		return bad("an append has 1 to %d events, not %d", maxGroupEvents, len(r.Events))
	}
	if r.Expected < 0 && r.Expected != eventstore.Any && r.Expected != eventstore.NoStream && r.Expected != eventstore.StreamExists {
		return bad("no such expected revision: %d", int64(r.Expected))
	}
	if !nameable(r.Stream) {
		return bad("a stream's name has 1 to %d bytes of text", maxName)
	}
	ids := make(map[uuid.UUID]bool, len(r.Events))
	for _, e := range r.Events {
		switch {
		case e.ID == uuid.Nil || ids[e.ID]:
			return bad("each event has an id of its own")
		case !nameable(e.Type):
			return bad("a type's name has 1 to %d bytes of text", maxName)
		case len(e.Data)+len(e.Meta) > maxEvent:
			return bad("payload and metadata have more than %d bytes", maxEvent)
		case !storable(e.Data) || !storable(e.Meta):
			return bad("payload and metadata are JSON in UTF-8")
		}
		ids[e.ID] = true
	}
	return nil
}

func nameable(name string) bool {
	return name != "" && len(name) <= maxName && utf8.ValidString(name) && !strings.ContainsRune(name, 0)
}

func storable(text []byte) bool { return json.Valid(text) && utf8.Valid(text) }

const (
	// lockLog is held until the commit. What follows sees everything that was appended before, since
	// each statement of the transaction takes a snapshot of its own.
	lockLog = `select pg_advisory_xact_lock(8241001)`

	// appendGroup appends those appends of a group whose streams are as they expect. The arrays have
	// one element for each event; the events of one append follow one another and share $3 (expected)
	// and $4 (id of the append's first event), so either all of them go in or none.
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
		returning position, revision, recorded_at, id`

	// appendOne is appendGroup for a single event, which is what a lone client sends: half the plan,
	// so a fifth less time.
	appendOne = `
		insert into log.event (position, revision, recorded_at, id, open_ended, stream, type, data, meta)
		select coalesce(head.position, 0) + 1, current + 1, greatest(head.recorded_at, clock_timestamp()),
			$3, $2 < -1, $1, $4, $5::json, $6::json
		from (select coalesce((
				select e.revision from log.event e where e.stream = $1 order by e.revision desc limit 1), -1) as current) asked
			left join (select position, recorded_at from log.event order by position desc limit 1) head on true
		where $2::bigint = current
			or $2 < -1 and ($2 = -2 or current >= 0) and not exists (
				select from log.event e where e.open_ended and e.stream = $1 and e.id = $3)
		returning position, revision, recorded_at, id`

	// explainAppend tells why an append did not go in: which of its events stand in the stream
	// already, in order, and the stream's last revision.
	explainAppend = `
		select a.n, e.position, e.revision, e.recorded_at, coalesce((
			select l.revision from log.event l where l.stream = $1 order by l.revision desc limit 1), -1)
		from unnest($2::uuid[]) with ordinality a (id, n)
		left join log.event e on e.stream = $1 and e.id = a.id and ($3 < -1 and e.open_ended or e.revision = $3 + a.n)
		order by a.n`
)

// placed is where an event was appended.
type placed struct {
	position int64
	revision int64
	at       time.Time
	id       uuid.UUID
}

// attempt appends a group in one transaction and one round trip. After an error with the connection
// still there, nothing was appended; with the connection gone (a.conn is nil) that is not known.
func (a *appender) attempt(ctx context.Context, group []*pending) ([]eventstore.Result, error) {
	batch := &pgx.Batch{}
	batch.Queue(lockLog)
	if first := group[0]; len(group) == 1 && len(first.Events) == 1 {
		e := first.Events[0]
		batch.Queue(appendOne, first.Stream, int64(first.Expected), e.ID, e.Type, string(e.Data), string(e.Meta))
	} else {
		batch.Queue(appendGroup, columnsOf(group)...)
	}
	answers := a.conn.SendBatch(ctx, batch)
	_, err := answers.Exec()
	var done []placed
	if err == nil {
		rows, _ := answers.Query()
		done, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (p placed, err error) {
			err = row.Scan(&p.position, &p.revision, &p.at, &p.id)
			return p, err
		})
	}
	if closeErr := answers.Close(); err == nil { // the commit is answered here
		err = closeErr
	}
	if err != nil {
		return nil, a.broken(err)
	}
	return a.conclude(ctx, group, done), nil
}

// columnsOf answers the arrays of appendGroup.
func columnsOf(group []*pending) []any {
	var (
		n                            = len(group)
		nth                          = make([]int32, 0, n)
		streams, types, datas, metas = make([]string, 0, n), make([]string, 0, n), make([]string, 0, n), make([]string, 0, n)
		expected                     = make([]int64, 0, n)
		firsts, ids                  = make([]uuid.UUID, 0, n), make([]uuid.UUID, 0, n)
	)
	for _, p := range group {
		for k, e := range p.Events {
			nth = append(nth, int32(k+1))
			streams, expected = append(streams, p.Stream), append(expected, int64(p.Expected))
			firsts, ids, types = append(firsts, p.Events[0].ID), append(ids, e.ID), append(types, e.Type)
			datas, metas = append(datas, string(e.Data)), append(metas, string(e.Meta))
		}
	}
	return []any{nth, streams, expected, firsts, ids, types, datas, metas}
}

// conclude makes each append's result of what was appended, hands that to followers, and finds out
// about the others.
func (a *appender) conclude(ctx context.Context, group []*pending, done []placed) []eventstore.Result {
	results := make([]eventstore.Result, len(group))
	events := make([]event.Stored, 0, len(done))
	var refused []int
	for i, p := range group {
		if len(done) == 0 || done[0].id != p.Events[0].ID {
			refused = append(refused, i)
			continue
		}
		for k, e := range p.Events {
			d := done[k]
			events = append(events, event.Stored{
				Position: event.Position(d.position), Stream: p.Stream, Revision: d.revision,
				ID: e.ID, Type: e.Type, Data: e.Data, Meta: e.Meta, At: d.at.UTC(),
			})
		}
		last := events[len(events)-1]
		results[i].Appended = eventstore.Appended{Position: last.Position, Revision: last.Revision, At: last.At}
		done = done[len(p.Events):]
	}
	if len(events) > 0 {
		a.tail.committed(events)
	}
	for _, i := range refused {
		results[i] = a.explain(ctx, group[i])
	}
	return results
}

// explain answers an append that was not done: it had been done before, or the stream is not as
// expected.
func (a *appender) explain(ctx context.Context, p *pending) (r eventstore.Result) {
	if a.conn == nil { // lost while the one before was explained; nothing was appended
		return eventstore.Result{Err: eventstore.ErrUnavailable}
	}
	ids := make([]uuid.UUID, len(p.Events))
	for i, e := range p.Events {
		ids[i] = e.ID
	}
	var (
		n, position, revision *int64
		at                    *time.Time
		current               int64
		found                 int
	)
	rows, _ := a.conn.Query(ctx, explainAppend, p.Stream, ids, int64(p.Expected))
	_, err := pgx.ForEachRow(rows, []any{&n, &position, &revision, &at, &current}, func() error {
		if position != nil {
			found++
			r.Appended = eventstore.Appended{Position: event.Position(*position), Revision: *revision, At: at.UTC(), Replayed: true}
		}
		return nil
	})
	switch {
	case err != nil:
		return eventstore.Result{Err: fmt.Errorf("%w: %w", eventstore.ErrUnavailable, a.broken(err))}
	case found < len(ids):
		return eventstore.Result{Err: &eventstore.WrongRevision{Stream: p.Stream, Expected: p.Expected, Actual: current}}
	default:
		return r
	}
}

// broken drops the connection when err says that it, or the server behind it, is no longer there.
func (a *appender) broken(err error) error {
	server, answered := errors.AsType[*pgconn.PgError](err)
	if answered && !a.conn.IsClosed() && !strings.HasPrefix(server.Code, "57P") {
		return err
	}
	a.conn.Close(context.Background()) //nolint:errcheck // it is given up
	a.conn = nil
	return err
}

// concernsData says whether the server refused what it was given: data exceptions (class 22),
// broken constraints (23), too complex (54).
func concernsData(err error) bool {
	server, answered := errors.AsType[*pgconn.PgError](err)
	return answered && (strings.HasPrefix(server.Code, "22") || strings.HasPrefix(server.Code, "23") || strings.HasPrefix(server.Code, "54"))
}
