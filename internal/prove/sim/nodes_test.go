package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"bahi/commands"
	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/postgres"
	"bahi/readmodels"
)

// node is a process.
type node struct {
	w    *world
	name string
	stop context.CancelFunc
	life context.Context // of the process
	done sync.WaitGroup

	mu       sync.Mutex
	store    *postgres.Store // nil: not open yet
	commands *commands.Handler
	pool     *pgxpool.Pool
	reader   *readmodels.Reader // nil: not open yet

	followed []event.Stored // events that its follower received
	batches  []int          // lengths of followed at the ends of batches
}

// config is the configuration of every process's pool.
var config = must(pgxpool.ParseConfig("postgres://sim@127.0.0.1:5432/sim?sslmode=disable&pool_max_conns=30"))

// plainVault is a vault without encryption.
type plainVault struct{}

func (plainVault) ForgetNamed() {}

func (plainVault) Seal(context.Context, []*event.Sealed) error         { return nil }
func (plainVault) OpenPersonal(context.Context, []*event.Sealed) error { return nil }

func (plainVault) HMAC(_ context.Context, _ string, parts ...[]byte) ([]byte, error) {
	return bytes.Join(parts, []byte{0}), nil
}

// start starts a process.
func (w *world) start(name string) *node {
	n := &node{w: w, name: name}
	n.life, n.stop = context.WithCancel(context.Background())
	n.done.Go(n.run)
	return n
}

func (n *node) openLog(pool *pgxpool.Pool, quiet *slog.Logger) (*postgres.Store, error) {
	if n.w.db.journal != nil {
		return postgres.OpenJournaled(n.life, pool, quiet, &journalServer{n.w, n.name})
	}
	return postgres.Open(n.life, pool, quiet)
}

func (n *node) run() {
	c := config.Copy()
	c.ConnConfig.DialFunc = n.w.dial(n.name)
	// The pool's choice of a connection would not be the scheduler's. So the caller names one, and dead ones are skipped.
	c.PrepareConn = func(ctx context.Context, conn *pgx.Conn) (bool, error) {
		n.w.name(conn.PgConn().PID(), ctx)
		return true, nil
	}
	c.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return true }
	pool, err := pgxpool.NewWithConfig(n.life, c)
	if err != nil {
		panic(err)
	}
	defer pool.Close()
	quiet := slog.New(slog.DiscardHandler)
	var store *postgres.Store
	for n.life.Err() == nil {
		if store, err = n.openLog(pool, quiet); err == nil {
			break
		}
		pause(n.life, 50*time.Millisecond)
	}
	if store == nil {
		return
	}
	defer store.Close()
	h := commands.New(store, plainVault{}, n.w.clock)
	n.mu.Lock()
	n.store, n.commands, n.pool = store, h, pool
	n.mu.Unlock()
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() {
		for n.life.Err() == nil {
			_ = h.Run(as(n.life, "commands")) // it fails if the log is away at first
			pause(n.life, 50*time.Millisecond)
		}
	})
	all.Go(func() { n.follow(store) })
	all.Go(func() { n.project(store, pool, quiet) })
	<-n.life.Done()
}

type callerKey struct{}

// as returns a context whose queries run on a caller's own connection.
func as(ctx context.Context, caller string) context.Context {
	return context.WithValue(ctx, callerKey{}, caller)
}

func (w *world) name(pid uint32, ctx context.Context) { //nolint:revive // the context is what is looked at
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.sessions {
		if s.pid == pid {
			s.caller, _ = ctx.Value(callerKey{}).(string)
			s.pooled = true
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func (w *world) clock() time.Time { return time.Now() }

// follow follows the log.
func (n *node) follow(store eventstore.Store) {
	for n.life.Err() == nil {
		n.mu.Lock()
		after := event.Position(len(n.followed))
		n.mu.Unlock()
		for batch, err := range store.Subscribe(as(n.life, "follower"), after) {
			if err != nil {
				if errors.Is(err, eventstore.ErrTailLost) {
					n.w.wrongLater("%s: the log lost its tail, although it loses nothing: %v", n.name, err)
				}
				break
			}
			n.mu.Lock()
			n.followed = append(n.followed, batch.Events...)
			n.batches = append(n.batches, len(n.followed))
			n.mu.Unlock()
		}
		pause(n.life, 20*time.Millisecond)
	}
}

// wrongLater calls [world.wrong] for goroutines that do not hold the world's lock.
func (w *world) wrongLater(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrong(format, args...)
}

// restart kills a process and starts another one in its place.
func (w *world) restart(n *node) {
	w.cutOff[n.name] = true
	for _, s := range w.busyFirst() {
		if s.node == n.name {
			if s.asked != nil && w.rng.IntN(2) == 0 {
				s.mute(len(s.asked.ops)) // it was in progress
			} else {
				s.kill()
			}
		}
	}
	n.stop()
	for i, other := range w.nodes {
		if other == n {
			next := w.start(fmt.Sprintf("%s+", n.name))
			w.nodes[i] = next
			w.ended = append(w.ended, n)
		}
	}
}

// open returns the process's parts; nil while it starts.
func (n *node) open() (*postgres.Store, *commands.Handler) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.store, n.commands
}

// request is the context of these tests' commands.
func requestOf(key string) commands.Request {
	return commands.Request{Key: key, Operation: "sim", Fingerprint: []byte(key), Workspace: uuid.UUID{2}}
}
