package projections

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
)

// serving is a process that runs and maintains projections, with its own store.
type serving struct {
	*running

	tended chan struct{}
}

func (r *rig) serve(t *testing.T, all ...*Projection) *serving {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	runner := NewRunner(r.store, r.pool, r.log)
	runner.Now, runner.Program = time.Now, "test"
	s := &serving{running: &running{Runner: runner, t: t, stopped: make(chan error, 1), cancel: cancel}, tended: make(chan struct{})}
	go func() { s.stopped <- runner.Run(ctx, all...) }()
	go func() { defer close(s.tended); _ = runner.MaintainGenerations(ctx, all...) }()
	t.Cleanup(s.stop)
	return s
}

func (s *serving) stop() {
	s.t.Helper()
	s.running.stop()
	select {
	case <-s.tended:
	case <-time.After(30 * time.Second):
		require.Fail(s.t, "MaintainGenerations did not stop")
	}
}

// soon waits until a condition holds.
func soon(t *testing.T, what string, is func() bool) {
	t.Helper()
	require.Eventually(t, is, time.Minute, 10*time.Millisecond, what)
}

// being returns the build in progress.
func (r *rig) being(t *testing.T, p *Projection) (generation, bool) {
	t.Helper()
	g, found, err := r.build(p).underWay(t.Context(), r.pool)
	require.NoError(t, err)
	return g, found
}

// inPhase waits until the build is in a phase.
func (r *rig) inPhase(t *testing.T, p *Projection, phase string) generation {
	t.Helper()
	var g generation
	soon(t, phase, func() bool {
		var found bool
		g, found = r.being(t, p)
		return found && g.phase() == phase
	})
	return g
}

// live returns the live generation.
func (r *rig) live(t *testing.T, p *Projection) generation {
	t.Helper()
	g, found, err := liveGeneration(t.Context(), r.pool, p)
	require.NoError(t, err)
	require.True(t, found)
	return g
}

// goesLive waits until a generation is live and no other work remains.
func (r *rig) goesLive(t *testing.T, p *Projection, number int) {
	t.Helper()
	soon(t, "the generation is live", func() bool {
		g, found, err := liveGeneration(t.Context(), r.pool, p)
		require.NoError(t, err)
		return found && g.Generation == number
	})
}

// onlySchemas waits until exactly these generations' schemas exist.
func (r *rig) onlySchemas(t *testing.T, want ...string) {
	t.Helper()
	soon(t, "exactly these schemas: "+strings.Join(want, ", "), func() bool {
		return strings.Join(r.schemas(t), " ") == strings.Join(want, " ")
	})
}

// kill terminates a random connection of a projection, as an operator or a broken network does.
func (r *rig) kill(t *testing.T, random *rand.Rand) {
	t.Helper()
	rows, _ := r.pool.Query(t.Context(), `select pid from pg_stat_activity where datname = current_database()
		and application_name like 'bahi projection %' order by pid`)
	pids, err := pgx.CollectRows(rows, pgx.RowTo[int])
	require.NoError(t, err)
	if len(pids) > 0 {
		_, err = r.pool.Exec(t.Context(), `select pg_terminate_backend($1)`, pids[random.IntN(len(pids))])
		require.NoError(t, err)
	}
}

// locks returns the number of locks of generations in use.
func (r *rig) locks(t *testing.T) (n int) {
	t.Helper()
	require.NoError(t, r.pool.QueryRow(t.Context(), `select count(*) from pg_locks where locktype = 'advisory' and classid in (8241002,
		8241003)
		and database = (select oid from pg_database where datname = current_database())`).Scan(&n))
	return n
}

// exact checks that the live tables equal a fold of the log.
func (r *rig) exact(t *testing.T, p *Projection) {
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

func (r *rig) position(t *testing.T, p *Projection) event.Position {
	t.Helper()
	g, found := r.being(t, p)
	require.True(t, found)
	return g.Position
}

// watch waits in another process for the result of a build.
func (r *rig) watch(ctx context.Context, p *Projection, g generation) error {
	build := r.build(p)
	build.Stay = true
	conn, err := connect(ctx, build.Config, p)
	if err != nil {
		return err
	}
	return errors.Join(build.until(ctx, conn, g), conn.Close(ctx))
}
