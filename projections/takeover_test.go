package projections

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/ledger/book"
)

// soonSilent is the silence after which the second process treats the first as hanging. The first waits longer, because on a busy machine
// the second may be silent as long.
const (
	soonSilent = 300 * time.Millisecond
	patient    = time.Hour
)

// hanging runs two processes, of which the first hangs at the event of a name until the test releases it.
func hanging(t *testing.T, r *rig, start func(silent time.Duration, hook func(name string)) *running,
	reached func(*running, event.Position)) {
	t.Helper()
	var hung atomic.Bool
	goOn := make(chan struct{})
	one := start(patient, func(name string) {
		if name == "hang" && hung.CompareAndSwap(false, true) {
			<-goOn
		}
	})
	r.add(t, "a")
	reached(one, 1)
	r.reopen(t)
	r.add(t, "hang", "b")
	require.Eventually(t, hung.Load, time.Minute, 5*time.Millisecond)
	two := start(soonSilent, func(string) {})
	reached(two, 3)

	close(goOn)
	r.add(t, "c")
	reached(two, 4)
	one.until("seen", func(s Status) bool { return !s.Working && s.Position == 4 && s.Error == "" })
}

func TestHangingProcessLosesItsProjection(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	hanging(t, r, func(silent time.Duration, hook func(string)) *running {
		return r.runWith(t, silent, seen("seen", func(_ *Batch, name string) { hook(name) }))
	}, func(run *running, at event.Position) { run.reached("seen", at) })
	require.Equal(t, []string{"a", "hang", "b", "c"}, r.names(t, "seen"))
}

func TestHangingProcessLosesItsReactor(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.exec(t, `create table public.effect (position bigint not null)`)
	var started bool
	hanging(t, r, func(silent time.Duration, hook func(string)) *running {
		runner := NewRunner(r.store, r.pool, r.log)
		runner.Silent = silent
		run := r.running(t, runner, func(ctx context.Context) error {
			return runner.React(ctx, React("seen", []string{openedName}, func(ctx context.Context, tx pgx.Tx, events []event.Recorded[any]) error {
				for _, e := range events {
					hook(e.Data.(book.AccountOpened).Name)
					if _, err := tx.Exec(ctx, `insert into effect values ($1)`, int64(e.Position)); err != nil {
						return err
					}
				}
				return nil
			}))
		})
		if !started { // at the head, before the event
			run.until("seen", func(s Status) bool { return s.Working })
		}
		started = true
		return run
	}, func(run *running, at event.Position) { run.reached("seen", at) })
	rows, _ := r.pool.Query(t.Context(), `select position from effect order by 1`)
	positions, err := pgx.CollectRows(rows, pgx.RowTo[int])
	require.NoError(t, err)
	require.Equal(t, []int{1, 2, 3, 4}, positions)
}

func TestOnlyAProcessWithEventsToFoldCanHang(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := seen("seen", nil)
	r.add(t, "a")
	holder, err := connect(t.Context(), r.pool.Config().ConnConfig, p)
	require.NoError(t, err)
	defer holder.Close(context.WithoutCancel(t.Context())) // it has ended by then
	locked, err := projectionLock(p).try(t.Context(), holder)
	require.NoError(t, err)
	require.True(t, locked)
	runner := NewRunner(r.store, r.pool, r.log)
	runner.Silent = 1
	f := &follower{r: runner, p: p, k: registry{runner, p}, log: r.log}
	alive := func() bool {
		var count int
		require.NoError(t, r.pool.QueryRow(t.Context(), `select count(*) from pg_stat_activity where pid = $1`,
			holder.PgConn().PID()).Scan(&count))
		return count == 1
	}
	for _, at := range []place{{position: 1}, {position: 0, paused: true}, {position: 0, err: "parked"}} {
		for range 5 {
			require.NoError(t, f.relieve(t.Context(), at))
		}
		require.True(t, alive(), "%+v", at)
	}
	soon(t, "the process lost its lock", func() bool {
		require.NoError(t, f.relieve(t.Context(), place{position: 0}))
		return !alive()
	})
}

func TestOnlyTheLockHoldersConnectionIsTerminated(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := seen("seen", nil)
	conn, err := connect(t.Context(), r.pool.Config().ConnConfig, p)
	require.NoError(t, err)
	defer conn.Close(context.WithoutCancel(t.Context())) // the connection is discarded
	for _, l := range []lock{projectionLock(p), reactorLock("seen")} {
		locked, err := l.try(t.Context(), conn)
		require.NoError(t, err)
		require.True(t, locked)
		ended, err := l.breakIfSilent(t.Context(), r.pool, time.Hour)
		require.NoError(t, err)
		require.False(t, ended, "the holder was not silent long enough")
	}
	for _, l := range []lock{projectionLock(seen("other", nil)), reactorLock("other")} {
		ended, err := l.breakIfSilent(t.Context(), r.pool, 0)
		require.NoError(t, err)
		require.False(t, ended, "the lock is free")
	}
	ended, err := reactorLock("seen").breakIfSilent(t.Context(), r.pool, 0)
	require.NoError(t, err)
	require.True(t, ended)
	require.Error(t, conn.Ping(t.Context()))
}

// Otherwise Postgres would keep the locks of a vanished machine for hours, and no other process could continue.
func TestAProcessOnStandbyOpensNoConnections(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := seen("seen", nil)
	first := r.run(t, p)
	first.until("seen", func(s Status) bool { return s.Working })
	var opened atomic.Int64
	runner := NewRunner(r.store, r.pool, r.log)
	dial := runner.config.DialFunc
	runner.config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		opened.Add(1)
		return dial(ctx, network, address)
	}
	second := r.running(t, runner, func(ctx context.Context) error { return runner.Run(ctx, p) })
	second.until("seen", func(s Status) bool { return s.Ready })
	<-time.After(4 * tryAgain)
	require.Zero(t, opened.Load())
	first.stop()
	second.until("seen", func(s Status) bool { return s.Working })
	require.Positive(t, opened.Load())
}

func TestPostgresDetectsVanishedClients(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), "postgres://127.0.0.1:1/nowhere")
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	config := pool.Config().ConnConfig
	for _, c := range []*pgx.ConnConfig{configured(config, seen("seen", nil)), Forward("feed", true, nil).configured(config)} {
		for _, name := range []string{"tcp_keepalives_idle", "tcp_keepalives_interval", "tcp_keepalives_count", "tcp_user_timeout"} {
			require.NotEmpty(t, c.RuntimeParams[name], name)
		}
	}
}
