package projections

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/signal"
)

// silent is the default of Runner.Silent.
const silent = 15 * time.Second

// tryAgain is the interval at which a runner checks whether it may work.
const tryAgain = 250 * time.Millisecond

// Runner keeps projections up to date, one goroutine each. Several processes may use one database: one works on a projection while the
// others are on standby.
type Runner struct {
	Reveal  Reveal           // nil if no projection has personal values
	Program string           // version of the program, for error reports
	Now     func() time.Time // nil: measure no rates, and no age of positions

	// Silent is the maximum time without progress of a process with events to process. After it, another process takes over. 0: 15 seconds.
	Silent time.Duration

	store  eventstore.Store
	pool   *pgxpool.Pool
	config *pgx.ConnConfig
	log    *slog.Logger
	owner  uuid.UUID

	mu      sync.Mutex
	status  map[string]*Status
	moved   signal.Signal                 // a projection has advanced
	moves   map[string]*signal.Signal     // per projection: closed when it advances
	again   map[string]context.CancelFunc // functions that make a follower read its checkpoint again
	demands map[string]*demand

	asked    chan struct{} // wakes MaintainGenerations
	requests positionRequests
}

// Status is this process's state of a projection.
type Status struct {
	Name       string
	Version    int
	Generation int
	Position   event.Position
	ReadAt     time.Time // when a process on standby read the position; zero: it is of now
	Working    bool      // this process works on it
	Ready      bool      // its tables have reached the log's head as of the start
	Paused     bool      // an operator paused it
	Error      string    // error that stopped the projection
	Parked     bool      // the error requires an operator; otherwise the runner retries
}

// NewRunner returns a runner for the projections' tables in the pool's database.
func NewRunner(store eventstore.Store, pool *pgxpool.Pool, log *slog.Logger) *Runner {
	return &Runner{
		store: store, pool: pool, config: pool.Config().ConnConfig.Copy(), log: log, owner: uuid.New(),
		status: map[string]*Status{}, moves: map[string]*signal.Signal{}, again: map[string]context.CancelFunc{},
		asked: make(chan struct{}, 1), demands: map[string]*demand{}, requests: newPositionRequests(),
	}
}

// Run folds the log into the projections until ctx ends.
func (r *Runner) Run(ctx context.Context, all ...*Projection) error {
	followers := make([]*follower, len(all))
	for i, p := range all {
		followers[i] = &follower{r: r, p: p, k: registry{r, p}, log: r.log.With("projection", p.Name)}
	}
	ctx, cancel := context.WithCancel(ctx)
	var exchanging sync.WaitGroup
	defer exchanging.Wait()
	defer cancel()
	exchanging.Go(func() { r.exchange(ctx) })
	return r.follow(ctx, followers)
}

// follow runs the followers on the log until ctx ends.
func (r *Runner) follow(ctx context.Context, all []*follower) error {
	router, err := message.NewRouter(message.RouterConfig{CloseTimeout: 5 * time.Second}, quiet(r.log))
	if err != nil {
		return fmt.Errorf("create the router: %w", err)
	}
	for _, f := range all {
		r.set(f.p, func(*Status) {})
		router.AddConsumerHandler(f.p.Name, f.p.Name, f, f.handle)
	}
	if err := router.Run(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("follow the log: %w", err)
	}
	return nil
}

// quiet lowers Watermill's own messages to debug.
func quiet(log *slog.Logger) watermill.LoggerAdapter {
	return watermill.NewSlogLoggerWithLevelMapping(log, map[slog.Level]slog.Level{
		slog.LevelInfo: slog.LevelDebug, slog.LevelWarn: slog.LevelDebug, slog.LevelError: slog.LevelDebug,
	})
}

// Statuses returns the states of this process's projections by name.
func (r *Runner) Statuses() map[string]Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make(map[string]Status, len(r.status))
	for name, s := range r.status {
		out[name] = *s
	}
	return out
}

// Advanced returns a channel that is closed when a projection of this process next advances.
func (r *Runner) Advanced() <-chan struct{} { return r.moved.Wait() }

// Follow returns this process's position in a generation (0: the live one), and a channel that is closed when the position next changes. It
// returns false if this process does not fold the generation. The channel is then closed when another process announces the requested
// position; it is nil for an unknown projection. The working process folds events up to the requested position without delay.
func (r *Runner) Follow(name string, generation int, asked event.Position) (at event.Position, moved <-chan struct{}, folds bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.status[name]
	if s == nil {
		return 0, nil, false
	}
	if !s.Working || generation != 0 && s.Generation != generation {
		r.requestPosition(name, asked)
		return 0, r.moves[name].Wait(), false
	}
	r.demands[name].raise(asked)
	return s.Position, r.moves[name].Wait(), true
}

// demandOf returns the demand of a projection's readers.
func (r *Runner) demandOf(p *Projection) *demand {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.demands[p.Name]
}

func (r *Runner) set(p *Projection, change func(*Status)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.status[p.Name]
	if s == nil {
		s = &Status{Name: p.Name, Version: p.Version}
		r.status[p.Name], r.demands[p.Name], r.moves[p.Name] = s, &demand{}, &signal.Signal{}
	}
	change(s)
	r.announceReached(p.Name, s.Position)
	r.moves[p.Name].Notify()
	r.moved.Notify()
}

// read notifies a projection's follower of the live generation. A follower of another generation reads its checkpoint again.
func (r *Runner) read(p *Projection, generation int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.status[p.Name]; s != nil && s.Working && s.Generation != generation && r.again[p.Name] != nil {
		r.again[p.Name]()
	}
}
