package projections

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The first process is patient, because on a busy machine the second may be silent as long as a hanging one.
func TestHangingProcessLosesItsProjection(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var hung atomic.Bool
	goOn := make(chan struct{})
	one := r.runWith(t, time.Hour, seen("seen", func(_ *Batch, name string) {
		if name == "hang" && hung.CompareAndSwap(false, true) {
			<-goOn
		}
	}))
	r.add(t, "a")
	one.reached("seen", 1)
	r.reopen(t)
	r.add(t, "hang", "b")
	soon(t, "the process hangs", hung.Load)
	two := r.runWith(t, 300*time.Millisecond, seen("seen", nil))
	two.reached("seen", 3)
	close(goOn)
	r.add(t, "c")
	two.reached("seen", 4)
	one.until("seen", func(s Status) bool { return !s.Working && s.Position == 4 && s.Error == "" })
	require.Equal(t, []string{"a", "hang", "b", "c"}, r.names(t, "seen"))
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
