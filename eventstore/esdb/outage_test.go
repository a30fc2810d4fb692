package esdb_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/esdb"
)

// wire is a proxy to a server, which a test can cut.
type wire struct {
	listener net.Listener
	server   string

	cuts atomic.Int32 // makes the limits differ

	mu    sync.Mutex
	conns []net.Conn
	cut   bool // close new connections at once
	limit int  // bytes of responses until the next cut; 0: unlimited
}

func newWire(t testing.TB, server string) *wire {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	w := &wire{listener: listener, server: server}
	t.Cleanup(func() { listener.Close(); w.set(func() { w.cut = true }) })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go w.carry(conn)
		}
	}()
	return w
}

func (w *wire) address() string { return w.listener.Addr().String() }

// set changes the wire's settings and closes its connections.
func (w *wire) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
	for _, c := range w.conns {
		c.Close()
	}
	w.conns = nil
}

func (w *wire) carry(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", w.server)
	if err != nil {
		return
	}
	defer server.Close()
	w.mu.Lock()
	cut := w.cut
	w.conns = append(w.conns, client, server)
	w.mu.Unlock()
	if cut {
		return
	}
	go func() {
		defer server.Close()
		_, _ = io.Copy(server, client)
	}()
	buffer := make([]byte, 4096)
	for {
		n, err := server.Read(buffer)
		if err != nil {
			return
		}
		w.mu.Lock()
		if w.limit > 0 {
			if w.limit -= n; w.limit <= 0 {
				w.limit = 8000 + 137*int(w.cuts.Add(1)) // a handshake and some responses
				w.mu.Unlock()
				return
			}
		}
		w.mu.Unlock()
		if _, err := client.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func thing(text string) event.New {
	return event.New{ID: uuid.New(), Type: "ThingDone", Data: fmt.Appendf(nil, `{"text":%q}`, text), Meta: []byte(`{"schema":1}`)}
}

func held(t testing.TB, s eventstore.Store, stream string) (ids []uuid.UUID) {
	t.Helper()
	for e, err := range s.ReadStream(t.Context(), stream, 0, eventstore.Forwards) {
		require.NoError(t, err)
		ids = append(ids, e.ID)
	}
	return ids
}

func TestSubscriptionSurvivesRepeatedCuts(t *testing.T) {
	t.Parallel()
	const count = 3000
	s := newServer(t)
	w := newWire(t, s.address)
	store := s.open(t, w.address())
	after, err := store.Head(t.Context())
	require.NoError(t, err)
	var want []uuid.UUID
	var all sync.WaitGroup
	defer all.Wait()
	batches := make(chan []event.New, count)
	for range count / 10 {
		var batch []event.New
		for range 10 {
			e := thing("followed")
			batch, want = append(batch, e), append(want, e.ID)
		}
		batches <- batch
	}
	close(batches)
	all.Go(func() {
		for batch := range batches {
			if _, err := s.log.Append(t.Context(), eventstore.To("followed-1", eventstore.Any, batch...)); err != nil {
				t.Error(err)
			}
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var got []uuid.UUID
	cuts, last := 0, after
	for batch, err := range store.Subscribe(ctx, after) {
		require.NoError(t, err)
		for _, e := range batch.Events {
			require.Greater(t, e.Position, last)
			last = e.Position
			got = append(got, e.ID)
		}
		if len(got) >= count {
			break
		}
		if len(got) > cuts*count/12 {
			cuts++
			w.set(func() {})
		}
	}
	require.Equal(t, want, got)
	require.Greater(t, cuts, 5)
}

func TestIdleSubscriptionSurvivesACut(t *testing.T) {
	t.Parallel()
	const outage = 10 * time.Second
	s := newServer(t)
	w := newWire(t, s.address)
	store := s.open(t, w.address())
	store.SetOutage(outage)
	_, err := s.log.Append(t.Context(), eventstore.To("quiet-1", eventstore.NoStream, thing("before")))
	require.NoError(t, err)
	after := thing("after")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for batch, err := range store.Subscribe(ctx, 0) {
		require.NoError(t, err)
		switch n := len(batch.Events); {
		case n == 0:
		case batch.Events[n-1].Stream == "quiet-1" && batch.Events[n-1].Revision == 0:
			time.AfterFunc(outage+time.Second, func() {
				w.set(func() {})
				if _, err := s.log.Append(ctx, eventstore.To("quiet-1", 0, after)); err != nil {
					t.Error(err)
				}
			})
		default:
			require.Equal(t, after.ID, batch.Events[n-1].ID)
			return
		}
	}
}

// Each case cuts the connection during an append, at another moment.
func TestInterruptedAppendTakesPlaceOnce(t *testing.T) {
	t.Parallel()
	for name, when := range map[string]func(w *wire, s *server, put func() (eventstore.Appended, error)) (eventstore.Appended, error){
		"after it took place": func(w *wire, _ *server, put func() (eventstore.Appended, error)) (eventstore.Appended, error) {
			defer w.set(func() {})
			return put()
		},
		"before it takes place": func(w *wire, _ *server, put func() (eventstore.Appended, error)) (eventstore.Appended, error) {
			w.set(func() {})
			return put()
		},
		"after its retry was sent": func(w *wire, s *server, put func() (eventstore.Appended, error)) (eventstore.Appended, error) {
			w.set(func() {})
			for batch, err := range s.log.Subscribe(context.Background(), 1) { // the log's id is at 1
				if err != nil || len(batch.Events) > 0 {
					break
				}
			}
			return put()
		},
	} {
		for _, expected := range []eventstore.Expected{eventstore.NoStream, eventstore.Any} {
			t.Run(name+", expecting "+expected.String(), func(t *testing.T) {
				t.Parallel()
				s := newServer(t)
				w := newWire(t, s.address)
				store := s.open(t, w.address())
				var once sync.Once
				late := make(chan struct{})
				s.appending(func(put func() (eventstore.Appended, error)) (done eventstore.Appended, err error) {
					first := false
					once.Do(func() { first = true })
					if !first {
						return put()
					}
					defer close(late)
					return when(w, s, put)
				})
				e := thing("cut")
				done, err := store.Append(t.Context(), eventstore.To("cut-1", expected, e))
				require.NoError(t, err)
				require.Zero(t, done.Revision)
				<-late
				require.Equal(t, []uuid.UUID{e.ID}, held(t, s.log, "cut-1"))
			})
		}
	}
}

func TestAppendsOverAnUnstableLineReportTheirOutcome(t *testing.T) {
	t.Parallel()
	const writers, each = 4, 20
	s := newServer(t)
	w := newWire(t, s.address)
	store := s.open(t, w.address())
	w.set(func() { w.limit = 20000 })
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			stream := fmt.Sprintf("busy-%d", i)
			var there []uuid.UUID
			for len(there) < each {
				e := thing("busy")
				_, err := store.Append(t.Context(), eventstore.To(stream, eventstore.Expected(len(there)-1), e))
				switch {
				case err == nil:
					there = append(there, e.ID)
				case !errors.Is(err, eventstore.ErrUnavailable):
					t.Errorf("a repeatable append must not be in doubt: %v", err)
					return
				}
			}
			if got := held(t, s.log, stream); !slices.Equal(there, got) {
				t.Errorf("%s has %v acknowledged and %v stored", stream, there, got)
			}
		})
	}
	all.Wait()
	require.Positive(t, w.cuts.Load())
}

func TestOutageIsReportedAfterAWait(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	w := newWire(t, s.address)
	store := s.open(t, w.address())
	_, err := store.Append(t.Context(), eventstore.To("away-1", eventstore.NoStream, thing("before")))
	require.NoError(t, err)

	w.set(func() { w.cut = true })
	var all sync.WaitGroup
	for range 50 { // several, because the first finds out for the others
		all.Go(func() {
			began := time.Now()
			if _, err := store.Append(t.Context(), eventstore.To("away-1", 0, thing("meanwhile"))); !errors.Is(err, eventstore.ErrUnavailable) {
				t.Errorf("the server is away: %v", err)
			}
			if took := time.Since(began); took > time.Minute {
				t.Errorf("the report took %s", took)
			}
		})
	}
	all.Wait()
	_, err = store.Head(t.Context())
	require.ErrorIs(t, err, eventstore.ErrUnavailable)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = store.Append(ctx, eventstore.To("away-1", 0, thing("meanwhile")))
	require.ErrorIs(t, err, context.DeadlineExceeded)

	w.set(func() { w.cut = false })
	require.Eventually(t, func() bool {
		_, err = store.Append(t.Context(), eventstore.To("away-1", 0, thing("after")))
		return err == nil
	}, time.Minute, 10*time.Millisecond)
	require.Len(t, held(t, s.log, "away-1"), 2)
}

func TestCloseReturnsSoonDuringAnOutage(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	w := newWire(t, s.address)
	store := s.open(t, w.address())
	w.set(func() { w.cut = true })
	ended := make(chan error, 1)
	go func() {
		for _, err := range store.Subscribe(t.Context(), 0) {
			if err != nil {
				ended <- err
			}
		}
	}()
	_, err := store.Head(t.Context())
	require.ErrorIs(t, err, eventstore.ErrUnavailable)
	began := time.Now()
	store.Close()
	require.Less(t, time.Since(began), 30*time.Second)
	require.ErrorIs(t, <-ended, eventstore.ErrUnavailable)
}

func TestOpenFailsWithoutAServer(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	w := newWire(t, s.address)
	w.set(func() { w.cut = true })
	_, err := esdb.Open(t.Context(), s.url(w.address()), testLog(t))
	require.ErrorIs(t, err, eventstore.ErrUnavailable)
	require.ErrorContains(t, err, w.address())
	_, err = esdb.Open(t.Context(), "esdb://bahi:secret@"+s.address+"?tlsCAFile="+s.ca, testLog(t))
	require.ErrorContains(t, err, "no such API key")
}

func TestRejectedAddressDoesNotQuoteThePassword(t *testing.T) {
	t.Parallel()
	const shape = "EVENTSTORE_URL is not a connection string: esdb://user:password@host:port?options"
	for address, why := range map[string]string{
		"postgres://bahi:123456@localhost":                  shape,
		"esdb://":                                           shape,
		"esdb://bahi:123456/8@localhost":                    shape,
		"esdb://bahi:123456@localhost/x":                    shape,
		"esdb://bahi:a123456/8@localhost":                   shape,
		"esdb://bahi:123456,8@one:1,two:b":                  shape,
		"esdb://bahi:123456@localhost?tlsCAFile=/nowhere":   "EVENTSTORE_URL: open /nowhere: no such file or directory",
		"esdb://bahi:123456@localhost?tls=perhaps":          "EVENTSTORE_URL: Setting 'tls' must be either true or false",
		"esdb://bahi:123456@localhost?keepAliveInterval=-7": "EVENTSTORE_URL: ",
	} {
		_, err := esdb.Open(t.Context(), address, testLog(t))
		require.ErrorContains(t, err, why, address)
		require.NotContains(t, err.Error(), "123456", address)
	}
}
