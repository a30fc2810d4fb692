package reactors

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bahi/domain/event"
	"bahi/internal/test/logtest"
	"bahi/internal/test/pgtest"
	"bahi/internal/test/worktest"
	"bahi/readmodels"
	"bahi/readmodels/opsview"
)

type hang struct {
	Number int `json:"number"`
}

func (hang) Kind() string { return "hang" }

func TestFailingJobIsRetriedUntilItsAttemptsAreUsedUp(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	var at []time.Time
	var from atomic.Value
	jobs := r.jobs(Config{Workers: Workers{Work(Policy{Attempts: 3, First: 300 * time.Millisecond},
		func(_ context.Context, job Job[greet]) error {
			at = append(at, time.Now())
			from.Store(job.Event)
			if job.Attempt == 2 {
				panic("the provider is not there")
			}
			return errors.New("the provider says no")
		})}})
	run := r.run(jobs, greeter(nil))
	run.until(working)
	stop := worktest.Background(r.t, jobs.Run)
	want := r.add("SBI")
	shown := r.job("greet", "discarded")
	require.Equal(t, 3, shown.Attempt)
	require.Equal(t, 3, shown.MaxAttempts)
	require.NotNil(t, shown.FinishedAt)
	require.Equal(t, "the provider says no", *shown.LastError)
	stop()
	require.Len(t, at, 3)
	require.GreaterOrEqual(t, at[1].Sub(at[0]), 260*time.Millisecond)
	require.GreaterOrEqual(t, at[2].Sub(at[1]), 800*time.Millisecond)
	require.Equal(t, want[0], from.Load().(uuid.UUID).String())
	said := r.said.String()
	require.Equal(t, 2, strings.Count(said, `level=WARN msg="job failed; retrying later"`))
	require.Regexp(t, `level=ERROR msg="job failed for the last time" job=\d+ kind=greet attempt=3 event=`+want[0], said)
	require.Contains(t, said, "the provider is not there")
}

// metric returns the value of a metric with these label values, -1 if there is none.
func metric(t *testing.T, from *prometheus.Registry, name string, labels ...string) float64 {
	t.Helper()
	families, err := from.Gather()
	require.NoError(t, err)
	for _, family := range families {
		for _, m := range family.GetMetric() {
			values := make([]string, len(m.GetLabel()))
			for i, label := range m.GetLabel() {
				values[i] = label.GetValue()
			}
			if family.GetName() == name && slices.Equal(values, labels) {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return -1
}

func TestOutcomesAreCounted(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	jobs := r.jobs(Config{Workers: Workers{
		Work(Policy{First: time.Millisecond}, func(_ context.Context, job Job[greet]) error {
			switch {
			case job.Args.Account == "snooze" && job.Attempt == 1 &&
				pgtest.Exec(t, r.pool, `update river.river_job set metadata = metadata where metadata ? 'snoozes'`) == 0:
				return Snooze(time.Millisecond)
			case job.Args.Account == "fail" && job.Attempt == 1:
				return errors.New("once")
			case job.Args.Account == "hopeless":
				return GiveUp(errors.New("no such person"))
			default:
				return nil
			}
		}),
		Work(Policy{}, func(context.Context, Job[hang]) error { return nil }),
	}})
	for _, account := range []string{"done", "snooze", "fail", "hopeless"} {
		r.insert(jobs, greet{Account: account})
	}
	registry := prometheus.NewRegistry()
	jobs.Register(registry)
	require.InDelta(t, 4, metric(t, registry, "bahi_jobs_waiting", "greet"), 0)
	require.InDelta(t, 0, metric(t, registry, "bahi_jobs_waiting", "hang"), 0)
	worktest.Background(r.t, jobs.Run)
	for outcome, times := range map[string]float64{done: 3, snoozed: 1, failed: 1, cancelled: 1, discarded: -1} {
		require.Eventually(t, func() bool { return metric(t, registry, "bahi_job_attempts_total", "greet", outcome) == times }, time.Minute,
			10*time.Millisecond, outcome)
	}
	require.InDelta(t, 0, metric(t, registry, "bahi_jobs_waiting", "greet"), 0)
	require.InDelta(t, 0, metric(t, registry, "bahi_jobs_waiting", "hang"), 0)
}

func TestAJobWaitsForTablesThatAreNotBuilt(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	var built atomic.Bool
	jobs := r.jobs(Config{Workers: Workers{
		Work(Policy{First: time.Hour}, func(context.Context, Job[greet]) error {
			if built.CompareAndSwap(false, true) {
				return fmt.Errorf("users: %w", readmodels.ErrNotBuilt)
			}
			return nil
		}),
	}})
	r.insert(jobs, greet{Account: "a"})
	registry := prometheus.NewRegistry()
	jobs.Register(registry)
	worktest.Background(r.t, jobs.Run)
	require.Eventually(t, func() bool { return metric(t, registry, "bahi_job_attempts_total", "greet", done) == 1 }, time.Minute,
		10*time.Millisecond)
	require.InDelta(t, 1, metric(t, registry, "bahi_job_attempts_total", "greet", snoozed), 0)
}

func TestHangingProviderDelaysOnlyItsKind(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	held := make(chan struct{}, 100)
	var greeted atomic.Int32
	jobs := r.jobs(Config{Workers: Workers{
		Work(Policy{MaxConcurrent: 2}, func(ctx context.Context, _ Job[hang]) error {
			held <- struct{}{}
			<-ctx.Done()
			return ctx.Err()
		}),
		Work(Policy{}, func(context.Context, Job[greet]) error { greeted.Add(1); return nil }),
	}})
	for i := range 20 {
		r.insert(jobs, hang{Number: i})
	}
	stop := worktest.Background(r.t, jobs.Run)
	<-held
	<-held
	run := r.run(jobs, greeter(nil))
	run.until(working)
	r.add(names(30)...)
	run.reached(logtest.Head(t, r.store))
	require.Eventually(t, func() bool { return greeted.Load() == 30 }, time.Minute, 10*time.Millisecond)
	require.Eventually(t, func() bool { return r.pool.Stat().AcquiredConns() == 0 }, time.Minute, time.Millisecond,
		"jobs must not use the requests' connections")
	stop()
	interrupted := pgtest.Value[int](t, r.pool, `
		select count(*) from river.river_job where kind = 'hang' and state = 'available' and attempt = 0 and errors is null`)
	require.Equal(t, 20, interrupted, "interrupted jobs start again and lose no attempt")
}

func TestStuckJobDelaysTheStopByTenSecondsAtMost(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	never, began := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(never) })
	jobs := r.jobs(Config{Workers: Workers{Work(Policy{}, func(context.Context, Job[hang]) error {
		close(began)
		<-never
		return nil
	})}})
	r.insert(jobs, hang{})
	stop := worktest.Background(r.t, jobs.Run)
	<-began
	stop()
	require.Contains(t, r.said.String(), "jobs still running at the stop of the process")
}

func TestAJobThatWasLostWithItsProcessRunsAgainAfterItsOwnTimeout(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	jobs := r.jobs(Config{Workers: Workers{
		Work(Policy{First: time.Nanosecond, Timeout: 10 * time.Second}, func(context.Context, Job[hang]) error { return nil }),
		Work(Policy{Timeout: time.Hour}, func(context.Context, Job[greet]) error { return nil }),
	}})
	r.insert(jobs, hang{})
	r.insert(jobs, greet{})
	require.EqualValues(t, 2, pgtest.Exec(t, r.pool, `
		update river.river_job set state = 'running', attempt = 1, attempted_at = now() - interval '16 seconds', attempted_by = '{killed}'`))
	worktest.Background(r.t, jobs.Run)
	require.Equal(t, 2, r.job("hang", "completed").Attempt)
	r.job("greet", "running") // it may take an hour
}

func TestSweepRunsWithoutAnEventAndNotTwiceAtOnce(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	release := make(chan struct{})
	var swept atomic.Int32
	jobs := r.jobs(Config{
		Sweeps: []Sweep{Every(50*time.Millisecond, hang{Number: 7})},
		Workers: Workers{Work(Policy{}, func(ctx context.Context, job Job[hang]) error {
			if job.Event != uuid.Nil || job.Args.Number != 7 {
				return errors.New("not the sweep's")
			}
			swept.Add(1)
			select {
			case <-release:
			case <-ctx.Done():
			}
			return nil
		})},
	})
	worktest.Background(r.t, jobs.Run)
	r.job("hang", "running")
	var times int64
	require.Eventually(t, func() bool { times++; return times > 30 }, time.Minute, 10*time.Millisecond)
	r.job("hang", "running") // still the only one
	close(release)
	require.Eventually(t, func() bool { return swept.Load() >= 3 }, time.Minute, 10*time.Millisecond)
}

func TestAFailedSweepRunsAgainAfterItsInterval(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	jobs := r.jobs(Config{
		Sweeps: []Sweep{Every(50*time.Millisecond, hang{})},
		Workers: Workers{Work(Policy{First: time.Hour}, func(_ context.Context, job Job[hang]) error {
			if job.Attempt < 3 {
				return errors.New("of one of many")
			}
			return nil
		})},
	})
	worktest.Background(r.t, jobs.Run)
	require.Equal(t, 3, r.job("hang", "completed").Attempt)
}

func TestWorkersStartAgainAfterALostConnection(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	jobs := r.jobs(Config{})
	r.insert(jobs, greet{})
	tx, err := r.pool.Begin(t.Context())
	require.NoError(t, err)
	defer tx.Rollback(context.WithoutCancel(t.Context()))
	pgtest.Exec(t, tx, `lock table river.river_queue`)
	worktest.Background(r.t, jobs.Run)
	require.Eventually(t, func() bool {
		return pgtest.Exec(t, r.pool, `select pg_terminate_backend(pid) from pg_locks
			where not granted and relation = 'river.river_queue'::regclass`) > 0 &&
			strings.Contains(r.said.String(), "starting the workers failed; trying again")
	}, time.Minute, 10*time.Millisecond)
	require.NoError(t, tx.Rollback(t.Context()))
	r.job("greet", "completed")
}

func TestInvalidQueueIsRefused(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	work := Work(Policy{}, func(context.Context, Job[greet]) error { return nil })
	for why, config := range map[string]Config{
		"worker of greet":            {Workers: Workers{work, work}},
		"no worker for sweep hang":   {Workers: Workers{work}, Sweeps: []Sweep{Every(time.Hour, hang{})}},
		"no worker for sweep greet ": {Sweeps: []Sweep{Every(time.Hour, greet{})}},
	} {
		config.Pool, config.Now, config.Log = r.pool, time.Now, r.log
		_, err := NewJobs(t.Context(), config)
		require.ErrorContains(t, err, strings.TrimSpace(why))
	}
}

type named struct {
	Event string `json:"event_id"`
}

func (named) Kind() string { return "named" }

func TestArgumentsMayNotUseTheEventsField(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	jobs := r.jobs(Config{Workers: Workers{Work(Policy{}, func(context.Context, Job[named]) error { return nil })}})
	err := pgx.BeginFunc(t.Context(), r.pool, func(tx pgx.Tx) error {
		_, err := jobs.insert(t.Context(), tx, []job{{args: named{}, from: event.Recorded[any]{ID: uuid.New()}}})
		return err
	})
	require.ErrorContains(t, err, "arguments of named have a field event_id already")
}

func TestOperatorRetriesAndCancels(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	began := make(chan struct{}, 10)
	jobs := r.jobs(Config{Workers: Workers{
		Work(Policy{Attempts: 1}, func(_ context.Context, job Job[greet]) error {
			if job.Attempt == 1 {
				return errors.New("no")
			}
			return nil
		}),
		Work(Policy{}, func(ctx context.Context, _ Job[hang]) error {
			began <- struct{}{}
			<-ctx.Done()
			return ctx.Err()
		}),
	}})
	require.ErrorIs(t, jobs.Retry(t.Context(), 1), opsview.ErrNoJob)
	require.ErrorIs(t, jobs.Cancel(t.Context(), 1), opsview.ErrNoJob)
	worktest.Background(r.t, jobs.Run)
	r.insert(jobs, greet{})
	given := r.job("greet", "discarded")
	require.ErrorIs(t, jobs.Cancel(t.Context(), given.ID), opsview.ErrJobEnded)
	require.NoError(t, jobs.Retry(t.Context(), given.ID))
	r.job("greet", "completed")
	require.ErrorIs(t, jobs.Retry(t.Context(), given.ID), opsview.ErrJobDone)
	r.insert(jobs, hang{})
	<-began
	running := r.job("hang", "running")
	require.ErrorIs(t, jobs.Retry(t.Context(), running.ID), opsview.ErrJobRuns)
	require.NoError(t, jobs.Cancel(t.Context(), running.ID))
	r.job("hang", "cancelled")
	require.NoError(t, jobs.Cancel(t.Context(), running.ID), "a second cancel changes nothing")
}

func TestBackoffTriplesWithJitter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := Policy{
			Attempts: rapid.IntRange(1, 40).Draw(t, "attempts"),
			First:    time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "first")),
		}.withDefaults()
		attempt := rapid.IntRange(1, 60).Draw(t, "attempt")
		last := max(1, p.Attempts-1)
		want := p.First.Seconds() * math.Pow(3, float64(min(attempt, last)-1))
		want = min(want, time.Duration(math.MaxInt64/2).Seconds())
		got := p.wait(attempt).Seconds()
		require.GreaterOrEqual(t, got, 0.89*want-1e-9)
		require.LessOrEqual(t, got, 1.11*want+1e-9)
	})
	all := time.Duration(0) // 73.8 hours; the jitter adds or removes at most a tenth
	p := Policy{}.withDefaults()
	for attempt := 1; attempt < p.Attempts; attempt++ {
		all += p.wait(attempt)
	}
	require.InDelta(t, 3*24+2, all.Hours(), 8, "retries must outlast an outage over a weekend")
}

func TestQueuesWithDueJobsAreNotified(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	jobs := r.jobs(Config{Workers: Workers{
		Work(Policy{}, func(context.Context, Job[greet]) error { return nil }),
		Work(Policy{}, func(context.Context, Job[hang]) error { return nil }),
	}})
	conn, err := pgx.ConnectConfig(t.Context(), r.pool.Config().ConnConfig)
	require.NoError(t, err)
	defer conn.Close(context.WithoutCancel(t.Context()))
	r.insert(jobs, hang{1}) // its notification comes before the LISTEN
	pgtest.Exec(t, conn, `listen "river.river_insert"`)
	worktest.Background(r.t, func(ctx context.Context) error { jobs.notifyDue(ctx); return nil })
	within, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 3 {
		notice, err := conn.WaitForNotification(within)
		require.NoError(t, err)
		require.JSONEq(t, `{"queue": "hang"}`, notice.Payload)
	}
}
