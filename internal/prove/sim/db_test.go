package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgproto3"

	"bahi/domain/event"
)

// row is a record of a table. It is never changed: an update replaces it.
type row map[string]any

// logged is an event of the log.
type logged struct {
	event.Stored

	open bool
}

// database has the committed state and the holders of locks.
type database struct {
	store  uuid.UUID
	events []logged
	rows   map[string]row // by table and key
	holds  []hold
	locked map[string]*session // records that a transaction has changed
	unsafe []undo              // commits that a crash may lose, in order
	skew   time.Duration       // of its clock

	journal map[string][]event.Stored // in another server; nil: the log has none
}

// hold is a session's hold on an advisory lock.
type hold struct {
	name            string
	by              *session
	exclusive, long bool // long: to the end of the session
}

// tx is a transaction's changes.
type tx struct {
	rows   map[string]row // nil: deleted
	events []logged
	async  bool
	snap   map[string]row // of a repeatable read
}

// undo has the records that a commit replaced.
type undo struct{ rows map[string]row }

func (d *database) now() time.Time { return time.Now().UTC().Add(d.skew).Truncate(time.Microsecond) }

// hold acquires an advisory lock. It returns false if another session has it.
func (d *database) hold(s *session, name string, exclusive, long bool) bool {
	for _, h := range d.holds {
		if h.name == name && h.by != s && (exclusive || h.exclusive) {
			return false
		}
	}
	d.holds = append(d.holds, hold{name, s, exclusive, long})
	return true
}

// release releases a session's locks at the end of its transaction, or of the session.
func (d *database) release(s *session, all bool) {
	s.w.changes++
	d.holds = slices.DeleteFunc(d.holds, func(h hold) bool { return h.by == s && (all || !h.long) })
	maps.DeleteFunc(d.locked, func(_ string, by *session) bool { return by == s })
}

func (s *session) rollback() {
	s.tx, s.explicit, s.failed, s.lockFor = nil, false, false, s.lockAll
	s.w.db.release(s, false)
}

func (s *session) commit() {
	d, t := s.w.db, s.tx
	if t != nil && len(t.rows)+len(t.events) > 0 {
		u := undo{map[string]row{}}
		for key, now := range t.rows {
			u.rows[key] = d.rows[key]
			if now == nil {
				delete(d.rows, key)
			} else {
				d.rows[key] = now
			}
		}
		d.events = append(d.events, t.events...)
		if d.unsafe = append(d.unsafe, u); !t.async {
			d.unsafe = nil
		}
		s.w.committed(s, t)
	}
	s.rollback()
}

// crash ends all sessions, and undoes some of the commits that are not on disk.
func (d *database) crash(w *world, lost int) {
	for _, s := range slices.Clone(w.sessions) {
		s.kill()
	}
	for ; lost > 0 && len(d.unsafe) > 0; lost-- {
		last := d.unsafe[len(d.unsafe)-1]
		d.unsafe = d.unsafe[:len(d.unsafe)-1]
		for key, before := range last.rows {
			if before == nil {
				delete(d.rows, key)
			} else {
				d.rows[key] = before
			}
		}
	}
	d.unsafe = nil
}

// log returns the events that a session sees.
func (s *session) log() []logged {
	if s.tx == nil || len(s.tx.events) == 0 {
		return s.w.db.events
	}
	return slices.Concat(s.w.db.events, s.tx.events)
}

// get returns a record that a session sees.
func (s *session) get(key string) (row, bool) {
	if r, changed := s.tx.rows[key]; changed {
		return r, r != nil
	}
	from := s.w.db.rows
	if s.tx.snap != nil {
		from = s.tx.snap
	}
	r, ok := from[key]
	return r, ok
}

// all returns the keys of a table's records that a session sees, in order.
func (s *session) all(table string) (keys []string) {
	from := s.w.db.rows
	if s.tx.snap != nil {
		from = s.tx.snap
	}
	for key := range from {
		if r, changed := s.tx.rows[key]; strings.HasPrefix(key, table+"|") && (!changed || r != nil) {
			keys = append(keys, key)
		}
	}
	for key, r := range s.tx.rows {
		if _, known := from[key]; strings.HasPrefix(key, table+"|") && r != nil && !known {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// change locks a record and replaces it. It returns false if another transaction has changed it.
func (x *execution) change(key string, to row) bool {
	if !x.lock(key) {
		return false
	}
	x.s.tx.rows[key] = to
	return true
}

func (x *execution) lock(key string) bool {
	if by := x.s.w.db.locked[key]; by != nil && by != x.s {
		x.waits = true
		return false
	}
	x.s.w.db.locked[key] = x.s
	return true
}

// execution is one execution of a statement.
type execution struct {
	s       *session
	st      *statement
	args    [][]byte
	formats []int16
	request *request

	rows  [][]any
	tag   string
	err   *pgproto3.ErrorResponse
	waits bool
}

func (x *execution) fail(code, text string) {
	x.err = &pgproto3.ErrorResponse{Severity: "ERROR", SeverityUnlocalized: "ERROR", Code: code, Message: text}
}

func (x *execution) row(values ...any) { x.rows = append(x.rows, values) }

// arg returns an argument as a Go value.
func arg[T any](x *execution, nth int) (v T) {
	format := int16(0)
	switch {
	case len(x.formats) == 1:
		format = x.formats[0]
	case len(x.formats) >= nth:
		format = x.formats[nth-1]
	}
	if err := x.s.w.types.Scan(x.st.params[nth-1], format, x.args[nth-1], &v); err != nil {
		panic(fmt.Sprintf("argument %d of %s: %v", nth, x.st.sql, err))
	}
	return v
}

// value returns an argument in the form of records.
func (x *execution) value(nth int) any {
	if x.args[nth-1] == nil {
		return nil
	}
	switch oid := x.st.params[nth-1]; oid {
	case oids["int8"], oids["int4"]:
		return arg[int64](x, nth)
	case oids["bool"]:
		return arg[bool](x, nth)
	case oids["uuid"]:
		return uuid.UUID(arg[[16]byte](x, nth))
	case oids["interval"]:
		return arg[time.Duration](x, nth)
	case oids["timestamptz"]:
		return arg[time.Time](x, nth).UTC()
	default:
		return arg[string](x, nth)
	}
}
