package reactors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/eventstore"
	"bahi/eventstore/postgres"
	"bahi/internal/test/logtest"
	"bahi/internal/test/pgtest"
	"bahi/internal/test/worktest"
	"bahi/projections"
	"bahi/readmodels/opsview"
)

// greet is the job of these tests' reactor: greet the account that was opened.
type greet struct {
	Account string `json:"account"`
}

func (greet) Kind() string { return "greet" }

// greeter returns the reactor. Its reaction to an account named sick is that error.
func greeter(sick error) *Reactor {
	reaction := On(func(q *Queue, e event.Recorded[book.AccountOpened]) { q.Add(greet{Account: e.StreamID()}) })
	well := reaction.on
	reaction.on = func(q *Queue, e event.Recorded[any]) error {
		if event.As[book.AccountOpened](e).Data.Name == "sick" && sick != nil {
			return sick
		}
		return well(q, e)
	}
	return Define("greeter", reaction)
}

// fixture is a log and a database with jobs.
type fixture struct {
	t     *testing.T
	pool  *pgxpool.Pool
	store *postgres.Store
	said  *logtest.Buffer
	log   *slog.Logger
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	r := &fixture{t: t, said: &logtest.Buffer{}}
	r.log = slog.New(slog.NewTextHandler(r.said, nil))
	r.pool, r.store = logtest.Open(t)
	return r
}

// add opens an account for each name and returns the events' ids.
func (r *fixture) add(names ...string) []string {
	r.t.Helper()
	ids, requests := make([]string, len(names)), make([]eventstore.Transaction, len(names))
	for i, name := range names {
		e, err := bank.Ledger.Accounts.Encode(uuid.New(), book.AccountOpened{Name: name}, event.Meta{})
		require.NoError(r.t, err)
		ids[i] = e.ID.String()
		requests[i] = eventstore.To("bank-"+uuid.NewString(), eventstore.NoStream, e)
	}
	for _, done := range r.store.AppendEach(r.t.Context(), requests) {
		require.NoError(r.t, done.Err)
	}
	return ids
}

// events returns the event of each job.
func (r *fixture) events() []string {
	r.t.Helper()
	return pgtest.Values[string](r.t, r.pool, `select args->>'event_id' from river.river_job order by id`)
}

// jobs creates a queue, not yet running. Without workers in config, greetings do nothing.
func (r *fixture) jobs(config Config) *Jobs {
	r.t.Helper()
	if config.Workers == nil {
		config.Workers = Workers{Work(Policy{}, func(context.Context, Job[greet]) error { return nil })}
	}
	config.Pool, config.Now, config.Log, config.poll = r.pool, time.Now, r.log, 100*time.Millisecond
	j, err := NewJobs(r.t.Context(), config)
	require.NoError(r.t, err)
	r.t.Cleanup(j.Close)
	return j
}

// process runs the reactor.
type process struct {
	*Runner

	t    *testing.T
	stop func()
}

func (r *fixture) run(jobs *Jobs, reactor *Reactor) *process {
	r.t.Helper()
	p := &process{Runner: NewRunner(r.store, r.pool, jobs, r.log), t: r.t}
	p.stop = worktest.Background(r.t, func(ctx context.Context) error { return p.Run(ctx, reactor) })
	return p
}

// until waits for a status.
func (p *process) until(is func(projections.Status) bool) projections.Status {
	p.t.Helper()
	late := time.After(time.Minute)
	for {
		moved := p.runner.Advanced()
		if s := p.Statuses()["greeter"]; is(s) {
			return s
		}
		select {
		case <-moved:
		case <-late:
			require.Fail(p.t, "the status was not reached", "%+v", p.Statuses())
		}
	}
}

func working(s projections.Status) bool { return s.Working && s.Ready }

func (p *process) reached(at event.Position) {
	p.t.Helper()
	p.until(func(s projections.Status) bool { return s.Working && s.Position >= at })
}

// job waits until the only job of a kind is in a state.
func (r *fixture) job(kind, state string) opsview.Job {
	r.t.Helper()
	var found []opsview.Job
	require.Eventually(r.t, func() bool {
		var err error
		found, _, err = (&opsview.Jobs{DB: r.pool}).Jobs(r.t.Context(), opsview.Selection{Kind: kind, Page: 1, PageSize: 10})
		return err == nil && len(found) == 1 && found[0].State == state
	}, time.Minute, 10*time.Millisecond, "%s: %+v", state, &found)
	return found[0]
}

// insert adds a job as if it followed from an event.
func (r *fixture) insert(j *Jobs, args Args) {
	r.t.Helper()
	require.NoError(r.t, pgx.BeginFunc(r.t.Context(), r.pool, func(tx pgx.Tx) error {
		_, err := j.insert(r.t.Context(), tx, []job{{args: args, from: event.Recorded[any]{ID: uuid.New()}}})
		return err
	}))
}

func names(n int) []string { return slices.Repeat([]string{"SBI"}, n) }

const kill = `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database()
	and application_name = 'bahi reactor greeter'`

func TestKilledRunnerAddsEachJobOnce(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	jobs, reactor := r.jobs(Config{}), greeter(nil)
	run := r.run(jobs, reactor)
	run.until(working)
	var want []string
	killed := int64(0)
	for round := range 30 {
		want = append(want, r.add(names(10)...)...)
		switch round % 3 {
		case 0:
			killed += pgtest.Exec(t, r.pool, kill)
		case 1:
			run.stop()
			r.store = logtest.Reopen(t, r.pool)
			run = r.run(jobs, reactor)
		default: // kill at a random moment
			run.reached(logtest.Head(t, r.store) - 5)
			killed += pgtest.Exec(t, r.pool, kill)
		}
	}
	run.reached(logtest.Head(t, r.store))
	require.Positive(t, killed)
	require.ElementsMatch(t, want, r.events())
}

func TestAPlacedReactorMissesNoEvent(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	r.add(names(5)...)
	jobs, reactor := r.jobs(Config{}), greeter(nil)
	place := func() { require.NoError(t, NewRunner(r.store, r.pool, jobs, r.log).Place(t.Context(), reactor)) }
	place()
	want := r.add("SBI")
	place() // another process's start does not move it
	run := r.run(jobs, reactor)
	run.reached(logtest.Head(t, r.store))
	run.stop()
	require.Equal(t, want, r.events())

	// the checkpoint of a former log
	pgtest.Exec(t, r.pool, `update reactor.checkpoint set store_id = gen_random_uuid(), position = 1, error = 'sick'`)
	place()
	require.EqualValues(t, 1, pgtest.Exec(t, r.pool, `delete from reactor.checkpoint where store_id = $1 and position = $2 and error is null`,
		r.store.ID(), int64(logtest.Head(t, r.store))))
	require.Contains(t, r.said.String(), "of another log")
}

func TestReactorWithoutACheckpointStartsAtTheHead(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	r.add(names(5)...)
	run := r.run(r.jobs(Config{}), greeter(nil))
	run.until(working)
	want := r.add("SBI")
	run.reached(logtest.Head(t, r.store))
	require.Equal(t, want, r.events())
	require.Contains(t, r.said.String(), `level=INFO msg="reactor starts without a checkpoint" reactor=greeter after=5`)
}

func TestCheckpointOfAnotherLogIsDiscardedWithAWarning(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{
		"another log":          `update reactor.checkpoint set store_id = gen_random_uuid()`,
		"another event":        `update reactor.checkpoint set event_id = gen_random_uuid()`,
		"beyond the log's end": `update reactor.checkpoint set position = 1000`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newFixture(t)
			jobs, reactor := r.jobs(Config{}), greeter(nil)
			run := r.run(jobs, reactor)
			run.until(working)
			want := r.add("SBI")
			run.reached(logtest.Head(t, r.store))
			run.stop()
			require.EqualValues(t, 1, pgtest.Exec(t, r.pool, sql))
			r.add("never greeted")
			run = r.run(jobs, reactor)
			run.until(working)
			want = append(want, r.add("SBI")...)
			run.reached(logtest.Head(t, r.store))
			require.Equal(t, want, r.events())
			require.Contains(t, r.said.String(), `level=WARN msg="reactor's checkpoint does not match the log; starting at the log's head" `+
				`reactor=greeter`)
		})
	}
}

func TestFailedReactionParksTheReactorUntilItIsRepaired(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	jobs := r.jobs(Config{})
	run := r.run(jobs, greeter(errors.New("no words")))
	run.until(working)
	want := append(r.add("SBI"), r.add("sick", "HDFC")...)
	parked := run.until(func(s projections.Status) bool { return s.Error != "" })
	require.Contains(t, parked.Error, "no words")
	require.Equal(t, event.Position(1), parked.Position)
	list := r.parked()
	require.Equal(t, []Progress{
		{Name: "greeter", State: "parked", Position: 1, Error: parked.Error}, {Name: "other", State: "new"},
	}, list)
	run.stop()

	mended := r.run(jobs, greeter(nil))
	mended.reached(logtest.Head(t, r.store))
	require.Equal(t, want, r.events())
}

// parked waits until the reactor's row shows it as parked.
func (r *fixture) parked() (list []Progress) {
	r.t.Helper()
	require.Eventually(r.t, func() bool {
		var err error
		list, err = List(r.t.Context(), r.pool, greeter(nil), Define("other"))
		return err == nil && list[0].State == "parked"
	}, time.Minute, 10*time.Millisecond)
	return list
}

func TestJobWithoutAWorkerParksTheReactor(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	run := r.run(r.jobs(Config{Workers: Workers{}}), greeter(nil))
	run.until(working)
	r.add("SBI")
	parked := run.until(func(s projections.Status) bool { return s.Error != "" })
	require.Contains(t, parked.Error, "no worker for jobs of kind greet")
}

func TestReplayAddsOnlyMissingJobs(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	jobs, reactor := r.jobs(Config{}), greeter(nil)
	old := r.add(names(3)...)
	run := r.run(jobs, reactor)
	run.until(working)
	known := r.add(names(4)...)
	run.reached(logtest.Head(t, r.store))

	var shown event.Position
	done, err := run.Replay(t.Context(), reactor, 1, func(at, _ event.Position) { shown = at })
	require.NoError(t, err)
	require.Equal(t, Replayed{Events: 6, Jobs: 2, UpTo: 7}, done)
	require.Equal(t, event.Position(7), shown)
	require.ElementsMatch(t, append(old[1:], known...), r.events())

	done, err = run.Replay(t.Context(), reactor, 0, nil)
	require.NoError(t, err)
	require.Equal(t, Replayed{Events: 7, Jobs: 1, UpTo: 7}, done)

	pgtest.Exec(t, r.pool, `delete from river.river_job`) // as River deletes done jobs
	done, err = run.Replay(t.Context(), reactor, 0, nil)
	require.NoError(t, err)
	require.Equal(t, 7, done.Jobs)

	pgtest.Exec(t, r.pool, `update reactor.checkpoint set store_id = $1`, uuid.New())
	_, err = run.Replay(t.Context(), reactor, 0, nil)
	require.ErrorIs(t, err, ErrOtherLog)
}

// greetAll is the job of a reactor that greets several accounts at once.
type greetAll struct {
	Names []string `json:"names"`
}

func (greetAll) Kind() string { return "greet" }

// Join accepts three names.
func (g greetAll) Join(other Args) (Args, bool) {
	more, ok := other.(greetAll)
	if !ok || len(g.Names) == 3 {
		return g, false
	}
	return greetAll{append(g.Names, more.Names...)}, true
}

func TestJobsOfEventsThatComeTogetherAreJoined(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	var (
		mu      sync.Mutex
		greeted []string
	)
	jobs := r.jobs(Config{Workers: Workers{Work(Policy{}, func(_ context.Context, job Job[greetAll]) error {
		mu.Lock()
		defer mu.Unlock()
		greeted = append(greeted, job.Args.Names...)
		return nil
	})}})
	reactor := Define("greeter", On(func(q *Queue, e event.Recorded[book.AccountOpened]) {
		q.Add(greetAll{[]string{e.Data.Name}})
	}))
	var names []string
	for i := range 8 {
		names = append(names, fmt.Sprint("a", i))
	}
	r.add(names...)
	done, err := NewRunner(r.store, r.pool, jobs, r.log).Replay(t.Context(), reactor, 0, nil)
	require.NoError(t, err)
	require.Equal(t, 3, done.Jobs)
	worktest.Background(r.t, jobs.Run)
	require.Eventually(t, func() bool { mu.Lock(); defer mu.Unlock(); return len(greeted) == len(names) }, time.Minute, 10*time.Millisecond)
	require.ElementsMatch(t, names, greeted)
}

func TestAReactorThatGathersWaitsForOtherEvents(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	runner := NewRunner(r.store, r.pool, r.jobs(Config{}), r.log)
	patient, prompt := greeter(nil).WithBatchDelay(time.Hour), greeter(nil)
	patient.Name, prompt.Name = "patient", "greeter"
	p := &process{Runner: runner, t: t}
	worktest.Background(r.t, func(ctx context.Context) error { return runner.Run(ctx, patient, prompt) })
	p.until(func(projections.Status) bool {
		return working(p.Statuses()["patient"]) && working(p.Statuses()["greeter"])
	})
	before := logtest.Head(t, r.store)
	ids := r.add("SBI")
	p.reached(logtest.Head(t, r.store))
	require.Equal(t, ids, r.events())
	require.Equal(t, before, p.Statuses()["patient"].Position)
}

func TestJobsThatNobodyWantsAreNotAdded(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	ids := r.add("SBI", "HDFC", "ICICI")
	head := logtest.Head(t, r.store)
	var fails error
	jobs := r.jobs(Config{Workers: Workers{WorkIf(Policy{}, func(_ context.Context, asOf event.Position, all []Wanted[greet]) ([]bool, error) {
		require.Equal(t, head, asOf)
		require.Len(t, all, 3)
		return []bool{false, true, false}, fails
	}, func(context.Context, Job[greet]) error { return nil })}})
	runner := NewRunner(r.store, r.pool, jobs, r.log)
	_, err := runner.Replay(t.Context(), greeter(nil), 0, nil)
	require.NoError(t, err)
	require.Equal(t, ids[1:2], r.events())
	fails = errors.New("the tables are away")
	_, err = runner.Replay(t.Context(), greeter(nil), 0, nil)
	require.NoError(t, err)
	require.ElementsMatch(t, ids, r.events(), "if the check fails, all are added")
}
