package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/internal/test/pgtest"
)

// fault is a fault of a breakableDialer at one message of the client.
type fault int

const (
	none      fault = iota
	unsent          // cut before the message
	half            // cut within the message
	sent            // cut after the message; the server notices later
	unheard         // cut after the server's response, which is lost
	halfHeard       // cut within the response
	silent          // drop the message silently
	faults
)

// breakableDialer opens the appender's connections and breaks them. It leaves a store's other connections alone.
type breakableDialer struct {
	next     func() fault // returns the fault of the next message
	pulled   atomic.Bool  // no new connections
	appender atomic.Pointer[wire]
}

func (c *breakableDialer) use(config *pgxpool.Config) {
	dial := config.ConnConfig.DialFunc
	config.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if c.pulled.Load() {
			return nil, errors.New("the cable is pulled")
		}
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &wire{Conn: conn, dialer: c}, nil
	}
}

// wire is one connection.
type wire struct {
	net.Conn

	dialer  *breakableDialer
	begun   bool
	appends bool
	fault   atomic.Int32
}

func (w *wire) Write(message []byte) (int, error) {
	if !w.begun && len(message) == 16 && string(message[4:8]) == "\x04\xd2\x16\x2e" {
		return 0, errors.New("cancel requests are blocked") // otherwise pgx would hide the fault
	}
	if !w.begun {
		w.begun, w.appends = true, bytes.Contains(message, []byte("plan_cache_mode"))
		if w.appends {
			w.dialer.appender.Store(w)
		}
		return w.Conn.Write(message)
	}
	f := none
	if w.appends && message[0] != 'X' {
		f = w.dialer.next()
	}
	if f != none {
		w.fault.Store(int32(f))
	}
	switch f {
	case unsent:
		w.Close()
		return 0, io.ErrClosedPipe
	case half:
		_, err := w.Conn.Write(message[:len(message)/2])
		w.Close()
		return len(message), err
	case sent:
		n, err := w.Conn.Write(message)
		w.Close()
		return n, err
	case silent:
		return len(message), nil
	default:
		return w.Conn.Write(message)
	}
}

func (w *wire) Read(into []byte) (int, error) {
	switch fault(w.fault.Load()) {
	case unheard:
		answer := make([]byte, 1<<16)
		for n := 0; ; {
			m, err := w.Conn.Read(answer[n:])
			if n += m; err != nil {
				return 0, err
			}
			if n > 6 && answer[n-6] == 'Z' { // ready for query: it has committed or refused
				w.Close()
				return 0, io.ErrUnexpectedEOF
			}
		}
	case halfHeard:
		n, err := w.Conn.Read(into)
		w.Close()
		return n / 2, err
	default:
		return w.Conn.Read(into)
	}
}

// once breaks one message each time it is armed.
type once struct{ armed, skip atomic.Int32 }

// arm breaks the message after the next n ones. An append sends two messages: one locks and looks, one writes and commits. If no other
// process appends, it sends only the second.
func (o *once) arm(f fault, after int32) {
	o.skip.Store(after)
	o.armed.Store(int32(f))
}

func (o *once) next() fault {
	if o.armed.Load() == int32(none) || o.skip.Add(-1) >= 0 {
		return none
	}
	return fault(o.armed.Swap(int32(none)))
}

// brief has short timeouts, for tests of an expiry.
var brief = timeouts{lock: time.Minute, answer: 2 * time.Second, ask: 2 * time.Second, resolve: time.Minute, look: pollInterval}

// ready returns a store whose appender is connected, and a function that arms its next fault.
func ready(t *testing.T, p timeouts) (s *Store, f *once, c *breakableDialer, url string) {
	t.Helper()
	url = newLog(t)
	f = &once{}
	c = &breakableDialer{next: f.next}
	s = newStoreWith(t, url, p, c.use)
	must(t, s, "first-1", makes(1)...) // these prepare the statements
	must(t, s, "first-1", makes(1)...)
	return s, f, c, url
}

// calmed returns a ready store that has seen no other process for a while, and a position of its log.
func calmed(t *testing.T, p timeouts) (s *Store, f *once, asOf event.Position) {
	t.Helper()
	s, f, _, _ = ready(t, p)
	for range calm {
		asOf = must(t, s, "first-1", makes(1)...).Position
	}
	return s, f, asOf
}

func TestAppendsSurviveEachConnectionFault(t *testing.T) {
	t.Parallel()
	for f := range faults {
		t.Run(fmt.Sprint(f), func(t *testing.T) {
			t.Parallel()
			s, fault, head := calmed(t, brief)
			for after := range int32(3) { // the last is the one message of a calm append
				a, b := fmt.Sprint("a-", after), fmt.Sprint("b-", after)
				x := eventstore.Transaction{Writes: []eventstore.Write{
					{Stream: a, Expected: eventstore.NoStream, Events: makes(3)}, {Stream: b, Expected: eventstore.NoStream, Events: makes(1)},
				}}
				if after == 2 {
					for range calm {
						head = must(t, s, "first-1", makes(1)...).Position
					}
					x.AsOf = head
				}
				fault.arm(f, after%2)
				done, err := s.Append(t.Context(), x)
				require.NoError(t, err)
				require.Equal(t, head+4, done.Position)
				require.Zero(t, done.Revision)
				require.Equal(t, time.UTC, done.At.Location())
				head += 4
			}
			require.Len(t, wholeLog(t, s), int(head))
		})
	}
}

func TestLongOutageLeavesTheAppendInDoubt(t *testing.T) {
	t.Parallel()
	for f, there := range map[fault]bool{unsent: false, half: false, unheard: true} {
		hasty := defaultTimeouts
		hasty.resolve = 100 * time.Millisecond
		s, fault, dialer, _ := ready(t, hasty)
		e := made(uuid.New())
		fault.arm(f, 1)
		dialer.pulled.Store(true)
		_, err := s.Append(t.Context(), eventstore.To("a-1", eventstore.NoStream, e))
		require.ErrorIs(t, err, eventstore.ErrInDoubt)
		require.NotErrorIs(t, err, eventstore.ErrUnavailable)
		_, err = s.Append(t.Context(), eventstore.To("b-1", eventstore.NoStream, makes(1)...))
		require.ErrorIs(t, err, eventstore.ErrUnavailable, "it was never sent")

		dialer.pulled.Store(false)
		done, err := s.Append(t.Context(), eventstore.To("a-1", eventstore.NoStream, e))
		require.NoError(t, err)
		require.Equal(t, there, done.Replayed)
		require.Len(t, wholeLog(t, s), 3)
	}
}

// While its session waits for a lock, the server does not notice a lost client. The session would append once the lock is free, after the
// client's append had failed with nothing appended.
func TestLostSessionCannotCommitLater(t *testing.T) {
	t.Parallel()
	s, _, dialer, url := ready(t, defaultTimeouts)
	other := connect(t, url) // blocks the insert itself, and no reads
	pgtest.Exec(t, other, `begin; lock table log.event in share mode`)
	ctx, cancel := context.WithCancel(t.Context())
	answer := make(chan error, 1)
	go func() {
		_, err := s.Append(ctx, eventstore.To("a-1", eventstore.NoStream, makes(1)...))
		answer <- err
	}()
	waiting := func(count int) {
		require.Eventually(t, func() bool {
			var n int
			err := other.QueryRow(t.Context(), `select count(*) from pg_locks where relation = 'log.event'::regclass and not granted`).Scan(&n)
			return err == nil && n == count
		}, time.Minute, time.Millisecond)
	}
	waiting(1)
	cancel() // no retry
	require.NoError(t, dialer.appender.Load().Close())
	require.ErrorIs(t, <-answer, context.Canceled)
	_, err := other.Exec(t.Context(), `commit`) // now the lost session would insert and commit
	require.NoError(t, err)
	waiting(0)
	must(t, s, "b-1", makes(1)...)
	require.Len(t, wholeLog(t, s), 3)
}

// lossyListener is a connection that loses the first LISTEN, as a server does that stops after it has accepted the connection.
type lossyListener struct {
	net.Conn

	lost *atomic.Bool
}

func (d lossyListener) Write(message []byte) (int, error) {
	if bytes.Contains(message, []byte("listen "+channel)) && !d.lost.Swap(true) {
		return len(message), nil
	}
	return d.Conn.Write(message)
}

func TestUnansweredListenIsTriedAgain(t *testing.T) {
	t.Parallel()
	url := newLog(t)
	var lost atomic.Bool
	s := newStoreWith(t, url, brief, func(config *pgxpool.Config) {
		dial := config.ConnConfig.DialFunc
		config.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dial(ctx, network, address)
			return lossyListener{conn, &lost}, err
		}
	})
	require.Eventually(t, lost.Load, time.Minute, time.Millisecond)
	must(t, s, "own-1", makes(1)...)
	other := newStoreWith(t, url, brief)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	seen := event.Position(0)
	for batch := range s.Subscribe(ctx, 0) {
		if seen += event.Position(len(batch.Events)); seen == 2 {
			break
		}
		must(t, other, "other-1", makes(1)...)
	}
	require.EqualValues(t, 2, seen)
}

// loseTail deletes a log's newest events and cuts all connections, as a failover to a replica that lags behind does.
func loseTail(t testing.TB, url string, count int) {
	t.Helper()
	admin := connect(t, url)
	pgtest.Exec(t, admin, `delete from log.event where position > (select max(position) - $1 from log.event)`, count)
	pgtest.Exec(t, admin, `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database()
		and pid <> pg_backend_pid()`)
}

func TestLogThatLosesItsNewestEvents(t *testing.T) {
	t.Parallel()
	losing(t, func(t testing.TB) (suite, func(int)) {
		url := newLog(t)
		return suite{Open: func(t testing.TB) (eventstore.Store, func()) {
			s := newStore(t, url)
			return s, s.Close
		}}, func(count int) { loseTail(t, url, count) }
	})
}

// A state read from lost events is not trusted, even if the log has other events at their positions by now.
func TestExpectationsOfLostEventsAreLookedUp(t *testing.T) {
	t.Parallel()
	url := newLog(t)
	s := newStore(t, url)
	must(t, s, "row-1", made(uuid.New()))
	for range calm + 3 {
		must(t, s, "row-2", made(uuid.New()))
	}
	lost := must(t, s, "row-1", made(uuid.New()))
	loseTail(t, url, 1)
	for range 2 * calm { // now as many as were there
		_, err := s.Append(t.Context(), eventstore.To("row-2", eventstore.Any, made(uuid.New())))
		require.NoError(t, err)
		x := eventstore.To("row-1", 1, made(uuid.New()))
		x.AsOf = lost.Position
		_, err = s.Append(t.Context(), x)
		var wrong *eventstore.WrongRevision
		require.ErrorAs(t, err, &wrong)
		require.Zero(t, wrong.Actual)
	}
}

// A subscriber that reads from the database recognizes the replaced event by its id, even if no connection was lost.
func TestFollowerDetectsAnotherEventAtItsPosition(t *testing.T) {
	t.Parallel()
	url := newLog(t)
	s, other := newStore(t, url), newStore(t, url)
	for range 20 {
		must(t, s, "row-1", made(uuid.New()))
	}
	there, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		for batch, err := range s.Subscribe(t.Context(), 0) {
			switch {
			case err != nil:
				ended <- err
			case batch.UpTo == 20:
				close(there)
			case batch.UpTo > 20:
				ended <- fmt.Errorf("it received the successors of another event: %d", batch.UpTo)
				return
			}
		}
	}()
	<-there
	pgtest.Exec(t, connect(t, url), `delete from log.event where position > 18`)
	for range 4 {
		must(t, other, "row-2", made(uuid.New()))
	}
	require.ErrorIs(t, <-ended, eventstore.ErrTailLost)
}
