package projections

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/eventstore"
	"bahi/eventstore/postgres"
	"bahi/internal/test/logtest"
	"bahi/internal/test/pgtest"
	"bahi/internal/test/worktest"
)

// fixture is a log with these tests' projections.
type fixture struct {
	pool  *pgxpool.Pool
	store *postgres.Store
	log   *slog.Logger
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	r := &fixture{log: slog.New(slog.DiscardHandler)}
	r.pool, r.store = logtest.Open(t)
	return r
}

// reopen opens the log as another process would.
func (r *fixture) reopen(t *testing.T) {
	t.Helper()
	r.store = logtest.Reopen(t, r.pool)
}

// add opens an account for each name.
func (r *fixture) add(t *testing.T, names ...string) {
	t.Helper()
	require.NoError(t, r.tryAdd(t.Context(), names...))
}

func (r *fixture) tryAdd(ctx context.Context, names ...string) error {
	requests := make([]eventstore.Transaction, len(names))
	for i, name := range names {
		e, err := bank.Ledger.Accounts.Encode(uuid.New(), book.AccountOpened{Name: name}, event.Meta{})
		if err != nil {
			return err
		}
		requests[i] = eventstore.To("bank-"+uuid.NewString(), eventstore.NoStream, e)
	}
	for _, done := range r.store.AppendEach(ctx, requests) {
		if done.Err != nil {
			return done.Err
		}
	}
	return nil
}

// addForeign appends an event of another program.
func (r *fixture) addForeign(t *testing.T) {
	t.Helper()
	r.addTo(t, "guestbook", "GuestSigned", `{}`, `{}`)
}

// addRaw appends an event with these bytes to a bank account's stream.
func (r *fixture) addRaw(t *testing.T, name, data, meta string) {
	t.Helper()
	r.addTo(t, "bank", name, data, meta)
}

func (r *fixture) addTo(t *testing.T, category, name, data, meta string) {
	t.Helper()
	_, err := r.store.Append(t.Context(), eventstore.To(category+"-"+uuid.NewString(), eventstore.NoStream,
		event.Proposed{ID: uuid.New(), Type: name, Data: []byte(data), Meta: []byte(meta)}))
	require.NoError(t, err)
}

func (r *fixture) head(t *testing.T) event.Position {
	t.Helper()
	head, err := r.store.Head(t.Context())
	require.NoError(t, err)
	return head
}

// running is a process that runs projections.
type running struct {
	*Runner

	t    *testing.T
	stop func()
}

func (r *fixture) run(t *testing.T, all ...*Projection) *running {
	t.Helper()
	return r.runWith(t, 0, all...)
}

// runWith runs projections with a limit for the silence of another process.
func (r *fixture) runWith(t *testing.T, silent time.Duration, all ...*Projection) *running {
	t.Helper()
	runner := NewRunner(r.store, r.pool, r.log)
	runner.Silent = silent
	return r.running(t, runner, func(ctx context.Context) error { return runner.Run(ctx, all...) })
}

func (r *fixture) running(t *testing.T, runner *Runner, run func(context.Context) error) *running {
	t.Helper()
	return &running{runner, t, worktest.Background(t, run)}
}

// tend builds and maintains what the registry requests, as a serving process does.
func (r *fixture) tend(t *testing.T, all ...*Projection) {
	t.Helper()
	runner := NewRunner(r.store, r.pool, r.log)
	runner.Now = time.Now
	worktest.Background(t, func(ctx context.Context) error { return runner.MaintainGenerations(ctx, all...) })
}

// until waits for a status.
func (p *running) until(name string, is func(Status) bool) Status {
	p.t.Helper()
	late := time.After(time.Minute)
	for {
		moved := p.Advanced()
		if s := p.Statuses()[name]; is(s) {
			return s
		}
		select {
		case <-moved:
		case <-late:
			require.Fail(p.t, "the status was not reached", "%+v", p.Statuses())
		}
	}
}

func (p *running) reached(name string, at event.Position) Status {
	p.t.Helper()
	return p.until(name, func(s Status) bool { return s.Position >= at && s.Working })
}

const seenDDL = `
create table seen (position bigint not null, name text not null);
-- after fill
create index seen_position_idx on seen (position);`

// seen records the opened accounts each time they are folded. It calls the hook first.
func seen(name string, hook func(b *Batch, name string)) *Projection {
	return Define(name, 1, seenDDL, On(func(b *Batch, e event.Recorded[book.AccountOpened]) {
		if hook != nil {
			hook(b, e.Data.Name)
		}
		b.Exec(`insert into seen (position, name) values ($1, $2)`, int64(e.Position), e.Data.Name)
	}))
}

// names returns what the live generation has recorded, in order.
func (r *fixture) names(t *testing.T, projection string) []string {
	t.Helper()
	live, err := generations(t.Context(), r.pool, `status = 'live' and name = $1`, projection)
	require.NoError(t, err)
	require.Len(t, live, 1)
	return pgtest.Values[string](t, r.pool, `select name from `+live[0].schema()+`.seen order by position`)
}

func (r *fixture) exec(t *testing.T, sql string) int64 {
	t.Helper()
	return pgtest.Exec(t, r.pool, sql)
}

// schemas returns the schemas of generations.
func (r *fixture) schemas(t *testing.T) []string {
	t.Helper()
	return pgtest.Values[string](t, r.pool, `select nspname::text from pg_namespace where nspname ~ '_g[0-9]+$' order by 1`)
}

func numberedNames(from, to int) []string {
	names := make([]string, 0, to-from)
	for i := from; i < to; i++ {
		names = append(names, fmt.Sprintf("n%04d", i))
	}
	return names
}

// serve runs and maintains projections, as a serving process does.
func (r *fixture) serve(t *testing.T, all ...*Projection) *running {
	t.Helper()
	runner := NewRunner(r.store, r.pool, r.log)
	runner.Now, runner.Program = time.Now, "test"
	return r.running(t, runner, func(ctx context.Context) error {
		var tending sync.WaitGroup
		tending.Go(func() { _ = runner.MaintainGenerations(ctx, all...) })
		defer tending.Wait()
		return runner.Run(ctx, all...)
	})
}

// soon waits until a condition holds.
func soon(t *testing.T, what string, is func() bool) {
	t.Helper()
	require.Eventually(t, is, time.Minute, 10*time.Millisecond, what)
}

// being returns the build in progress.
func (r *fixture) being(t *testing.T, p *Projection) (generation, bool) {
	t.Helper()
	g, found, err := r.build(p).underWay(t.Context(), r.pool)
	require.NoError(t, err)
	return g, found
}

// inPhase waits until the build is in a phase.
func (r *fixture) inPhase(t *testing.T, p *Projection, phase string) generation {
	t.Helper()
	var g generation
	soon(t, phase, func() bool {
		var found bool
		g, found = r.being(t, p)
		return found && g.Status == phase
	})
	return g
}

// live returns the live generation.
func (r *fixture) live(t *testing.T, p *Projection) generation {
	t.Helper()
	g, found, err := liveGeneration(t.Context(), r.pool, p)
	require.NoError(t, err)
	require.True(t, found)
	return g
}

// goesLive waits until a generation is live and no other work remains.
func (r *fixture) goesLive(t *testing.T, p *Projection, number int) {
	t.Helper()
	soon(t, "the generation is live", func() bool {
		g, found, err := liveGeneration(t.Context(), r.pool, p)
		require.NoError(t, err)
		return found && g.Generation == number
	})
}

// onlySchemas waits until exactly these generations' schemas exist.
func (r *fixture) onlySchemas(t *testing.T, want ...string) {
	t.Helper()
	soon(t, "exactly these schemas: "+strings.Join(want, ", "), func() bool {
		return strings.Join(r.schemas(t), " ") == strings.Join(want, " ")
	})
}

// kill terminates a random connection of a projection, as an operator or a broken network does.
func (r *fixture) kill(t *testing.T, random *rand.Rand) {
	t.Helper()
	pids := pgtest.Values[int](t, r.pool, `select pid from pg_stat_activity where datname = current_database()
		and application_name like 'bahi projection %' order by pid`)
	if len(pids) > 0 {
		pgtest.Exec(t, r.pool, `select pg_terminate_backend($1)`, pids[random.IntN(len(pids))])
	}
}

// locks returns the number of locks of generations in use.
func (r *fixture) locks(t *testing.T) int {
	t.Helper()
	return pgtest.Value[int](t, r.pool, `select count(*) from pg_locks where locktype = 'advisory' and classid in (8241002,
		8241003)
		and database = (select oid from pg_database where datname = current_database())`)
}

// exact checks that the live tables equal a fold of the log.
func (r *fixture) exact(t *testing.T, p *Projection) {
	t.Helper()
	found, err := r.build(p).Examine(t.Context())
	require.NoError(t, err)
	require.Empty(t, found.Differences)
}

// remarks collects logged warnings.
type remarks struct {
	slog.Handler

	mu  sync.Mutex
	all []string
}

func newRemarks() *remarks { return &remarks{Handler: slog.DiscardHandler} }

func (r *remarks) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

func (r *remarks) Handle(_ context.Context, one slog.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, one.Message)
	return nil
}

func (r *remarks) said() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.all...)
}

func (r *fixture) position(t *testing.T, p *Projection) event.Position {
	t.Helper()
	g, found := r.being(t, p)
	require.True(t, found)
	return g.Position
}

// watch waits in another process for the result of a build.
func (r *fixture) watch(ctx context.Context, p *Projection, g generation) error {
	build := r.build(p)
	build.Stay = true
	conn, err := connect(ctx, build.Config, p)
	if err != nil {
		return err
	}
	return errors.Join(build.until(ctx, conn, g), conn.Close(ctx))
}
