package esdb_test

import (
	"context"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"bahi/eventstore"
	"bahi/eventstore/esdb"
	"bahi/eventstore/gateway"
	"bahi/eventstore/postgres"
	"bahi/eventstore/storetest"
	"bahi/internal/draws"
	"bahi/internal/pgtest"
	"bahi/migrations"
)

const testKey = "a key & more?"

// TestMain runs the property fewer times than rapid's default: each run goes over TLS to a server and back.
func TestMain(m *testing.M) {
	draws.Default(25)
	os.Exit(m.Run())
}

// server is a gateway to a log in Postgres.
type server struct {
	log     *postgres.Store
	pool    *pgxpool.Pool // of the log's database
	address string
	ca      string // path of ca.crt
	hook    atomic.Pointer[hook]
	deny    atomic.Bool
}

// hook wraps each append of the server.
type hook = func(put func() (eventstore.Appended, error)) (eventstore.Appended, error)

func (s *server) appending(h hook) { s.hook.Store(&h) }

// hooked is the server's log.
type hooked struct {
	eventstore.Store

	server *server
}

func (h hooked) Append(ctx context.Context, t eventstore.Transaction) (eventstore.Appended, error) {
	around := h.server.hook.Load()
	if around == nil {
		return h.Store.Append(ctx, t)
	}
	return (*around)(func() (eventstore.Appended, error) {
		return h.Store.Append(context.WithoutCancel(ctx), t)
	})
}

// AppendEach makes each append of a client's batch go through the hook.
func (h hooked) AppendEach(ctx context.Context, appends []eventstore.Transaction) []eventstore.Result {
	if h.server.hook.Load() == nil {
		return h.Store.AppendEach(ctx, appends)
	}
	results := make([]eventstore.Result, len(appends))
	for i, t := range appends {
		results[i].Appended, results[i].Err = h.Append(ctx, t)
	}
	return results
}

func newServer(t testing.TB, over ...func(eventstore.Store) eventstore.Store) *server {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), pgtest.Template(t, "log", migrations.Up))
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	log, err := postgres.Open(t.Context(), pool, testLog(t))
	require.NoError(t, err)
	t.Cleanup(log.Close)
	dir, err := os.MkdirTemp("", "gateway")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	ca, err := gateway.OpenCA(dir, []string{"127.0.0.1"}, time.Now)
	require.NoError(t, err)
	s := &server{log: log, pool: pool, ca: filepath.Join(dir, "ca.crt")}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.address = listener.Addr().String()
	var served eventstore.Store = hooked{log, s}
	for _, o := range over {
		served = o(served)
	}
	g := gateway.New(gateway.Config{
		Store: served, Writable: true, TLS: ca.TLS(), Log: testLog(t),
		Authenticate: func(_ context.Context, key string) error {
			switch {
			case key != testKey:
				return gateway.ErrUnknownKey
			case s.deny.Load():
				return gateway.ErrNotAllowed
			default:
				return nil
			}
		},
	})
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- g.Serve(ctx, listener) }()
	t.Cleanup(func() { stop(); require.NoError(t, <-ended) })
	return s
}

// url returns a connection string for an address that leads to the server.
func (s *server) url(address string) string {
	return "esdb://" + url.UserPassword("bahi", testKey).String() + "@" + address + "?tlsCAFile=" + s.ca
}

func (s *server) open(t testing.TB, address string) *esdb.Store {
	t.Helper()
	var store *esdb.Store
	require.EventuallyWithT(t, func(c *assert.CollectT) { // a busy machine may need more than the time that an attempt has
		var err error
		store, err = esdb.Open(t.Context(), s.url(address), testLog(t))
		require.NoError(c, err)
	}, time.Minute, 100*time.Millisecond)
	t.Cleanup(store.Close)
	return store
}

func testLog(t testing.TB) *slog.Logger {
	t.Helper()
	return slog.New(slog.NewTextHandler(t.Output(), nil))
}

// The adapter is tested through the official client, TLS, and the gateway to Postgres.
func TestStore(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	storetest.Run(t, storetest.Suite{
		OpaquePositions: true, OneStream: true, AnyRetryFound: true, ConcurrentFirsts: true, EachUntold: true,
		Open: func(t testing.TB) (eventstore.Store, func()) {
			store := s.open(t, s.address)
			return store, store.Close
		},
	})
}
