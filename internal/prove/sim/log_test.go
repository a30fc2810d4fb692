package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"bahi/domain/event"
)

const eventColumns = `position:int8 stream:text revision:int8 id:uuid type:text data:json meta:json recorded_at:timestamptz`

// special are the statements outside the small language: those on the log, on locks and on sessions.
var special = slices.Concat(journalStatements, readStatements, logStatements, projectionStatements)

// known is a statement with a function of its own.
type known struct {
	begins, has    string
	takes, returns string
	run            func(x *execution)
}

var logStatements = []known{
	{"begin isolation level repeatable read", "", "", "", func(x *execution) {
		x.s.explicit, x.tag = true, "BEGIN"
		x.s.tx.snap = map[string]row{}
		maps.Copy(x.s.tx.snap, x.s.w.db.rows)
	}},
	{"begin", "", "", "", func(x *execution) { x.s.explicit, x.tag = true, "BEGIN" }},
	{"commit", "", "", "", func(x *execution) {
		if x.tag = "COMMIT"; x.s.failed {
			x.tag = "ROLLBACK"
			x.s.rollback()
			return
		}
		x.s.commit()
	}},
	{"rollback to", "", "", "", func(x *execution) { x.tag, x.s.failed = "ROLLBACK", false }},
	{"rollback", "", "", "", func(x *execution) { x.tag = "ROLLBACK"; x.s.rollback() }},
	{"savepoint", "", "", "", func(x *execution) { x.tag = "SAVEPOINT" }},
	{"release savepoint", "", "", "", func(x *execution) { x.tag = "RELEASE" }},
	{"set local", "", "", "", func(x *execution) {
		if _, text, ok := strings.Cut(x.st.sql, "lock_timeout = '"); ok {
			x.s.lockFor = must(time.ParseDuration(strings.TrimSuffix(text, "'")))
		}
		x.tag = "SET"
	}},
	{"listen", "", "", "", func(x *execution) { x.s.listens[strings.Fields(x.st.sql)[1]] = true; x.tag = "LISTEN" }},
	{"select pg_notify($1, $2)", "", "text text", "n:void", func(x *execution) {
		x.s.w.notify(arg[string](x, 1), arg[string](x, 2))
		x.row(nil)
		x.tag = "SELECT 1"
	}},
	{"select pg_notify($1, notice)", "", "text text[]", "n:void", func(x *execution) {
		for _, n := range arg[[]string](x, 2) {
			x.s.w.notify(arg[string](x, 1), n)
		}
		x.tag = "SELECT 0"
	}},
	{"select pid, backend_start", "", "", "pid:int8 at:timestamptz set:text", func(x *execution) {
		x.row(int64(x.s.pid), x.s.started, nil)
		x.tag = "SELECT 1"
	}},
	{"select count(pg_terminate_backend(pid))", "", "int8 timestamptz", "n:int8", func(x *execution) {
		n := 0
		for _, s := range x.s.w.sessions {
			if int64(s.pid) == arg[int64](x, 1) && s.started.Equal(arg[time.Time](x, 2)) {
				n++
				defer s.kill()
			}
		}
		x.row(int64(n))
		x.tag = "SELECT 1"
	}},
	{"select store_id, journal is not null", "", "", "id:uuid bound:bool", func(x *execution) {
		_, bound := x.s.get("identity")
		x.row(x.s.w.db.store, bound)
		x.tag = "SELECT 1"
	}},

	// Locks.
	{"select pg_advisory_xact_lock(8241001)", "", "", "n:void", func(x *execution) { locks(x, "log", true, false) }},
	{"select pg_advisory_xact_lock(hashtext('projection.generation'))", "", "", "n:void", func(x *execution) {
		locks(x, "registry", true, false)
	}},
	{"select relpersistence = 'u' from pg_class", "", "", "unlogged:bool", func(x *execution) { x.row(false) }},
	{"select pg_try_advisory_lock($2,", "", "text int4", "ok:bool", func(x *execution) { tries(x, lockName(x), true) }},
	{"select pg_try_advisory_xact_lock($2,", "", "text int4", "ok:bool", func(x *execution) { tries(x, lockName(x), false) }},
	{"select pg_advisory_lock($2,", "", "text int4", "n:void", func(x *execution) { locks(x, lockName(x), true, true) }},
	{"select pg_advisory_unlock($2,", "", "text int4", "ok:bool", func(x *execution) {
		name := lockName(x)
		i := slices.IndexFunc(x.s.w.db.holds, func(h hold) bool { return h.by == x.s && h.name == name })
		if i >= 0 {
			x.s.w.db.holds = slices.Delete(x.s.w.db.holds, i, i+1)
		}
		x.row(i >= 0)
		x.tag = "SELECT 1"
	}},
	{"select pg_terminate_backend(a.pid) from pg_locks", "", "text int4 interval", "ok:bool", func(x *execution) {
		for _, h := range x.s.w.db.holds {
			if h.name == lockName(x) && h.long && time.Since(h.by.acted) > arg[time.Duration](x, 3) && h.by.asked == nil {
				x.row(true)
				defer h.by.kill()
			}
		}
		x.tag = "SELECT 1"
	}},

	// The log.
	{"select coalesce((select position from log.event", "", "", "head:int8", func(x *execution) {
		x.row(int64(len(x.s.log())))
		x.tag = "SELECT 1"
	}},
	{"select position, id from log.event order by position desc limit 1", "", "", "position:int8 id:uuid", func(x *execution) {
		if all := x.s.log(); len(all) > 0 {
			x.row(int64(len(all)), all[len(all)-1].ID)
		}
		x.tag = "SELECT 1"
	}},
	{"select position, id, stream, revision from log.event where position >= $1", "",
		"int8 int8", "position:int8 id:uuid stream:text revision:int8", func(x *execution) {
			for _, e := range between(x.s.log(), arg[int64](x, 1), arg[int64](x, 2)) {
				x.row(int64(e.Position), e.ID, e.Stream, e.Revision)
			}
			x.tag = "SELECT 1"
		}},
	{"select stream, coalesce((select e.revision", "", "text[]", "stream:text revision:int8", func(x *execution) {
		for _, stream := range arg[[]string](x, 1) {
			x.row(stream, lastRevision(x.s.log(), stream))
		}
		x.tag = "SELECT 1"
	}},
	{"select u.id from unnest($1::bigint[]", "", "int8[] uuid[]", "id:uuid", func(x *execution) {
		for i, id := range arg[[][16]byte](x, 2) {
			at, log := arg[[]int64](x, 1)[i], x.s.log()
			if at < 1 || at > int64(len(log)) || log[at-1].ID != id {
				x.row(uuid.UUID(id))
			}
		}
		x.tag = "SELECT 1"
	}},
	{"select e.stream, e.id from unnest", "", "text[] uuid[]", "stream:text id:uuid", func(x *execution) {
		for i, id := range arg[[][16]byte](x, 2) {
			for _, e := range x.s.log() {
				if e.open && e.ID == id && e.Stream == arg[[]string](x, 1)[i] {
					x.row(e.Stream, e.ID)
				}
			}
		}
		x.tag = "SELECT 1"
	}},
	{"select e.position, e.revision, e.recorded_at from unnest", "e.revision = $3 + a.n",
		"text uuid[] int8", "position:int8 revision:int8 at:timestamptz", func(x *execution) {
			for n, id := range arg[[][16]byte](x, 2) {
				for _, e := range x.s.log() {
					if e.Stream == arg[string](x, 1) && e.Revision == arg[int64](x, 3)+int64(n)+1 && e.ID == id {
						x.row(int64(e.Position), e.Revision, e.At)
					}
				}
			}
			x.tag = "SELECT 1"
		}},
	{"select e.position, e.revision, e.recorded_at from unnest", "and e.open_ended",
		"text uuid[]", "position:int8 revision:int8 at:timestamptz", func(x *execution) {
			for _, id := range arg[[][16]byte](x, 2) {
				for _, e := range x.s.log() {
					if e.Stream == arg[string](x, 1) && e.ID == id && e.open {
						x.row(int64(e.Position), e.Revision, e.At)
					}
				}
			}
			x.tag = "SELECT 1"
		}},
	{"insert into log.event", "pg_try_advisory_xact_lock_shared",
		"int8 text[] int8[] uuid[] bool[] text[] text[] text[] bool", "recorded_at:timestamptz", insertGroup},
	{"select position, stream, revision, id, type, case when", "", "int8 int8", eventColumns, func(x *execution) {
		after := arg[int64](x, 1)
		for _, e := range between(x.s.log(), after, arg[int64](x, 2)) {
			if int64(e.Position) <= after {
				e.Data, e.Meta = []byte(`{}`), []byte(`{}`)
			}
			x.event(e)
		}
		x.tag = "SELECT 1"
	}},
	{"select position, stream, revision", "where stream = $1 and revision >=",
		"text int8 int8", eventColumns, func(x *execution) {
			for _, e := range x.s.log() {
				if e.Stream == arg[string](x, 1) && e.Revision >= arg[int64](x, 2) && len(x.rows) < int(arg[int64](x, 3)) {
					x.event(e)
				}
			}
			x.tag = "SELECT 1"
		}},
	{"select position, stream, revision", "where position > $1 order by", "int8 int8", eventColumns, func(x *execution) {
		for _, e := range between(x.s.log(), arg[int64](x, 1)+1, arg[int64](x, 2)) {
			x.event(e)
		}
		x.tag = "SELECT 1"
	}},
	{"select position, stream, revision", "where position < $1 order by", "int8 int8", eventColumns, func(x *execution) {
		all := x.s.log()
		for i := min(arg[int64](x, 1)-1, int64(len(all))); i > 0 && len(x.rows) < int(arg[int64](x, 2)); i-- {
			x.event(all[i-1])
		}
		x.tag = "SELECT 1"
	}},
}

// locks waits for an advisory lock.
func locks(x *execution, name string, exclusive, long bool) {
	x.waits = !x.s.w.db.hold(x.s, name, exclusive, long)
	x.row(nil)
	x.tag = "SELECT 1"
}

// lockName is the name of a lock in its space: the parameters of its statements.
func lockName(x *execution) string { return fmt.Sprint(x.value(2), " ", x.value(1)) }

func tries(x *execution, name string, long bool) {
	x.row(x.s.w.db.hold(x.s, name, true, long))
	x.tag = "SELECT 1"
}

func (x *execution) event(e logged) {
	x.row(int64(e.Position), e.Stream, e.Revision, e.ID, e.Type, string(e.Data), string(e.Meta), e.At)
}

func between(all []logged, from, limit int64) []logged {
	from = min(max(from, 1), int64(len(all))+1)
	return all[from-1 : min(from-1+limit, int64(len(all)))]
}

func lastRevision(all []logged, stream string) int64 {
	for _, e := range slices.Backward(all) {
		if e.Stream == stream {
			return e.Revision
		}
	}
	return -1
}

// insertGroup inserts events after the head if the head is where the statement expects it. Of two concurrent inserts, the primary key
// accepts one: the second waits for the first.
func insertGroup(x *execution) {
	d := x.s.w.db
	x.tag = "INSERT 0 0"
	all := x.s.log()
	if !x.request.saw {
		if int64(len(all)) != arg[int64](x, 1) || !arg[bool](x, 9) && !d.hold(x.s, "log", false, false) {
			return
		}
		x.request.saw = true
	}
	for _, other := range x.s.w.sessions {
		if other != x.s && other.tx != nil && len(other.tx.events) > 0 {
			x.waits = true
			return
		}
	}
	if int64(len(all)) != arg[int64](x, 1) {
		x.fail("23505", "event_pkey")
		return
	}
	streams, revisions, ids, open := arg[[]string](x, 2), arg[[]int64](x, 3), arg[[][16]byte](x, 4), arg[[]bool](x, 5)
	types, datas, metas := arg[[]string](x, 6), arg[[]string](x, 7), arg[[]string](x, 8)
	at := d.now()
	if len(all) > 0 && all[len(all)-1].At.After(at) {
		at = all[len(all)-1].At
	}
	var events []logged
	taken := map[string]bool{}
	for _, e := range all {
		taken[fmt.Sprint(e.Stream, e.Revision)] = true
		if e.open {
			taken[fmt.Sprint(e.Stream, e.ID)] = true
		}
	}
	for i := range streams {
		e := logged{event.Stored{
			Position: event.Position(len(all) + i + 1), Stream: streams[i], Revision: revisions[i], ID: uuid.UUID(ids[i]), Type: types[i],
			Data: []byte(datas[i]), Meta: []byte(metas[i]), At: at,
		}, open[i]}
		if taken[fmt.Sprint(e.Stream, e.Revision)] || e.open && taken[fmt.Sprint(e.Stream, e.ID)] {
			x.fail("23505", "event_stream_revision_idx")
			return
		}
		taken[fmt.Sprint(e.Stream, e.Revision)] = true
		events = append(events, e)
		x.row(at)
	}
	x.s.tx.events = append(x.s.tx.events, events...)
	x.tag = fmt.Sprintf("INSERT 0 %d", len(events))
}
