package projections

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// rebuilt returns a rebuilt projection whose old generation is kept.
func (r *rig) rebuilt(t *testing.T, p *Projection) {
	t.Helper()
	require.NoError(t, r.build(p).Run(t.Context()))
	build := r.build(p)
	build.How.Keep = time.Hour
	require.NoError(t, build.Run(t.Context()))
}

// of returns a generation.
func (r *rig) of(t *testing.T, p *Projection, number int) generation {
	t.Helper()
	g, found, err := oneGeneration(t.Context(), r.pool, `name = $1 and generation = $2`, p.Name, number)
	require.NoError(t, err)
	require.True(t, found)
	return g
}

func TestKeptGenerationFollowsTheLogUntilItExpires(t *testing.T) {
	t.Parallel()
	r := newRig(t)
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

// A process that waits for another's build may check again only after a further build has replaced it.
func TestAReplacedBuildIsNotBegunAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := seen("seen", nil)
	r.add(t, "Ant")
	r.rebuilt(t, p)
	require.NoError(t, r.watch(t.Context(), p, r.of(t, p, 1)))
	require.Nil(t, r.of(t, p, 1).Error, "it stays ready for a rollback")
}

func TestParkedKeptGenerationExpires(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := seen("seen", nil)
	r.add(t, "Ant")
	r.rebuilt(t, p)
	r.serve(t, p)
	soon(t, "a process follows it", func() bool { return r.of(t, p, 1).Owner != nil })
	// Park it as if it could not fold an event, and its process were gone.
	r.exec(t, `update projection.generation set error = 'cannot', error_position = 2, owner = null where generation = 1`)
	r.exec(t, `update projection.generation set keep_until = now() where generation = 1`)
	r.onlySchemas(t, "seen_g2")
}

func TestKeptGenerationOfAnOlderVersionExpires(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	old, next := seen("seen", nil), seen("seen", nil)
	next.Version = 2
	r.add(t, "Ant")
	r.rebuilt(t, old)
	require.NoError(t, r.build(next).Run(t.Context()))
	r.serve(t, next)
	require.Never(t, func() bool { return len(r.schemas(t)) != 3 }, 2*lookInterval, lookInterval/4)
	r.exec(t, `update projection.generation set keep_until = now() where generation = 1`)
	r.onlySchemas(t, "seen_g2", "seen_g3")
}

func TestRollbackRefusesAParkedGeneration(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var cured atomic.Bool
	cured.Store(true)
	p, broken := seen("seen", nil), seen("seen", poisoned(&cured))
	r.add(t, "Ant")
	r.rebuilt(t, p)
	run := r.run(t, p)
	r.tend(t, broken) // follows with the kept generation
	soon(t, "a process follows it", func() bool { return r.of(t, p, 1).Owner != nil })
	cured.Store(false)
	r.add(t, "error")
	run.reached("seen", 2)
	soon(t, "it is parked", func() bool { return r.of(t, p, 1).Error != nil })
	err := r.build(p).Rollback(t.Context(), time.Hour)
	require.ErrorContains(t, err, "the kept generation has stopped at position 1: event BankAccountOpened at position 2: ERROR: division by "+
		"zero")
	require.Equal(t, 2, r.live(t, p).Generation)
	require.True(t, r.live(t, p).Live)

	cured.Store(true)
	require.NoError(t, Retry(t.Context(), r.pool, p))
	require.NoError(t, r.build(p).Rollback(t.Context(), time.Hour))
	require.Equal(t, 1, r.live(t, p).Generation)
	require.Equal(t, []string{"Ant", "error"}, r.names(t, "seen"))
}

func TestRollbackRefusesTablesOfAnotherLog(t *testing.T) {
	t.Parallel()
	r := newRig(t)
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
	r := newRig(t)
	p := seen("seen", nil)
	r.add(t, "Ant")
	require.NoError(t, r.build(p).Run(t.Context()))
	long, err := r.pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = long.Exec(t.Context(), `select * from seen_g1.seen`)
	require.NoError(t, err)
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
