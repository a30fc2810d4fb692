package projections

import (
	"context"
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

func TestThrottleLimitsTheRateOfABuild(t *testing.T) {
	t.Parallel()
	const perSecond, events = 400, 20_000 // 50 seconds
	r := newRig(t)
	p := seen("seen", nil)
	r.add(t, numberedNames(0, events)...)
	build := r.build(p)
	build.How.Throttle = perSecond
	require.NoError(t, build.Request(t.Context()))
	asked := time.Now()
	r.tend(t, p)
	r.inPhase(t, p, filling)
	for began := time.Now(); time.Since(began) < 2*time.Second; {
		at := r.position(t, p) // read before the clock, so that a slow machine cannot exceed the rate
		require.Less(t, float64(at), perSecond*(time.Since(asked).Seconds()+1)+10*perSecond/throttledBatches)
		time.Sleep(tellInterval)
	}
	soon(t, "the build continues", func() bool { return r.position(t, p) > event.Position(perSecond/4) })
	require.NoError(t, Throttle(t.Context(), r.pool, p, 0))
	r.goesLive(t, p, 1)
	require.Less(t, time.Since(asked), 45*time.Second)
	require.Len(t, r.names(t, "seen"), events)
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

func TestControlEndsWhenTheGenerationIsTaken(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kept   bool
		change string
		ends   bool
	}{
		"a build that is cancelled":            {false, `scratch = true, owner = null`, true},
		"a build that another process took":    {false, `owner = gen_random_uuid()`, true},
		"a build that is live":                 {false, `live = true, owner = null`, false},
		"a kept generation that is live again": {true, `live = true, owner = null, keep_until = null`, true},
		"a kept generation that expired":       {true, `keep_until = now()`, false},
		"a kept generation that is dropped":    {true, `scratch = true, owner = null`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			p := seen("seen", nil)
			require.NoError(t, r.build(p).Request(t.Context()))
			if c.kept {
				r.exec(t, `update projection.generation set keep_until = now() + interval '1 hour'`)
			}
			conn, err := connect(t.Context(), r.build(p).Config, p)
			require.NoError(t, err)
			defer conn.Close(t.Context())
			s := r.build(p).session(conn, r.of(t, p, 1))
			require.NoError(t, s.own(t.Context()))
			watched, control := r.build(p).control(t.Context(), s)
			defer control.end()
			require.EqualValues(t, 1, r.exec(t, `update projection.generation set `+c.change))
			wait := 10 * tellInterval
			if c.ends {
				wait = time.Minute
			}
			select {
			case <-watched.Done():
				require.True(t, c.ends)
				require.ErrorIs(t, context.Cause(watched), ErrFenced)
			case <-time.After(wait):
				require.False(t, c.ends)
			}
		})
	}
}
