package sim

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"

	"bahi/domain/event"
)

// world is one run: a database, the processes that use it, and the scheduler.
type world struct {
	seed   uint64
	rng    *rand.Rand
	begins time.Time
	types  *pgtype.Map

	mu       sync.Mutex // between the scheduler and the goroutines that receive requests; the scheduler holds it during a step
	db       *database
	sessions []*session
	pids     uint32
	cutOff   map[string]bool
	paused   map[string]time.Time // processes that are idle until then
	notices  []notice
	calls    []*call
	running  sync.WaitGroup // goroutines of sessions

	nodes      []*node
	ended      []*node
	clients    []*client
	operations []*operation
	odds       odds
	faults     int // number of faults that may still happen
	trace      []string
	ordered    int      // number of lines of the trace that were written before the last step ended
	broken     []string // violations in this run
	steps      int
	over       bool // only the end of the processes follows
	changes    int  // releases of locks
	live       liveness
	owners     int // number of jobs that assume they have the lease
}

// odds are the probabilities of events. Each seed has its own.
type odds struct{ fault, kinds, jump int }

type notice struct {
	to            *session
	channel, text string
}

// choice is a possible next event.
type choice struct {
	weight int
	name   string
	do     func()
}

func (w *world) say(format string, args ...any) {
	if w.over {
		return
	}
	w.trace = append(w.trace, fmt.Sprintf("%12s  %s", time.Since(w.begins).Round(time.Microsecond), fmt.Sprintf(format, args...)))
}

func (w *world) wrong(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.say("BROKEN: %s", text)
	w.broken = append(w.broken, text)
}

// notify sends a notice to the sessions that listen. Each may be lost, delayed or doubled.
func (w *world) notify(channel, text string) {
	for _, s := range w.sessions {
		if s.listens[channel] {
			w.notices = append(w.notices, notice{s, channel, text})
		}
	}
	slices.SortStableFunc(w.notices, func(a, b notice) int {
		return cmp.Or(strings.Compare(a.to.node, b.to.node), strings.Compare(a.text, b.text))
	})
}

// label names a request in the trace, without ids.
func (s *session) label() string {
	text := ""
	for _, o := range s.asked.ops {
		sql := o.sql
		if o.kind == 'B' {
			sql = s.w.sqlOf(s, o.name)
		} else if o.kind != 'Q' {
			continue
		}
		if len(sql) > 44 {
			sql = sql[:44]
		}
		if text += " | " + sql; len(text) > 150 {
			break
		}
	}
	return s.node + " " + s.caller + ":" + strings.TrimPrefix(text, " |")
}

// key is the label with those arguments that are the same in each run of a seed.
func (s *session) key() string {
	if s.asked.key != "" {
		return s.asked.key
	}
	text := s.label()
	for _, o := range s.asked.ops {
		for _, a := range o.args {
			if len(a) != 16 {
				text += fmt.Sprintf(" %q", a)
			}
		}
	}
	s.asked.key = text
	return text
}

// busyFirst returns the sessions in an order that does not depend on the connections of pools: busy ones first.
func (w *world) busyFirst() (all []*session) {
	busy := func(s *session) string {
		switch {
		case s.asked != nil:
			return "0" + s.key()
		case !s.pooled:
			return "1" + s.node + s.schema
		default:
			return "2"
		}
	}
	all = slices.Clone(w.sessions)
	slices.SortStableFunc(all, func(a, b *session) int { return strings.Compare(busy(a), busy(b)) })
	return all
}

func (w *world) sqlOf(s *session, name string) string {
	if st := s.stmts[name]; st != nil {
		return st.sql
	}
	for _, o := range s.asked.ops {
		if o.kind == 'P' && o.name == name {
			return w.parse(o.sql).sql
		}
	}
	return ""
}

// choices returns the possible next events, always in the same order.
func (w *world) choices() (all []choice) {
	now := time.Now()
	for _, s := range w.sessions {
		paused := now.Before(w.paused[s.node])
		switch {
		case s.asked == nil && s.gone && s.pooled: // nothing depends on it
		case s.asked == nil && s.gone:
			all = append(all, choice{5, s.node + ": session ends", s.kill})
		case s.asked == nil, paused, now.Before(s.asked.slow):
		case s.asked.tried == w.changes+1 && (s.lockFor == 0 || now.Sub(s.asked.began) <= s.lockFor): // for a lock that is still held
		default:
			all = append(all, choice{10, s.key(), func() { w.handle(s) }})
		}
	}
	for _, c := range w.calls {
		if !now.Before(w.paused[c.node]) {
			all = append(all, choice{10, c.node + " journal " + c.name, func() { w.arrive(c) }})
		}
	}
	slices.SortStableFunc(all, func(a, b choice) int { return strings.Compare(a.name, b.name) })
	for i, n := range w.notices {
		if !now.Before(w.paused[n.to.node]) && (n.to.tx == nil || n.to.dead) { // Postgres sends notices between transactions
			all = append(all, choice{5, "notice to " + n.to.node + " " + n.text, func() { w.deliver(i) }})
		}
	}
	for _, c := range w.clients {
		if c.idle && c.left > 0 {
			all = append(all, choice{4, c.name + " begins", c.begin})
		}
	}
	return all
}

// handle executes a session's request, perhaps in part.
func (w *world) handle(s *session) {
	r := s.asked
	name := s.label()
	if w.faults > 0 && r.next == 0 && w.rng.IntN(1000) < w.odds.fault {
		w.faults--
		switch w.rng.IntN(4) {
		case 0:
			w.say("LOST before it arrives  %s", name)
			s.kill()
		case 1:
			upTo := w.rng.IntN(len(r.ops)) + 1
			w.say("TORN after %d of %d  %s", upTo, len(r.ops), name)
			s.carryOut(upTo)
			s.kill()
		case 2:
			w.say("LOST response  %s", name)
			s.mute(len(r.ops))
		default:
			r.slow = time.Now().Add(time.Duration(w.rng.IntN(40_000)) * time.Millisecond)
			w.say("SLOW  %s", name)
		}
		return
	}
	r.tried = w.changes + 1
	if !s.carryOut(len(r.ops)) {
		name = "waits  " + name
	}
	w.say("%s", name)
}

// mute executes a request, and cuts the connection before the client gets the response.
func (s *session) mute(upTo int) {
	s.muted = true
	s.carryOut(upTo)
	s.kill()
}

func (w *world) deliver(i int) {
	n := w.notices[i]
	lot := w.rng.IntN(10)
	if lot != 0 || w.faults <= 0 { // otherwise it arrives twice
		w.notices = slices.Delete(w.notices, i, i+1)
	}
	if n.to.dead || lot == 1 && w.faults > 0 {
		w.say("notice lost  %s %s", n.to.node, n.text)
		return
	}
	w.say("notice  %s %s", n.to.node, n.text)
	n.to.put(&pgproto3.NotificationResponse{PID: 1, Channel: n.channel, Payload: n.text})
}

// strikes returns the faults that may happen between requests.
func (w *world) strikes() (all []choice) {
	rarely := func(name string, do func()) {
		all = append(all, choice{1, name, func() {
			if w.rng.IntN(1000) >= w.odds.kinds {
				return
			}
			w.faults--
			w.say("%s", name)
			do()
		}})
	}
	rarely("CRASH of the database", func() { w.db.crash(w, w.rng.IntN(8)); w.live = liveness{} })
	rarely("CLOCK of the database jumps", func() { w.db.skew = time.Duration(w.rng.IntN(200_000)-100_000) * time.Millisecond })
	rarely("CUT", func() {
		all := slices.DeleteFunc(w.busyFirst(), func(s *session) bool { return s.pooled && s.asked == nil })
		if len(all) > 0 {
			s := all[w.rng.IntN(len(all))]
			w.say("CUT %s", s.node)
			s.kill()
		}
	})
	n := w.nodes[w.rng.IntN(len(w.nodes))]
	rarely("PAUSE "+n.name, func() { w.paused[n.name] = time.Now().Add(time.Duration(w.rng.IntN(30_000)) * time.Millisecond) })
	rarely("KILL "+n.name, func() { w.restart(n) })
	return all
}

// step lets one thing happen. If only faults may happen, time passes faster: everything else waits, perhaps for a slow request.
func (w *world) step() {
	synctest.Wait()
	w.mu.Lock()
	slices.Sort(w.trace[w.ordered:]) // texts of goroutines at one moment, in any order
	all := w.choices()
	acts := len(all) > 0
	if w.faults > 0 {
		all = append(all, w.strikes()...)
	}
	w.steps++
	sum := 0
	for _, c := range all {
		sum += c.weight
	}
	wait := time.Duration(w.rng.IntN(100_000)) * time.Nanosecond
	if !acts {
		wait = time.Duration(w.rng.IntN(20_000_000)) + time.Millisecond
	}
	if sum > 0 {
		lot := w.rng.IntN(sum)
		for _, c := range all {
			if lot -= c.weight; lot < 0 {
				c.do()
				break
			}
		}
		if w.faults > 0 && w.rng.IntN(1000) < w.odds.jump { // every goroutine sleeps
			wait = time.Duration(w.rng.IntN(3_000_000_000))
		}
	}
	w.ordered = len(w.trace)
	w.mu.Unlock()
	time.Sleep(wait)
}

// committed checks a commit of the database.
func (w *world) committed(_ *session, t *tx) {
	for i, e := range t.events {
		if want := event.Position(len(w.db.events) - len(t.events) + i + 1); e.Position != want {
			w.wrong("position %d was committed instead of %d", e.Position, want)
		}
	}
	for key := range t.rows {
		if schema, _, is := strings.Cut(key, ".tally|"); is {
			w.checkTables(schema)
			break
		}
	}
	w.checkLive()
}

func newWorld(seed uint64) *world {
	rng := rand.New(rand.NewPCG(seed, 38))
	w := &world{
		seed: seed, rng: rng, begins: time.Now(), types: pgtype.NewMap(), cutOff: map[string]bool{}, paused: map[string]time.Time{},
		db: &database{store: uuid.UUID{1}, rows: map[string]row{}, locked: map[string]*session{}},
	}
	w.odds = odds{fault: rng.IntN(60), kinds: rng.IntN(60), jump: rng.IntN(20)}
	w.faults = rng.IntN(12)
	if rng.IntN(4) == 0 {
		w.db.journal = map[string][]event.Stored{}
	}
	return w
}
