package reactors

import (
	"context"
	"log/slog"
	"slices"
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
	return Define("greeter", On(func(q *Queue, e event.Recorded[book.AccountOpened]) error {
		if e.Data.Name == "sick" && sick != nil {
			return sick
		}
		q.Add(greet{Account: e.StreamID()})
		return nil
	}))
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

func (r *fixture) head() event.Position {
	r.t.Helper()
	head, err := r.store.Head(r.t.Context())
	require.NoError(r.t, err)
	return head
}

func (r *fixture) exec(sql string, args ...any) int64 {
	r.t.Helper()
	return pgtest.Exec(r.t, r.pool, sql, args...)
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
		moved := p.advanced()
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
