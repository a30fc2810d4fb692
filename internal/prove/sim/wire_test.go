package sim

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"
)

// session is the database's side of a connection.
type session struct {
	w       *world
	node    string
	caller  string // caller of the query, if the connection is the pool's
	pooled  bool
	pid     uint32
	started time.Time
	pipe    net.Conn
	out     chan []byte
	quit    chan struct{}
	stmts   map[string]*statement
	listens map[string]bool
	async   bool          // its commits may be lost in a crash
	lockFor time.Duration // lock_timeout, for this transaction
	lockAll time.Duration // of the connection
	schema  string

	tx       *tx
	explicit bool // it began the transaction by a statement
	failed   bool // only a rollback helps
	since    time.Time

	asked *request // without a response yet
	muted bool     // its replies are lost
	gone  bool     // the client has closed the connection
	dead  bool     // the database has
	acted time.Time
}

// request has the messages of a client before it waits.
type request struct {
	ops   []op
	next  int
	reply []byte
	skip  bool // after an error, up to the end
	began time.Time
	slow  time.Time // it does not arrive before
	tried int       // number of lock releases when it last found a lock held, plus one
	saw   bool      // an insert has found the head where it should be
	key   string    // see session.key
}

// op is one message of a request.
type op struct {
	kind    byte // P, B, D, E, C, Q, S
	name    string
	sql     string
	args    [][]byte
	formats []int16
	results []int16
}

// dial opens a connection of a node.
func (w *world) dial(n string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.cutOff[n] {
			return nil, errors.New("connection refused")
		}
		client, server := net.Pipe()
		w.pids++
		s := &session{
			w: w, node: n, pid: w.pids, started: time.Now().UTC().Truncate(time.Microsecond), pipe: server,
			out: make(chan []byte, 256), quit: make(chan struct{}), stmts: map[string]*statement{}, listens: map[string]bool{}, acted: time.Now(),
		}
		s.caller, _ = ctx.Value(callerKey{}).(string)
		w.sessions = append(w.sessions, s)
		w.running.Go(s.send)
		w.running.Go(s.receive)
		return connection{client}, nil
	}
}

// connection is a client's end of a pipe, with the errors of a connection over a network.
type connection struct{ net.Conn }

func (c connection) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	return n, overNetwork("read", err)
}

func (c connection) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	return n, overNetwork("write", err)
}

func overNetwork(op string, err error) error {
	if errors.Is(err, io.ErrClosedPipe) {
		return &net.OpError{Op: op, Net: "tcp", Err: err}
	}
	return err
}

func (s *session) send() {
	for {
		select {
		case b := <-s.out:
			if _, err := s.pipe.Write(b); err != nil {
				return
			}
		case <-s.quit:
			return
		}
	}
}

// put sends messages to the client.
func (s *session) put(all ...pgproto3.BackendMessage) {
	var b []byte
	for _, m := range all {
		b = must(m.Encode(b))
	}
	s.out <- b
}

// receive reads requests until the client closes the connection.
func (s *session) receive() {
	defer func() {
		s.w.mu.Lock()
		defer s.w.mu.Unlock()
		s.gone = true
	}()
	back := pgproto3.NewBackend(s.pipe, nil)
	first, err := back.ReceiveStartupMessage()
	if err != nil {
		return
	}
	start, ok := first.(*pgproto3.StartupMessage)
	if !ok {
		if c, is := first.(*pgproto3.CancelRequest); is {
			s.w.cancel(c.ProcessID)
		}
		return
	}
	s.async = start.Parameters["synchronous_commit"] == "off"
	s.lockAll = must(time.ParseDuration("0" + start.Parameters["lock_timeout"] + "ms"))
	s.lockFor = s.lockAll
	s.put(&pgproto3.AuthenticationOk{}, &pgproto3.ParameterStatus{Name: "standard_conforming_strings", Value: "on"},
		&pgproto3.ParameterStatus{Name: "client_encoding", Value: "UTF8"},
		&pgproto3.BackendKeyData{ProcessID: s.pid, SecretKey: []byte{0, 0, 0, 1}}, &pgproto3.ReadyForQuery{TxStatus: 'I'})
	r := &request{}
	for {
		m, err := back.Receive()
		if err != nil {
			return
		}
		ends := false
		switch m := m.(type) {
		case *pgproto3.Terminate:
			return
		case *pgproto3.Parse:
			r.ops = append(r.ops, op{kind: 'P', name: m.Name, sql: m.Query})
		case *pgproto3.Describe:
			r.ops = append(r.ops, op{kind: 'D', name: m.Name, sql: string(m.ObjectType)})
		case *pgproto3.Bind:
			o := op{kind: 'B', name: m.PreparedStatement, formats: slices.Clone(m.ParameterFormatCodes), results: slices.Clone(m.ResultFormatCodes)}
			for _, p := range m.Parameters {
				if p != nil {
					p = append([]byte{}, p...)
				}
				o.args = append(o.args, p)
			}
			r.ops = append(r.ops, o)
		case *pgproto3.Execute:
			r.ops = append(r.ops, op{kind: 'E'})
		case *pgproto3.Close:
			r.ops = append(r.ops, op{kind: 'C', name: m.Name})
		case *pgproto3.Query:
			r.ops, ends = append(r.ops, op{kind: 'Q', sql: m.String}), true
		case *pgproto3.Sync:
			r.ops, ends = append(r.ops, op{kind: 'S'}), true
		case *pgproto3.Flush:
		default:
			panic(m)
		}
		if !ends {
			continue
		}
		s.ask(r)
		r = &request{}
	}
}

// ask passes a request to the scheduler. It executes a request that only prepares statements at once.
func (s *session) ask(r *request) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	r.began, s.acted = time.Now(), time.Now()
	s.asked = r
	if !slices.ContainsFunc(r.ops, func(o op) bool { return o.kind == 'E' || o.kind == 'Q' && o.sql != "-- ping" }) {
		s.carryOut(len(r.ops))
	}
}

// carryOut executes the request up to a number of messages. It returns false if the request waits for a lock. When the request is done, the
// client gets its reply.
func (s *session) carryOut(upTo int) bool {
	r := s.asked
	say := func(m pgproto3.BackendMessage) { r.reply = must(m.Encode(r.reply)) }
	for ; r.next < upTo; r.next++ {
		o, said := &r.ops[r.next], len(r.reply)
		if r.skip && o.kind != 'S' {
			continue
		}
		switch o.kind {
		case 'P':
			s.stmts[o.name] = s.w.parse(o.sql)
			say(&pgproto3.ParseComplete{})
		case 'C':
			say(&pgproto3.CloseComplete{})
		case 'D':
			if o.sql == "S" {
				st := s.stmts[o.name]
				say(&pgproto3.ParameterDescription{ParameterOIDs: st.params})
				say(st.describe(nil))
			} else {
				st := s.stmts[r.ops[r.next-1].name]
				say(st.describe(r.ops[r.next-1].results))
			}
		case 'B':
			say(&pgproto3.BindComplete{})
		case 'E':
			b := r.ops[r.next-1]
			if b.kind == 'D' {
				b = r.ops[r.next-2]
			}
			if !s.execute(s.stmts[b.name], b, say) {
				r.reply = r.reply[:said]
				return false
			}
		case 'Q':
			for part := range strings.SplitSeq(note.ReplaceAllString(o.sql, ""), ";") {
				if part = strings.TrimSpace(part); part != "" && !r.skip {
					st := s.w.parse(part)
					if len(st.cols) > 0 {
						say(st.describe(nil))
					}
					if !s.execute(st, op{}, say) {
						r.reply = r.reply[:said]
						return false
					}
				}
			}
			if len(r.reply) == 0 {
				say(&pgproto3.EmptyQueryResponse{})
			}
			fallthrough
		case 'S':
			if !s.explicit && s.tx != nil {
				if s.failed {
					s.rollback()
				} else {
					s.commit()
				}
			}
			status := byte('I')
			if s.explicit {
				status = 'T'
			}
			if s.failed {
				status = 'E'
			}
			say(&pgproto3.ReadyForQuery{TxStatus: status})
		}
	}
	if r.next < len(r.ops) {
		return false
	}
	s.asked, s.acted = nil, time.Now()
	if !s.muted {
		s.out <- r.reply
	}
	return true
}

// execute executes a statement. It returns false if the statement waits for a lock.
func (s *session) execute(st *statement, bound op, say func(pgproto3.BackendMessage)) bool {
	x := &execution{s: s, st: st, args: bound.args, formats: bound.formats, request: s.asked}
	if s.failed && st.verb != "rollback" && st.verb != "commit" {
		x.fail("25P02", "current transaction is aborted")
	}
	if s.tx == nil && x.err == nil {
		s.tx, s.since = &tx{rows: map[string]row{}, async: s.async}, time.Now()
	}
	if x.err == nil {
		st.run(x)
	}
	if x.waits && s.lockFor > 0 && time.Since(s.asked.began) > s.lockFor {
		x.waits = false
		x.fail("55P03", "canceling statement due to lock timeout")
	}
	switch {
	case x.waits:
		return false
	case x.err != nil:
		s.failed, s.asked.skip = true, true
		say(x.err)
		return true
	}
	for _, values := range x.rows {
		var m pgproto3.DataRow
		for i, v := range values {
			format := int16(pgtype.TextFormatCode)
			switch {
			case len(bound.results) == 1:
				format = bound.results[0]
			case len(bound.results) > i:
				format = bound.results[i]
			}
			m.Values = append(m.Values, must(s.w.types.Encode(st.cols[i].oid, format, v, []byte{})))
		}
		say(&m)
	}
	say(&pgproto3.CommandComplete{CommandTag: []byte(x.tag)})
	return true
}

// kill ends a session: its uncommitted changes are undone, and its client gets no reply.
func (s *session) kill() {
	if s.dead {
		return
	}
	s.dead, s.asked = true, nil
	s.rollback()
	s.w.db.release(s, true)
	close(s.quit)
	_ = s.pipe.Close()
	w := s.w
	for i, other := range w.sessions {
		if other == s {
			w.sessions = append(w.sessions[:i:i], w.sessions[i+1:]...)
			break
		}
	}
}

// cancel ends the statement of a session that waits for a lock.
func (w *world) cancel(pid uint32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.sessions {
		if s.pid == pid && s.asked != nil && s.asked.next > 0 {
			s.kill()
			return
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
