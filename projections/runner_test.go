package projections

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/eventstore"
	"bahi/internal/test/logtest"
	"bahi/internal/test/pgtest"
	"bahi/readmodels"
)

// hold returns a session on the live generation, as a runner has it.
func (r *fixture) hold(t *testing.T, p *Projection) *session {
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

func (r *fixture) build(p *Projection) Build {
	return Build{Store: r.store, Config: r.pool.Config().ConnConfig.Copy(), Projection: p, Log: r.log}
}

func (r *fixture) decoded(t *testing.T, p *Projection) decoded {
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
	r := newFixture(t)
	for name, sql := range map[string]string{
		"owner":      `update projection.generation set owner = gen_random_uuid() where name = 'owner'`,
		"paused":     `update projection.generation set paused = true where name = 'paused'`,
		"position":   `update projection.generation set position = 1 where name = 'position'`,
		"generation": `delete from projection.generation where name = 'generation'`,
	} {
		p := seen(name, nil)
		require.NoError(t, r.build(p).Run(t.Context()))
		s := r.hold(t, p)
		before := len(r.names(t, name))
		r.add(t, "a", "b")
		require.EqualValues(t, 1, r.exec(t, sql), name)
		d := r.decoded(t, p)
		require.ErrorIs(t, s.apply(t.Context(), d), ErrFenced, name)
		require.ErrorIs(t, applyIsolating(t.Context(), s, s.conn, d), ErrFenced, name)
		require.ErrorIs(t, s.fenced(t.Context()), ErrFenced, name)
		count := pgtest.Value[int](t, r.pool, `select count(*) from `+name+`_g1.seen`)
		require.Equal(t, before, count, name)
	}
}

func TestMissingTablesBlameNoEvent(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	p := seen("seen", nil)
	require.NoError(t, r.build(p).Run(t.Context()))
	s := r.hold(t, p)
	require.NoError(t, r.build(p).Run(t.Context()))
	r.add(t, "a")
	err := applyIsolating(t.Context(), s, s.conn, r.decoded(t, p))
	require.ErrorIs(t, err, ErrFenced)
	_, poisoned := errors.AsType[*poison](err)
	require.False(t, poisoned)
}

func TestRunnerContinuesAfterAnotherOwner(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	run := r.run(t, seen("seen", nil))
	r.add(t, "a")
	run.reached("seen", r.head(t))
	r.exec(t, `update projection.generation set owner = gen_random_uuid()`)
	r.add(t, "b")
	require.Empty(t, run.reached("seen", r.head(t)).Error)
	require.Equal(t, []string{"a", "b"}, r.names(t, "seen"))
}

// The first process is patient, because on a busy machine the second may be silent as long as a hanging one.
func TestHangingProcessLosesItsProjection(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
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
	r := newFixture(t)
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
		count := pgtest.Value[int](t, r.pool, `select count(*) from pg_stat_activity where pid = $1`,
			holder.PgConn().PID())
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
	r := newFixture(t)
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

func TestACheckpointOverEventsOfOthersIsFenced(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	p := seen("seen", nil)
	require.NoError(t, r.build(p).Run(t.Context()))
	s := r.hold(t, p)
	r.add(t, "a")
	upTo := r.head(t)
	for _, c := range []struct {
		paused bool
		err    error
		at     event.Position
	}{{true, ErrFenced, 0}, {false, nil, upTo}} {
		require.EqualValues(t, 1, r.exec(t, fmt.Sprint(`update projection.generation set paused = `, c.paused)))
		require.ErrorIs(t, s.apply(t.Context(), decoded{upTo: upTo}), c.err)
		g, _, err := liveGeneration(t.Context(), s.conn, s.p)
		require.NoError(t, err)
		require.Equal(t, []event.Position{c.at, c.at}, []event.Position{s.g.Position, g.Position})
	}
}

// A connection may be lost before pgx considers it closed.
func TestLostConnectionBlamesNoEvent(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	conn, err := pgx.ConnectConfig(t.Context(), r.pool.Config().ConnConfig.Copy())
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close(t.Context()) })
	pgtest.Exec(t, r.pool, `select pg_terminate_backend($1, 10000)`, conn.PgConn().PID())

	conn.PgConn().Frontend().SendQuery(&pgproto3.Query{String: `select ` + strings.Repeat(" ", 1<<20)})
	err = conn.PgConn().Frontend().Flush()
	require.ErrorContains(t, err, "write failed")
	require.False(t, conn.IsClosed())
	require.True(t, isTransient(conn, err))
	require.ErrorAs(t, orUnreachable(conn, err), new(*unreachable))

	other, err := pgx.ConnectConfig(t.Context(), r.pool.Config().ConnConfig.Copy()) // a build has connections besides its own
	require.NoError(t, err)
	t.Cleanup(func() { other.Close(t.Context()) })
	require.NoError(t, conn.Close(t.Context()))
	_, err = conn.Exec(t.Context(), `select`)
	require.ErrorIs(t, err, pgconn.ErrConnClosed)
	require.True(t, isTransient(other, err))
}

func TestAReadInAnotherProcessAsksForWhatItWaitsForAndIsTold(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	gathers := func() *Projection { return seen("seen", nil).WithBatchDelay(time.Hour) } // events wait until a reader asks
	one := r.run(t, gathers())
	one.until("seen", func(s Status) bool { return s.Working })
	two := r.run(t, gathers())
	two.until("seen", func(s Status) bool { return s.Generation != 0 && !s.Working })
	heard, err := pgx.ConnectConfig(t.Context(), r.pool.Config().ConnConfig)
	require.NoError(t, err)
	defer heard.Close(t.Context())
	pgtest.Exec(t, heard, `listen `+positionsChannel)
	soon(t, "all processes hear each other", func() (all bool) {
		err := r.pool.QueryRow(t.Context(),
			`select count(*) = 3 from pg_stat_activity where datname = current_database() and query = 'listen `+positionsChannel+`'`).Scan(&all)
		return err == nil && all
	})

	reader := readmodels.NewReader(logtest.Snapshots(t, r.pool), map[string]int{"seen": 1}, two.Follow)
	reader.Poll = time.Hour
	var want []string
	for i := range 20 {
		want = append(want, "n"+strconv.Itoa(i))
		r.add(t, want[i])
		f := &readmodels.At{Wait: time.Minute}
		got, err := readmodels.Rows(t.Context(), reader.From(f, "seen"), pgx.RowTo[string],
			`select name from seen.seen order by position`)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.False(t, f.Stale())
		asked, has := "ask seen "+strconv.Itoa(i+1), "has seen "+strconv.Itoa(i+1)
		for _, notice := range []string{asked, has} {
			said, err := heard.WaitForNotification(t.Context())
			require.NoError(t, err)
			require.Equal(t, notice, said.Payload)
		}
	}
}

const unknown = "event BankAccountRetitled at position 3: this program does not know events of this type"

func TestUnknownEventTypeInAFoldedCategoryStopsTheProjection(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	p := seen("seen", nil)
	run := r.run(t, p)
	run.until("seen", func(s Status) bool { return s.Ready })
	r.add(t, "a", "b")
	r.addRaw(t, "BankAccountRetitled", `{}`, `{"schema":1}`)
	r.add(t, "c")

	status := run.until("seen", func(s Status) bool { return s.Error != "" })
	require.Contains(t, status.Error, unknown)
	require.EqualValues(t, 2, status.Position)
	require.Contains(t, r.parked(t, "seen").Error, unknown)
	require.Equal(t, []string{"a", "b"}, r.names(t, "seen"))
	require.ErrorContains(t, r.build(p).Run(t.Context()), unknown, "a rebuild does not skip it either")
}

func TestAProjectionWithoutAGenerationIsNotReady(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	r.add(t, "a")
	var gate sync.Mutex
	p := seen("seen", func(*Batch, string) {
		gate.Lock()
		gate.Unlock() //nolint:gocritic,staticcheck // the fold waits until the test opens the gate
	})
	_, err := SetUnlogged(t.Context(), r.pool, true)
	require.NoError(t, err)
	run := r.run(t, p)
	run.until("seen", func(s Status) bool { return s.Ready })
	gate.Lock()
	r.exec(t, `truncate projection.generation, projection.partition`) // as a crash of Postgres does
	r.exec(t, `select pg_terminate_backend(pid) from pg_stat_activity
		where datname = current_database() and application_name = 'bahi projection seen'`)
	r.add(t, "b")
	run.until("seen", func(s Status) bool { return !s.Ready })
	gate.Unlock()
	run.reached("seen", 2)
	require.Equal(t, []string{"a", "b"}, r.names(t, "seen"))
}

func TestOtherEventTypesAreSkipped(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	run := r.run(t, seen("seen", nil))
	run.until("seen", func(s Status) bool { return s.Ready })
	r.addRaw(t, "BankAccountRenamed", `{"name":"b"}`, `{"schema":1}`)
	r.addForeign(t)
	r.add(t, "a")
	require.Empty(t, run.reached("seen", 3).Error)
}

func TestUnknownEventTypeStopsTheReactor(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	run := r.react(t, React("greeter", []string{openedName}, func(context.Context, pgx.Tx, []event.Recorded[any]) error { return nil }))
	run.until("greeter", func(s Status) bool { return s.Working })
	r.add(t, "a", "b")
	r.addRaw(t, "BankAccountRetitled", `{}`, `{"schema":1}`)
	require.Contains(t, run.until("greeter", func(s Status) bool { return s.Error != "" }).Error, unknown)
}

func TestGenerationOfOtherEventTypesIsNotFolded(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	r.add(t, "a")
	theirs := r.run(t, seen("seen", nil))
	theirs.reached("seen", 1)
	theirs.stop()
	require.Eventually(t, func() (gone bool) { // otherwise ours is on standby, and reports the other's state
		require.NoError(t, r.pool.QueryRow(t.Context(), `select not exists (select from pg_stat_activity
			where datname = current_database() and application_name = 'bahi projection seen')`).Scan(&gone))
		return gone
	}, time.Minute, time.Millisecond)
	ours := Define("seen", 1, seenDDL, On(func(*Batch, event.Recorded[book.AccountRenamed]) {}))
	require.NotEqual(t, seen("seen", nil).Hash(), ours.Hash())
	run := r.run(t, ours)
	r.add(t, "b")
	status := run.until("seen", func(s Status) bool { return s.Error != "" })
	require.Contains(t, status.Error, "was built by a program with other tables or event types")
	require.False(t, status.Ready)
	run.stop()
	theirs = r.run(t, seen("seen", nil))
	theirs.reached("seen", 2)
	require.Equal(t, []string{"a", "b"}, r.names(t, "seen"))
}

func TestHashIgnoresTheOrderOfFolds(t *testing.T) {
	t.Parallel()
	names := bank.Ledger.Accounts.Names()
	hash := func(names ...string) string { return Define("seen", 1, seenDDL, Apply(names, nil)).Hash() }
	require.Equal(t, hash(names[0], names[1]), hash(names[1], names[0]))
	require.NotEqual(t, hash(names[0]), hash(names[1]))
	require.False(t, strings.EqualFold(hash(names[0]), hash(names...)))
}
