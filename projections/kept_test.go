package projections

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/ledger/book"
	"bahi/internal/test/pgtest"
)

// rebuilt returns a rebuilt projection whose old generation is kept.
func (r *fixture) rebuilt(t *testing.T, p *Projection) {
	t.Helper()
	require.NoError(t, r.build(p).Run(t.Context()))
	build := r.build(p)
	build.How.Keep = time.Hour
	require.NoError(t, build.Run(t.Context()))
}

// of returns a generation.
func (r *fixture) of(t *testing.T, p *Projection, number int) generation {
	t.Helper()
	g, found, err := oneGeneration(t.Context(), r.pool, `name = $1 and generation = $2`, p.Name, number)
	require.NoError(t, err)
	require.True(t, found)
	return g
}

func TestKeptGenerationFollowsTheLogUntilItExpires(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	p := seen("seen", nil)
	r.add(t, "Ant")
	r.rebuilt(t, p)
	serving := r.serve(t, p)
	r.add(t, "Bee")
	serving.reached("seen", 2)
	soon(t, "the kept generation follows", func() bool { return r.of(t, p, 1).Position == 2 })
	r.exec(t, `update projection.generation set keep_until = now() where keep_until is not null`)
	r.onlySchemas(t, "seen_g2")
	require.ErrorIs(t, r.build(p).Rollback(t.Context(), time.Hour), ErrNoPreviousGeneration)
	r.add(t, "Cat")
	serving.reached("seen", 3)
	require.Equal(t, []string{"Ant", "Bee", "Cat"}, r.names(t, "seen"))
}

// A process that waits for another process's build may look again only when a later build has already replaced it.
func TestAReplacedBuildIsNotBegunAgain(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	p := seen("seen", nil)
	r.add(t, "Ant")
	r.rebuilt(t, p)
	require.NoError(t, r.watch(t.Context(), p, r.of(t, p, 1)))
	require.Nil(t, r.of(t, p, 1).Error, "it stays ready for a rollback")
}

// A kept generation expires even if no process can fold it any more, and if it is of an older version.
func TestEachKeptGenerationExpires(t *testing.T) {
	t.Parallel()
	for name, version := range map[string]int{"parked": 1, "older": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newFixture(t)
			old, next := seen("seen", nil), seen("seen", nil)
			next.Version = version
			r.add(t, "Ant")
			r.rebuilt(t, old)
			left := []string{"seen_g2"}
			if version == 2 {
				require.NoError(t, r.build(next).Run(t.Context()))
				left = append(left, "seen_g3")
				r.serve(t, next)
			} else {
				r.serve(t, old)
				soon(t, "a process follows it", func() bool { return r.of(t, old, 1).Owner != nil })
				// Park it as if it could not fold an event, and its process were gone.
				r.exec(t, `update projection.generation set error = 'cannot', error_position = 2, owner = null where generation = 1`)
			}
			require.Never(t, func() bool { return len(r.schemas(t)) != len(left)+1 }, 2*lookInterval, lookInterval/4)
			r.exec(t, `update projection.generation set keep_until = now() where generation = 1`)
			r.onlySchemas(t, left...)
		})
	}
}

func TestRollbackRefusesAParkedGeneration(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	var cured atomic.Bool
	cured.Store(true)
	p, broken := seen("seen", nil), seen("seen", poisoned(&cured))
	r.add(t, "Ant")
	r.rebuilt(t, p)
	run := r.run(t, p)
	r.tend(t, broken) // keeps the kept generation up to date
	soon(t, "a process follows it", func() bool { return r.of(t, p, 1).Owner != nil })
	cured.Store(false)
	r.add(t, "error")
	run.reached("seen", 2)
	soon(t, "it is parked", func() bool { return r.of(t, p, 1).Error != nil })
	err := r.build(p).Rollback(t.Context(), time.Hour)
	require.ErrorContains(t, err, "the kept generation has stopped at position 1: event BankAccountOpened at position 2: ERROR: division by "+
		"zero")
	require.Equal(t, 2, r.live(t, p).Generation)
	require.Equal(t, statusLive, r.live(t, p).Status)

	cured.Store(true)
	require.NoError(t, Retry(t.Context(), r.pool, p))
	require.NoError(t, r.build(p).Rollback(t.Context(), time.Hour))
	require.Equal(t, 1, r.live(t, p).Generation)
	require.Equal(t, []string{"Ant", "error"}, r.names(t, "seen"))
}

func TestRollbackRefusesTablesOfAnotherLog(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	p := seen("seen", nil)
	r.add(t, "Ant", "Bee")
	require.NoError(t, r.build(p).Run(t.Context()))
	r.exec(t, `delete from log.event where position = 2`)
	r.reopen(t)
	r.add(t, "Cat")
	build := r.build(p)
	build.How.Keep = time.Hour
	require.NoError(t, build.Run(t.Context()), "a build of the current log")
	require.Equal(t, []string{"Ant", "Cat"}, r.names(t, "seen"))
	const want = "is at position 2 with event"
	require.ErrorContains(t, r.build(p).Rollback(t.Context(), time.Hour), want)
	require.Equal(t, 2, r.live(t, p).Generation)
	r.serve(t, p)
	soon(t, "the reason is recorded", func() bool {
		why := r.of(t, p, 1).Error
		if why != nil {
			require.Contains(t, *why, want)
		}
		return why != nil
	})
	require.Equal(t, []string{"Ant", "Cat"}, r.names(t, "seen"))
}

// A check, for example, may read the old tables for a long time.
func TestLongReaderOfOldTablesDelaysNobody(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	p := seen("seen", nil)
	r.add(t, "Ant")
	require.NoError(t, r.build(p).Run(t.Context()))
	long, err := r.pool.Begin(t.Context())
	require.NoError(t, err)
	pgtest.Exec(t, long, `select * from seen_g1.seen`)
	built := make(chan error, 1)
	go func() { built <- r.build(p).Run(t.Context()) }()
	r.goesLive(t, p, 2)
	other := seen("other", nil)
	for range 20 { // a reader that does not know of the new generation yet
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		_, err := r.pool.Exec(ctx, `select * from seen_g1.seen`)
		cancel()
		require.NoError(t, err)
	}
	require.NoError(t, r.build(other).Run(t.Context()))
	require.NoError(t, <-built)
	require.Equal(t, []string{"other_g1", "seen_g1", "seen_g2"}, r.schemas(t))
	require.NoError(t, long.Rollback(t.Context()))
	r.tend(t, p)
	r.onlySchemas(t, "other_g1", "seen_g2")
}

func TestRollbackSwapsLiveAndKept(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	p := seen("seen", nil)
	run := r.run(t, p)
	run.until("seen", func(s Status) bool { return s.Ready })
	r.tend(t, p)
	r.add(t, "Ant")
	b := r.build(p)
	b.How.Keep = time.Hour
	require.ErrorIs(t, b.Rollback(t.Context(), time.Hour), ErrNoPreviousGeneration)
	require.NoError(t, b.Run(t.Context()))
	for _, live := range []int{1, 2, 1} {
		r.add(t, "Bee")
		require.NoError(t, b.Rollback(t.Context(), time.Hour))
		r.add(t, "Cat")
		run.until("seen", func(s Status) bool { return s.Generation == live && s.Position == r.head(t) })
		require.Equal(t, []string{"seen_g1", "seen_g2"}, r.schemas(t))
	}
	require.Equal(t, []string{"Ant", "Bee", "Cat", "Bee", "Cat", "Bee", "Cat"}, r.names(t, "seen"))
}

func TestDifferingBuildWaitsForAnOperator(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	p := seen("seen", nil)
	run := r.run(t, p)
	r.add(t, "Ant", "Bee", "Cat")
	run.reached("seen", 3)
	require.ErrorIs(t, Accept(t.Context(), r.pool, p), ErrNotDiffers)
	_, err := r.build(p).Differences(t.Context())
	require.ErrorIs(t, err, ErrNoBuild)
	r.exec(t, `update seen_g1.seen set name = 'Wasp' where position = 2`)
	r.exec(t, `insert into seen_g1.seen values (3, 'Cat')`)

	require.ErrorIs(t, r.build(p).Run(t.Context()), ErrDiffers)
	g, found := r.being(t, p)
	require.True(t, found)
	require.Equal(t, differs, g.Status)
	differences, err := r.build(p).Differences(t.Context())
	require.NoError(t, err)
	require.Equal(t, []Difference{{Table: "seen", Count: 3, Rows: []DifferentRow{
		{Where: inLog, Row: json.RawMessage(`{"position":2,"name":"Bee"}`)},
		{Where: inLive, Row: json.RawMessage(`{"position":2,"name":"Wasp"}`)},
		{Where: inLive, Row: json.RawMessage(`{"position":3,"name":"Cat"}`)},
	}}}, differences)
	require.Equal(t, []string{"Ant", "Wasp", "Cat", "Cat"}, r.names(t, "seen"), "the live tables are unchanged")
	require.ErrorIs(t, r.build(p).Run(t.Context()), ErrBuildRuns)

	r.tend(t, p)
	r.add(t, "Dog")
	soon(t, "the build follows the log while it waits", func() bool { return r.position(t, p) == 4 })
	require.ErrorIs(t, r.build(p).until(t.Context(), r.hold(t, p).conn, g), ErrDiffers, "a watching process receives the result")
	run.reached("seen", 4)
	require.Equal(t, differs, r.inPhase(t, p, differs).Status)
	require.NoError(t, Accept(t.Context(), r.pool, p))
	r.goesLive(t, p, 2)
	r.add(t, "Emu")
	run.until("seen", func(s Status) bool { return s.Generation == 2 && s.Position == 5 })
	require.Equal(t, []string{"Ant", "Bee", "Cat", "Dog", "Emu"}, r.names(t, "seen"))
	require.Empty(t, r.live(t, p).Differences)
}

// A process that ends does not accept differences.
func TestDifferencesOutliveTheProcess(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	p := seen("seen", nil)
	r.add(t, "Ant")
	one := r.serve(t, p)
	one.reached("seen", 1)
	r.exec(t, `update seen_g1.seen set name = 'Wasp'`)
	require.NoError(t, r.build(p).Request(t.Context()))
	one.Ask()
	r.inPhase(t, p, differs)
	one.stop()
	two := r.serve(t, p)
	r.add(t, "Bee")
	soon(t, "the build follows the log", func() bool { return r.position(t, p) == 2 })
	require.Never(t, func() bool { return r.live(t, p).Generation != 1 }, 2*progressInterval, progressInterval/2)
	two.stop()
	require.NoError(t, Accept(t.Context(), r.pool, p))
	r.serve(t, p)
	r.goesLive(t, p, 2)
	require.Equal(t, time.Duration(0), r.live(t, p).KeepFor)
	require.Equal(t, []string{"Ant", "Bee"}, r.names(t, "seen"))
}

// named returns a version of a projection that records names, each changed by transform, and their lengths.
func named(version int, name func(string) string) *Projection {
	return Define("seen", version, `
create table seen (position bigint not null, name text not null, length int not null);
create table note (position bigint not null, version int not null);
`, On(func(b *Batch, e event.Recorded[book.AccountOpened]) {
		b.Exec(`insert into seen (position, name, length) values ($1, $2, $3)`, int64(e.Position), name(e.Data.Name), version*len(e.Data.Name))
		b.Exec(`insert into note (position, version) values ($1, $2)`, int64(e.Position), version)
	})).Comparable(map[string]string{"seen": "position, name"})
}

func same(name string) string { return name }

func TestCommonColumnsOfANewVersionAreCompared(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	old := named(1, same)
	r.add(t, "Ant", "Bee")
	before := r.serve(t, old)
	before.reached("seen", 2)

	wrong := named(2, func(string) string { return "Wasp" })
	require.ErrorIs(t, r.build(wrong).Run(t.Context()), ErrDiffers)
	differences, err := r.build(wrong).Differences(t.Context())
	require.NoError(t, err)
	require.Len(t, differences, 1)
	require.Equal(t, "seen", differences[0].Table)
	require.EqualValues(t, 4, differences[0].Count)
	require.JSONEq(t, `{"position":1,"name":"Ant"}`, string(differences[0].Rows[0].Row))
	require.JSONEq(t, `{"position":1,"name":"Wasp"}`, string(differences[0].Rows[1].Row))
	require.NoError(t, r.build(wrong).Cancel(t.Context()))

	next := named(2, same)
	require.NoError(t, r.build(next).Run(t.Context()), "undeclared columns may differ")
	after := r.serve(t, next)
	r.add(t, "Cat")
	require.Equal(t, 1, before.reached("seen", 3).Generation)
	require.Equal(t, 2, after.reached("seen", 3).Generation)
	before.stop()
	r.add(t, "Dog")
	after.reached("seen", 4)
	after.stop()
	require.Equal(t, 1, r.serve(t, old).reached("seen", 4).Generation, "the old program keeps its tables")
	r.exact(t, old)
	r.exact(t, next)
}

// The old program may be stopped before the new tables' position: they are compared at that position.
func TestNewVersionIsComparedWithAStoppedOne(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	r.add(t, "Ant", "Bee")
	require.NoError(t, r.build(named(1, same)).Run(t.Context()))
	r.add(t, "Cat")
	late := named(2, func(name string) string {
		if name == "Bee" {
			return "Wasp"
		}
		return name
	})
	require.ErrorIs(t, r.build(late).Run(t.Context()), ErrDiffers)
	require.NoError(t, r.build(late).Cancel(t.Context()))
	unlike := named(2, same).Comparable(nil)
	require.NoError(t, r.build(unlike).Run(t.Context()), "no columns are declared")
	require.EqualValues(t, 3, r.live(t, unlike).Position)
}

func TestOperatorDropsTablesOfAnotherVersion(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	old, next := named(1, same), named(2, same)
	r.add(t, "Ant")
	before := r.serve(t, old)
	before.reached("seen", 1)
	require.NoError(t, r.build(next).Run(t.Context()))
	require.ErrorIs(t, r.build(next).Drop(t.Context(), 2), ErrInUse)
	require.ErrorContains(t, r.build(next).Drop(t.Context(), 7), "seen has no generation 7")
	before.stop()
	require.NoError(t, r.build(next).Drop(t.Context(), 1))
	require.Equal(t, []string{"seen_g2"}, r.schemas(t))
	r.add(t, "Bee")
	require.Equal(t, 3, r.serve(t, old).reached("seen", 2).Generation, "the old program rebuilds its tables")
	r.exact(t, old)
}
