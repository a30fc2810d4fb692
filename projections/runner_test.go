package projections

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/eventstore"
)

func TestLostConnectionsRepeatNoEffect(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var killed atomic.Int32
	once := func(n int32) bool { return killed.CompareAndSwap(n, n+1) }
	p := seen("seen", func(b *Batch, name string) {
		switch {
		case name == "n0003" && once(0): // before the event
			b.Exec(killSelf)
		case name == "n0005" && once(1): // within the event
			b.Exec(`insert into seen (position, name) values (0, 'never')`)
			b.Exec(killSelf)
		case name == "n0007" && once(2): // after its commit
			b.Exec(`create function pg_temp.die() returns trigger language plpgsql as $$ begin perform pg_terminate_backend(pg_backend_pid()); ` +
				`return null; end $$`)
			b.Exec(`create constraint trigger die after insert on seen initially deferred for each row execute function pg_temp.die()`)
		}
	})
	r.add(t, "first")
	run := r.run(t, p)
	run.reached("seen", r.head(t))
	want := numberedNames(0, 10)
	for _, name := range want {
		r.add(t, name)
		run.reached("seen", r.head(t))
	}
	require.EqualValues(t, 3, killed.Load())
	require.Equal(t, append([]string{"first"}, want...), r.names(t, "seen"))
}

func TestSecondRunnerTakesOver(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := seen("seen", nil)
	one := r.run(t, p)
	one.until("seen", func(s Status) bool { return s.Working })
	r.reopen(t)
	two := r.run(t, p)
	r.add(t, numberedNames(0, 20)...)
	one.reached("seen", r.head(t))
	standing := two.until("seen", func(s Status) bool { return s.Position >= r.head(t) })
	require.False(t, standing.Working)
	require.True(t, standing.Ready)
	require.Equal(t, 1, standing.Generation)

	one.stop()
	r.add(t, numberedNames(20, 40)...)
	two.reached("seen", r.head(t))
	require.ElementsMatch(t, numberedNames(0, 40), r.names(t, "seen"))
	require.Equal(t, []string{"seen_g1"}, r.schemas(t))
}

// hold returns a session on the live generation, as a runner has it.
func (r *rig) hold(t *testing.T, p *Projection) *session {
	t.Helper()
	conn, err := connect(t.Context(), r.pool.Config().ConnConfig, p)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close(context.WithoutCancel(t.Context()))) })
	g, found, err := liveGeneration(t.Context(), conn, p)
	require.NoError(t, err)
	require.True(t, found)
	s := &session{p: p, g: g, owner: uuid.New(), conn: conn}
	require.NoError(t, s.own(t.Context()))
	return s
}

func (r *rig) build(p *Projection) Build {
	return Build{Store: r.store, Config: r.pool.Config().ConnConfig.Copy(), Projection: p, Log: r.log}
}

func (r *rig) decoded(t *testing.T, p *Projection) decoded {
	t.Helper()
	var batch eventstore.Batch
	for e, err := range r.store.ReadAll(t.Context(), 0, eventstore.Forwards) {
		require.NoError(t, err)
		batch.Events, batch.UpTo = append(batch.Events, e), e.Position
	}
	d, err := p.decode(batch, nil)
	require.NoError(t, err)
	return d
}

func TestFencedRunnerWritesNothing(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{
		"another owner":    `update projection.generation set owner = gen_random_uuid()`,
		"paused":           `update projection.generation set paused = true`,
		"another position": `update projection.generation set position = 1`,
		"no generation":    `delete from projection.generation`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			p := seen("seen", nil)
			require.NoError(t, r.build(p).Run(t.Context()))
			s := r.hold(t, p)
			r.add(t, "a", "b")
			require.EqualValues(t, 1, r.exec(t, sql))
			d := r.decoded(t, p)
			require.ErrorIs(t, s.apply(t.Context(), d), ErrFenced)
			require.ErrorIs(t, s.applyFinding(t.Context(), d), ErrFenced)
			require.ErrorIs(t, s.fenced(t.Context()), ErrFenced)
			var count int
			require.NoError(t, r.pool.QueryRow(t.Context(), `select count(*) from seen_g1.seen`).Scan(&count))
			require.Zero(t, count)
		})
	}
}

func TestMissingTablesBlameNoEvent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := seen("seen", nil)
	require.NoError(t, r.build(p).Run(t.Context()))
	s := r.hold(t, p)
	require.NoError(t, r.build(p).Run(t.Context()))
	r.add(t, "a")
	err := s.applyFinding(t.Context(), r.decoded(t, p))
	require.ErrorIs(t, err, ErrFenced)
	_, poisoned := errors.AsType[*poison](err)
	require.False(t, poisoned)
}

func TestRunnerContinuesAfterAnotherOwner(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	run := r.run(t, seen("seen", nil))
	r.add(t, "a")
	run.reached("seen", r.head(t))
	r.exec(t, `update projection.generation set owner = gen_random_uuid()`)
	r.add(t, "b")
	require.Empty(t, run.reached("seen", r.head(t)).Error)
	require.Equal(t, []string{"a", "b"}, r.names(t, "seen"))
}
