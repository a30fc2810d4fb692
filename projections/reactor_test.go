package projections

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/internal/test/pgtest"
)

const openedName = "BankAccountOpened"

// reacting records what a reactor gets, and its transactions' synchronous_commit.
func reacting(t *testing.T, r *fixture) *Reactor {
	t.Helper()
	r.exec(t, `create table public.effect (position bigint not null, waits text not null)`)
	return React("mail", []string{openedName}, func(ctx context.Context, tx pgx.Tx, events []event.Recorded[any]) error {
		for _, e := range events {
			if _, err := tx.Exec(ctx, `insert into effect values ($1, current_setting('synchronous_commit'))`, int64(e.Position)); err != nil {
				return err
			}
		}
		return nil
	})
}

func (r *fixture) react(t *testing.T, all ...*Reactor) *running {
	t.Helper()
	runner := NewRunner(r.store, r.pool, r.log)
	return r.running(t, runner, func(ctx context.Context) error { return runner.React(ctx, all...) })
}

func TestReactorsEffectsWaitForTheDisk(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	r.exec(t, `do $$ begin execute format('alter database %I set synchronous_commit = off', current_database()); end $$`)
	run := r.react(t, reacting(t, r))
	run.until("mail", func(s Status) bool { return s.Ready && s.Working })
	r.add(t, "a", "b")
	run.reached("mail", r.head(t))
	waits := pgtest.Values[string](t, r.pool, `select waits from effect`)
	require.Equal(t, []string{"on", "on"}, waits)
}

func TestReactorsCheckpointPassesIrrelevantEvents(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	run := r.react(t, reacting(t, r))
	run.until("mail", func(s Status) bool { return s.Ready && s.Working })
	for range 20 {
		r.addForeign(t)
	}
	run.reached("mail", 20)
	all, err := Checkpoints(t.Context(), r.pool)
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, event.Position(20), all[0].Position)
	known, err := has(t.Context(), r.store, 20, *all[0].EventID)
	require.NoError(t, err)
	require.True(t, known)
}

func TestFencedReactorHasNoEffect(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	a := reacting(t, r)
	for _, sql := range []string{
		`update reactor.checkpoint set owner = gen_random_uuid()`, `update reactor.checkpoint set position = position + 1`,
		`delete from reactor.checkpoint`,
	} {
		k := reactorRow{Reactor: a, r: NewRunner(r.store, r.pool, r.log), log: r.log}
		conn, err := k.connect(t.Context())
		require.NoError(t, err)
		r.exec(t, `delete from reactor.checkpoint`)
		h, err := k.begin(t.Context(), conn)
		require.NoError(t, err)
		r.add(t, "a", "b")
		require.EqualValues(t, 1, r.exec(t, sql))
		d := r.decoded(t, a.p)
		require.ErrorIs(t, h.apply(t.Context(), d), ErrFenced, sql)
		require.ErrorIs(t, applyIsolating(t.Context(), h, conn, d), ErrFenced, sql)
		require.ErrorIs(t, h.fenced(t.Context()), ErrFenced, sql)
		require.NoError(t, conn.Close(t.Context()))
	}
	require.Zero(t, r.exec(t, `delete from effect`))
}

// rawSeen records each event and its batch.
func rawSeen(name string, hook func(e event.Stored) error) *Projection {
	return Define(name, 1, `create table seen (position bigint primary key, name text not null)`,
		Raw(func(ctx context.Context, b *Batch, events []event.Stored) error {
			for _, e := range events {
				if hook != nil {
					if err := hook(e); err != nil {
						return err
					}
				}
				if _, err := b.Tx.Exec(ctx, `insert into seen (position, name) values ($1, $2)`, int64(e.Position), e.Type+string(e.Data)); err != nil {
					return err
				}
			}
			return nil
		}))
}

func TestRawFoldTakesEventsAsStored(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	p := rawSeen("raw", nil)
	r.addRaw(t, "NobodyKnowsThis", `{"x":  1}`, `{}`)
	run := r.run(t, p)
	run.reached("raw", 1)
	r.addRaw(t, "BankAccountOpened", `{"name":7}`, `{"schema":99}`)
	require.Empty(t, run.reached("raw", 2).Error)
	want := []string{`NobodyKnowsThis{"x":  1}`, `BankAccountOpened{"name":7}`}
	require.Equal(t, want, r.names(t, "raw"))
	require.NoError(t, r.build(p).Run(t.Context()))
	run.reached("raw", 2)
	require.Equal(t, want, r.names(t, "raw"), "a rebuild gives the same tables")
	found, err := r.build(p).Examine(t.Context())
	require.NoError(t, err)
	require.Empty(t, found.Differences)
	for _, size := range []int{1, 2} {
		differences, err := r.build(p).Fold(t.Context(), size, 2)
		require.NoError(t, err)
		require.Empty(t, differences, "an interrupted fill, and batches of %d", size)
	}
}

func TestRawFoldIsParkedAtTheEventAtFault(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	var cured atomic.Bool
	p := rawSeen("raw", func(e event.Stored) error {
		if e.Type == "Bad" && !cured.Load() {
			return errors.New("not this one")
		}
		return nil
	})
	run := r.run(t, p)
	run.until("raw", func(s Status) bool { return s.Ready })
	run.stop()
	for _, name := range []string{"Good", "Bad", "Good"} {
		r.addRaw(t, name, `{}`, `{}`)
	}
	run = r.run(t, p)
	run.until("raw", func(s Status) bool { return s.Error == "event Bad at position 2: not this one" })
	require.EqualValues(t, 1, r.parked(t, "raw").Position)
	require.ErrorContains(t, r.build(p).Run(t.Context()), "event Bad at position 2: not this one")
	cured.Store(true)
	require.NoError(t, Retry(t.Context(), r.pool, p))
	run.reached("raw", 3)
	require.Equal(t, []string{"Good{}", "Bad{}", "Good{}"}, r.names(t, "raw"))
}

func TestRawFoldMustBeTheOnlyOne(t *testing.T) {
	t.Parallel()
	every := Raw(func(context.Context, *Batch, []event.Stored) error { return nil })
	require.Panics(t, func() { Define("two", 1, ``, every, every) })
}
