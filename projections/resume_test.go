package projections

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/ledger/book"
	"bahi/internal/test/pgtest"
)

// half interrupts a build in the middle of the fill, as if its process had ended.
func (r *fixture) half(t *testing.T, p *Projection) generation {
	t.Helper()
	build := r.build(p)
	build.How = BuildOptions{Throttle: 20, Partitions: 2} // takes most of a minute
	require.NoError(t, build.Request(t.Context()))
	one := r.serve(t, p)
	soon(t, "the build begins", func() bool { return r.position(t, p) > 0 })
	one.stop()
	g, found := r.being(t, p)
	require.True(t, found)
	require.Equal(t, filling, g.Status)
	require.NoError(t, Throttle(t.Context(), r.pool, p, 0))
	return g
}

func TestBuildStartsOverForOtherTables(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	want := numberedNames(0, 800)
	r.add(t, want...)
	before := seen("seen", nil)
	r.half(t, before)
	after := Define("seen", 1, strings.Replace(seenDDL, "name text not null", "name text not null, length int not null", 1),
		On(func(b *Batch, e event.Recorded[book.AccountOpened]) {
			b.Exec(`insert into seen (position, name, length) values ($1, $2, $3)`, int64(e.Position), e.Data.Name, len(e.Data.Name))
		}))
	r.serve(t, after).reached("seen", 800)
	require.Equal(t, want, r.names(t, "seen"))
	live := r.live(t, after)
	require.Equal(t, after.Hash(), live.DDL)
	require.Equal(t, 1, live.Generation)
	r.exact(t, after)
	length := pgtest.Value[int](t, r.pool, `select sum(length) from seen_g1.seen`)
	require.Equal(t, 5*len(want), length)
}

func TestBuildStopsIfTheLogLostItsTail(t *testing.T) {
	t.Parallel()
	for _, phase := range []string{filling, differs} {
		t.Run(phase, func(t *testing.T) {
			t.Parallel()
			r := newFixture(t)
			p := seen("seen", nil)
			r.add(t, numberedNames(0, 800)...)
			if phase == differs {
				require.NoError(t, r.build(p).Run(t.Context()))
				r.exec(t, `update seen_g1.seen set name = 'Wasp' where position = 1`)
				require.ErrorIs(t, r.build(p).Run(t.Context()), ErrDiffers)
				require.NoError(t, Accept(t.Context(), r.pool, p))
			} else {
				r.half(t, p)
			}
			r.exec(t, `delete from log.event where position > 1`)
			r.reopen(t)
			r.add(t, numberedNames(0, 900)...)
			r.tend(t, p)
			soon(t, "the reason is recorded", func() bool {
				g, found := r.being(t, p)
				require.True(t, found)
				if g.Error != nil {
					require.Contains(t, *g.Error, "the log has no such event there: cancel it and start again")
				}
				return g.Error != nil
			})
			require.NoError(t, r.build(p).Cancel(t.Context()), "the advice in the message helps")
			require.NoError(t, r.build(p).Run(t.Context()))
			require.Len(t, r.names(t, "seen"), 901)
		})
	}
}

// A part may have folded all of its events before another process takes over the build.
func TestPartThatLostItsBuildDoesNotFinishIt(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	p := seen("seen", nil)
	r.add(t, "Ant")
	require.NoError(t, r.build(p).Request(t.Context()))
	conn, err := connect(t.Context(), r.build(p).Config, p)
	require.NoError(t, err)
	defer conn.Close(t.Context())
	g, _ := r.being(t, p)
	s := r.build(p).session(conn, g)
	require.NoError(t, s.own(t.Context()))
	require.NoError(t, r.build(p).makeTables(t.Context(), s))
	parts, err := r.build(p).openParts(t.Context(), s)
	require.NoError(t, err)
	defer parts[0].conn.Close(t.Context())
	require.NoError(t, parts[0].finish(t.Context()))
	r.exec(t, `update projection.generation set owner = gen_random_uuid()`)
	require.ErrorIs(t, parts[0].finish(t.Context()), ErrFenced)
	require.ErrorIs(t, parts[0].apply(t.Context(), r.decoded(t, p)), ErrFenced)
	r.build(p).noteFailure(t.Context(), s, errors.New("of a process that has lost it"))
	g, _ = r.being(t, p)
	require.Nil(t, g.Error)
}

func TestScratchTablesAreLockedBeforeTheyAreVisible(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	p := seen("seen", nil)
	r.add(t, "Ant")
	require.NoError(t, r.build(p).Run(t.Context()))
	conn, err := connect(t.Context(), r.build(p).Config, p)
	require.NoError(t, err)
	g, err := newGeneration(t.Context(), conn, p, r.store.ID(), BuildOptions{}, statusScratch)
	require.NoError(t, err)
	other, err := connect(t.Context(), r.build(p).Config, p)
	require.NoError(t, err)
	defer other.Close(t.Context())
	require.NoError(t, sweep(t.Context(), other, p))
	require.Equal(t, g.Generation, r.of(t, p, g.Generation).Generation, "the generation still exists")
	require.NoError(t, conn.Close(t.Context()))
	soon(t, "the next process drops the leftovers of a check", func() bool {
		require.NoError(t, sweep(t.Context(), other, p))
		all, err := generations(t.Context(), r.pool, `status = 'scratch'`)
		require.NoError(t, err)
		return len(all) == 0
	})
}

// An error of a process that has lost its projection would park the new owner's, if it were recorded.
func TestErrorIsRecordedOnlyOnOwnedTables(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	p := seen("seen", nil)
	require.NoError(t, r.build(p).Run(t.Context()))
	runner := NewRunner(r.store, r.pool, r.log)
	note := func() bool {
		noted, err := registry{runner, p}.note(t.Context(), errors.New("cannot"))
		require.NoError(t, err)
		return noted
	}
	require.False(t, note())
	pgtest.Exec(t, r.pool, `update projection.generation set owner = $1`, runner.owner)
	require.True(t, note())
	r.exec(t, `update projection.generation set error = null, owner = '`+uuid.NewString()+`'`)
	require.False(t, note())
	require.Nil(t, r.live(t, p).Error)
}

func TestFailedIndexIsReportedAndRetried(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	p := Define("seen", 1, "create table seen (position bigint, name text);\n-- after fill\ncreate unique index seen_name_idx on seen "+
		"(name);\n",
		On(func(b *Batch, e event.Recorded[book.AccountOpened]) {
			b.Exec(`insert into seen values ($1, $2)`, int64(e.Position), e.Data.Name)
		}))
	r.add(t, "Ant", "Ant")
	build := r.build(p)
	require.ErrorContains(t, build.Run(t.Context()), "could not create unique index")
	g, found := r.being(t, p)
	require.True(t, found)
	require.Equal(t, indexing, g.Status)
	require.Contains(t, *g.Error, "could not create unique index")
	r.exec(t, `delete from seen_g1.seen where position = 2`)
	r.serve(t, p)
	require.NoError(t, func() error {
		err := Retry(t.Context(), r.pool, p)
		if errors.Is(err, ErrNotParked) { // a starting process retries it by itself
			err = nil
		}
		return err
	}())
	r.goesLive(t, p, 1)
}

// The connection that creates an index may outlive the one that owns the build.
func TestIndexOfALostProcessIsNoFailure(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	p := seen("seen", nil)
	r.add(t, "Ant")
	build := r.build(p)
	made := make(chan error, 1)
	build.Progress = func(now Progress) {
		if now.Phase != indexing {
			return
		}
		tx, err := r.pool.Begin(t.Context())
		if err == nil {
			_, err = tx.Exec(t.Context(), `create index seen_position_idx on seen_g1.seen (position)`)
		}
		if err != nil {
			made <- err
			return
		}
		go func() {
			for waiting := false; !waiting && err == nil; {
				err = r.pool.QueryRow(t.Context(), `select exists (select from pg_locks l join pg_stat_activity a using (pid)
					where not l.granted and a.datname = current_database())`).Scan(&waiting)
			}
			made <- errors.Join(err, tx.Commit(t.Context()))
		}()
	}
	require.ErrorContains(t, build.Run(t.Context()), "pg_class_relname_nsp_index")
	require.NoError(t, <-made)
	g, found := r.being(t, p)
	require.True(t, found)
	require.Nil(t, g.Error)
	r.tend(t, p)
	r.goesLive(t, p, 1)
}

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
	r := newFixture(t)
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
		time.Sleep(8 * progressInterval) // the absence of progress has no signal
		at = r.position(t, p)
		return at == before
	})
	require.Less(t, at, r.head(t))
	require.Never(t, func() bool { return r.position(t, p) != at }, 3*progressInterval, progressInterval/4)
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
			r := newFixture(t)
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
				pgtest.Exec(t, tx, `lock table seen_g1.seen in access exclusive mode`)
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
			require.NoError(t, r.build(p).Cancel(t.Context()))
			require.Equal(t, []string{"seen_g1"}, r.schemas(t))
			require.ErrorIs(t, r.build(p).Cancel(t.Context()), ErrNoBuild)
			require.ErrorIs(t, <-watching, ErrCancelled)
			busy := pgtest.Value[int](t, r.pool, `select count(*) from pg_stat_activity
				where datname = current_database() and state = 'active' and query ~ 'seen_g2|waiting' and pid <> pg_backend_pid()`)
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
	r := newFixture(t)
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
			return found && g.Status == catchingUp && g.Paused
		}
	})
	if err := Resume(t.Context(), r.pool, p); err != nil {
		require.ErrorIs(t, err, ErrNotPaused)
	}
	require.NoError(t, <-done)
	r.add(t, "b")
	run.until("seen", func(s Status) bool { return s.Generation == 2 && s.Position == 2 && !s.Paused })
}
