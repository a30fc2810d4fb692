package reactors

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	views "bahi/readmodels/ops"
)

const (
	// schema is where River's tables are.
	schema = "river"

	// connections is how many to Postgres the jobs have. They are their own, so that no request waits
	// for a job.
	connections = 4

	// pollEvery is how often a process looks for jobs of a kind of which nobody has told it.
	pollEvery = 5 * time.Second

	// cooldown is how long after a fetch the next one may come, and after one notification another: who adds
	// a job sooner tells nobody, and the job waits for the poll. River's own tenth of a second let the second
	// of two who register at once wait five seconds for their mail.
	cooldown = 5 * time.Millisecond

	// softStop is how long running jobs may finish when the process stops; then their contexts end, and
	// what has not come back by hardStop is left to be rescued.
	softStop = 4 * time.Second
	hardStop = 7 * time.Second

	// lostAfter is how long after its longest time a job counts as lost with the process that did it.
	lostAfter = 5 * time.Minute

	// mostStuck is how many jobs that do not heed their contexts are worked around.
	mostStuck = 16
)

// Config is what Jobs are made of.
type Config struct {
	Pool    *pgxpool.Pool // whose database has the jobs
	Workers Workers
	Sweeps  []Sweep
	Now     func() time.Time
	Log     *slog.Logger

	poll time.Duration // 0: pollEvery
}

// Jobs is the queue, and who works on it. Each kind has a River queue of its own: a provider that
// hangs holds up its own kind alone.
type Jobs struct {
	client   *river.Client[pgx.Tx]
	pool     *pgxpool.Pool
	policies map[string]Policy
	metrics  *metrics
	log      *slog.Logger
}

// NewJobs makes the queue. It refuses two workers of one kind, and a sweep that nobody would do.
func NewJobs(ctx context.Context, config Config) (*Jobs, error) {
	j := &Jobs{policies: map[string]Policy{}, metrics: newMetrics(), log: config.Log}
	workers, queues := river.NewWorkers(), map[string]river.QueueConfig{}
	longest := time.Duration(0)
	for _, w := range config.Workers {
		if err := w.add(workers, config.Now); err != nil {
			return nil, fmt.Errorf("worker of %s: %w", w.kind, err)
		}
		j.policies[w.kind] = w.policy
		queues[w.kind] = river.QueueConfig{MaxWorkers: w.policy.AtOnce}
		longest = max(longest, w.policy.Timeout)
	}
	sweeps := make([]*river.PeriodicJob, len(config.Sweeps))
	for i, s := range config.Sweeps {
		policy, known := j.policies[s.args.Kind()]
		if !known {
			return nil, fmt.Errorf("nobody works on sweep %s", s.args.Kind())
		}
		sweeps[i] = s.periodic(policy)
	}
	var err error
	if j.pool, err = ownPool(ctx, config.Pool); err != nil {
		return nil, err
	}
	riverConfig := &river.Config{
		Schema: schema, Logger: slog.New(quiet{config.Log.Handler()}), FetchPollInterval: cmp.Or(config.poll, pollEvery), FetchCooldown: cooldown,
		JobTimeout: longest, RescueStuckJobsAfter: longest + lostAfter, SoftStopTimeout: softStop,
		JobStuckHandler: func(_ context.Context, p river.JobStuckHandlerParams) river.JobStuckHandlerResult {
			return river.JobStuckHandlerResult{AddWorkerSlot: p.TotalStuckJobs <= mostStuck}
		},
		Workers: workers,
	}
	if len(queues) > 0 {
		riverConfig.Queues, riverConfig.PeriodicJobs = queues, sweeps
	}
	if j.client, err = river.NewClient(riverpgxv5.New(j.pool), riverConfig); err != nil {
		j.pool.Close()
		return nil, fmt.Errorf("make the queue of jobs: %w", err)
	}
	return j, nil
}

// ownPool makes a small pool on the same database.
func ownPool(ctx context.Context, like *pgxpool.Pool) (*pgxpool.Pool, error) {
	config := like.Config()
	config.MaxConns, config.MinConns = connections, 0
	config.ConnConfig.RuntimeParams["application_name"] = "bahi jobs"
	// What the views ask of the planner is wrong for a queue's.
	delete(config.ConnConfig.RuntimeParams, "plan_cache_mode")
	delete(config.ConnConfig.RuntimeParams, "enable_seqscan")
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect jobs: %w", err)
	}
	return pool, nil
}

func (s Sweep) periodic(policy Policy) *river.PeriodicJob {
	opts := &river.InsertOpts{
		Queue: s.args.Kind(), MaxAttempts: policy.Attempts, UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: unfinished},
	}
	return river.NewPeriodicJob(river.PeriodicInterval(s.every), func() (river.JobArgs, *river.InsertOpts) { return s.args, opts },
		&river.PeriodicJobOpts{RunOnStart: true})
}

// unfinished are the states of a job that is still to be done, or being done.
var unfinished = []rivertype.JobState{
	rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRetryable, rivertype.JobStateRunning, rivertype.JobStateScheduled,
}

// insert writes jobs, and answers how many were not there yet.
func (j *Jobs) insert(ctx context.Context, tx pgx.Tx, jobs []job) (added int, err error) {
	if len(jobs) == 0 {
		return 0, nil
	}
	all := make([]river.InsertManyParams, len(jobs))
	for i, job := range jobs {
		kind := job.args.Kind()
		policy, known := j.policies[kind]
		if !known {
			return 0, fmt.Errorf("nobody works on jobs of kind %s", kind)
		}
		all[i] = river.InsertManyParams{Args: fromEvent{job.args, job.from.ID}, InsertOpts: &river.InsertOpts{
			Queue: kind, MaxAttempts: policy.Attempts, ScheduledAt: job.at,
			UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: rivertype.JobStates()},
		}}
	}
	results, err := j.client.InsertManyTx(ctx, tx, all)
	if err != nil {
		return 0, fmt.Errorf("add %d jobs: %w", len(jobs), err)
	}
	for _, r := range results {
		if !r.UniqueSkippedAsDuplicate {
			added++
		}
	}
	return added, nil
}

// Run does jobs until ctx ends. Then those under way have a few seconds to finish, after which their
// contexts end: such a job is done again from its beginning, and no attempt is counted. Run ends within
// eight seconds, whatever a job does.
func (j *Jobs) Run(ctx context.Context) error {
	if len(j.policies) == 0 {
		<-ctx.Done()
		return nil
	}
	events, unsubscribe := j.client.Subscribe(
		river.EventKindJobCompleted, river.EventKindJobFailed, river.EventKindJobCancelled, river.EventKindJobSnoozed, river.EventKindJobInterrupted)
	told := make(chan struct{})
	go func() {
		defer close(told)
		for e := range events {
			j.tell(e)
		}
	}()
	defer func() {
		unsubscribe()
		<-told
	}()
	if err := j.client.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("begin to work on jobs: %w", err)
	}
	<-ctx.Done()
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), hardStop)
	defer cancel()
	if err := j.client.Stop(within); err != nil {
		j.log.Error("jobs were still under way when the process stopped; they are done again", "error", err)
	}
	return nil
}

// Close gives up the connections.
func (j *Jobs) Close() {
	closed := make(chan struct{})
	go func() { j.pool.Close(); close(closed) }()
	select {
	case <-closed:
	case <-time.After(time.Second): // a job that does not stop may have one
	}
}

// Retry lets a job that waits or was given up be done at once. [views.ErrNoJob] when there is none;
// a job that is running or done is not to be retried.
func (j *Jobs) Retry(ctx context.Context, id int64) error {
	return j.change(ctx, id, func(tx pgx.Tx, state rivertype.JobState) error {
		switch state {
		case rivertype.JobStateRunning:
			return views.ErrJobRuns
		case rivertype.JobStateCompleted:
			return views.ErrJobDone
		default:
			_, err := j.client.JobRetryTx(ctx, tx, id)
			return err
		}
	})
}

// Cancel ends a job: at once when it waits, and when it is running, by ending its context.
// [views.ErrNoJob] when there is none; one that has ended otherwise stays as it is.
func (j *Jobs) Cancel(ctx context.Context, id int64) error {
	return j.change(ctx, id, func(tx pgx.Tx, state rivertype.JobState) error {
		switch state {
		case rivertype.JobStateCompleted, rivertype.JobStateDiscarded:
			return views.ErrJobEnded
		default:
			_, err := j.client.JobCancelTx(ctx, tx, id)
			return err
		}
	})
}

// change does something to a job whose state stays as it is meanwhile.
func (j *Jobs) change(ctx context.Context, id int64, do func(pgx.Tx, rivertype.JobState) error) error {
	return pgx.BeginFunc(ctx, j.pool, func(tx pgx.Tx) error {
		var state rivertype.JobState
		err := tx.QueryRow(ctx, `select state::text from river.river_job where id = $1 for update`, id).Scan(&state)
		if errors.Is(err, pgx.ErrNoRows) {
			return views.ErrNoJob
		}
		if err != nil {
			return fmt.Errorf("find job %d: %w", id, err)
		}
		return do(tx, state)
	})
}
