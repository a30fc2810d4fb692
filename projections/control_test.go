package projections

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
)

func TestALargeTransactionWaitsForAllItsEvents(t *testing.T) {
	t.Parallel()
	c := &control{}
	throttle := 200
	c.obey(generation{buildState: buildState{Throttle: &throttle}})
	began := time.Now()
	require.NoError(t, c.wait(t.Context(), 60))
	require.GreaterOrEqual(t, time.Since(began), 200*time.Millisecond, "60 events at 200 a second, but for those that may come at once")
}

func TestBuildIsPausedAndResumed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := seen("seen", nil)
	want := numberedNames(0, 3000)
	r.add(t, want...)
	require.ErrorIs(t, Throttle(t.Context(), r.pool, p, 1), ErrNoBuild)
	require.ErrorIs(t, Pause(t.Context(), r.pool, p), ErrNotBuilt)
	require.ErrorIs(t, Resume(t.Context(), r.pool, p), ErrNotPaused)
	build := r.build(p)
	build.How = BuildOptions{Throttle: 100, Partitions: 3} // takes half a minute
	require.NoError(t, build.Request(t.Context()))
	r.tend(t, p)
	soon(t, "the build begins", func() bool { return r.position(t, p) > 0 })
	require.NoError(t, Pause(t.Context(), r.pool, p))
	var at event.Position
	soon(t, "the build is paused", func() bool {
		before := at
		time.Sleep(8 * tellInterval) // the absence of progress has no signal
		at = r.position(t, p)
		return at == before
	})
	require.Less(t, at, r.head(t))
	require.Never(t, func() bool { return r.position(t, p) != at }, 3*tellInterval, tellInterval/4)
	require.NoError(t, Throttle(t.Context(), r.pool, p, 0))
	require.NoError(t, Resume(t.Context(), r.pool, p))
	r.goesLive(t, p, 1)
	require.Equal(t, want, r.names(t, "seen"), "each event exactly once")
	require.False(t, r.live(t, p).Paused)
}

// slowly is a projection that is slow while the table slow has a row.
func slowly() *Projection {
	p := seen("seen", func(b *Batch, name string) {
		if name == "n0005" {
			b.Exec(`select pg_sleep(60) where exists (select from public.slow where phase = 'filling')`)
		}
	})
	p.tables += `
create function waiting(bigint) returns bigint immutable language plpgsql as $$
begin
	perform pg_sleep(60) where exists (select from public.slow where phase = 'indexing');
	return 1;
end $$;`
	p.after += `
create index seen_waiting_idx on seen (waiting(position));`
	return p
}

func TestBuildIsCancelledInEachPhase(t *testing.T) {
	t.Parallel()
	for _, phase := range []string{filling, indexing, comparing, differs} {
		t.Run(phase, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			p := slowly()
			r.exec(t, `create table public.slow (phase text)`)
			r.add(t, numberedNames(0, 10)...)
			serving := r.serve(t, p)
			serving.reached("seen", 10)
			free := func() { r.exec(t, `delete from slow`) }
			switch phase {
			case comparing:
				tx, err := r.pool.Begin(t.Context())
				require.NoError(t, err)
				_, err = tx.Exec(t.Context(), `lock table seen_g1.seen in access exclusive mode`)
				require.NoError(t, err)
				free = func() { require.NoError(t, tx.Rollback(t.Context())) }
			case differs:
				r.exec(t, `update seen_g1.seen set name = 'other' where position = 3`)
				free = func() { r.exec(t, `update seen_g1.seen set name = 'n0002' where position = 3`) }
			default:
				r.exec(t, `insert into slow values ('`+phase+`')`)
			}
			build := r.build(p)
			require.NoError(t, build.Request(t.Context()))
			g := r.inPhase(t, p, phase)
			require.ErrorIs(t, build.Request(t.Context()), ErrBuildRuns)
			watching := make(chan error, 1)
			go func() { watching <- r.watch(t.Context(), p, g) }()
			began := time.Now()
			require.NoError(t, r.build(p).Cancel(t.Context()))
			require.Less(t, time.Since(began), cancelTimeout)
			require.Equal(t, []string{"seen_g1"}, r.schemas(t))
			require.ErrorIs(t, r.build(p).Cancel(t.Context()), ErrNoBuild)
			require.ErrorIs(t, <-watching, ErrCancelled)
			var busy int
			require.NoError(t, r.pool.QueryRow(t.Context(), `select count(*) from pg_stat_activity
				where datname = current_database() and state = 'active' and query ~ 'seen_g2|waiting' and pid <> pg_backend_pid()`).Scan(&busy))
			require.Zero(t, busy)

			free()
			require.NoError(t, build.Request(t.Context()), "a new build may start")
			r.goesLive(t, p, 2)
			r.onlySchemas(t, "seen_g2")
			r.add(t, "last")
			serving.until("seen", func(s Status) bool { return s.Generation == 2 && s.Position == 11 })
		})
	}
}

// A pause may arrive when its build has just ended: it must not pause the projection.
func TestLatePauseOfABuildPausesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := seen("seen", nil)
	r.add(t, "a")
	run := r.run(t, p)
	run.reached("seen", 1)
	build := r.build(p)
	late := false
	build.Progress = func(now Progress) {
		if now.Phase == comparing && !late {
			late = true
			require.NoError(t, Pause(t.Context(), r.pool, p))
		}
	}
	done := make(chan error, 1)
	go func() { done <- build.Run(t.Context()) }()
	soon(t, "the pause waits, or was faster", func() bool {
		select {
		case err := <-done:
			done <- err
			return true
		default:
			g, found := r.being(t, p)
			return found && g.phase() == catchingUp && g.Paused
		}
	})
	if err := Resume(t.Context(), r.pool, p); err != nil {
		require.ErrorIs(t, err, ErrNotPaused)
	}
	require.NoError(t, <-done)
	r.add(t, "b")
	run.until("seen", func(s Status) bool { return s.Generation == 2 && s.Position == 2 && !s.Paused })
}
