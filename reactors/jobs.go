package reactors

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"bahi/domain/event"
	"bahi/eventstore/signal"
	"bahi/projections"
	"bahi/readmodels/opsview"
)

const (
	// schema has River's tables.
	schema = "river"

	// connections is the size of the jobs' own connection pool, so that no request waits for a job.
	connections = 4

	// pollInterval is the interval at which a process looks for due jobs that it missed, in one statement for all queues. River's own poll,
	// one statement for each queue, runs every riverPoll intervals.
	pollInterval = time.Second
	riverPoll    = 60

	// cooldown is the minimum interval between two fetches, and between two notifications. A job added within it waits for the poll. River's
	// minimum gives the second of two simultaneous messages the shortest delay.
	cooldown = river.FetchCooldownMin

	// softStop is the time in which running jobs may finish when the process stops. After it, their contexts end. Jobs that have not
	// returned by hardStop are rescued later.
	softStop = 4 * time.Second
	hardStop = 7 * time.Second

	// grace is the time after its timeout in which a job may still record its end. Then it counts as lost with its process, and River, which
	// looks every 30 seconds, runs it again. Until then no node adds a sweep again.
	grace = 5 * time.Second

	// maxStuck limits the running jobs that ignore their contexts.
	maxStuck = 16
)

// Config has the dependencies of Jobs.
type Config struct {
	Pool    *pgxpool.Pool // on the database with the jobs
	Workers Workers
	Sweeps  []Sweep
	Now     func() time.Time
	Log     *slog.Logger

	poll time.Duration // 0: pollInterval
}

// Jobs is the queue and its workers. Each kind has its own River queue: a hanging provider delays only its own kind.
type Jobs struct {
	client   *river.Client[pgx.Tx]
	pool     *pgxpool.Pool
	policies map[string]Policy
	needed   map[string]func(context.Context, event.Position, []job) ([]bool, error)
	poll     time.Duration
	attempts *prometheus.CounterVec
	log      *slog.Logger
}

// NewJobs creates the queue. It returns an error if two workers have one kind or a sweep has no worker.
func NewJobs(ctx context.Context, config Config) (*Jobs, error) {
	j := &Jobs{policies: map[string]Policy{}, needed: map[string]func(context.Context, event.Position, []job) ([]bool, error){},
		poll: cmp.Or(config.poll, pollInterval), attempts: newAttempts(), log: config.Log}
	workers, queues, intervals := river.NewWorkers(), map[string]river.QueueConfig{}, map[string]time.Duration{}
	for _, s := range config.Sweeps {
		intervals[s.args.Kind()] = s.every
	}
	for _, w := range config.Workers {
		w.policy.longest = intervals[w.kind]
		if err := w.add(workers, w.policy, config.Now); err != nil {
			return nil, fmt.Errorf("worker of %s: %w", w.kind, err)
		}
		j.policies[w.kind] = w.policy
		if w.needed != nil {
			j.needed[w.kind] = w.needed
		}
		queues[w.kind] = river.QueueConfig{MaxWorkers: w.policy.MaxConcurrent}
	}
	sweeps := make([]*river.PeriodicJob, len(config.Sweeps))
	for i, s := range config.Sweeps {
		policy, known := j.policies[s.args.Kind()]
		if !known {
			return nil, fmt.Errorf("no worker for sweep %s", s.args.Kind())
		}
		sweeps[i] = s.periodic(policy)
	}
	var err error
	if j.pool, err = ownPool(ctx, config.Pool); err != nil {
		return nil, err
	}
	riverConfig := &river.Config{
		Schema: schema, Logger: slog.New(quiet{config.Log.Handler()}), FetchPollInterval: riverPoll * j.poll,
		FetchCooldown: cooldown,
		JobTimeout:    grace, RescueStuckJobsAfter: grace, // each worker has its own timeout
		SoftStopTimeout: softStop,
		JobStuckHandler: func(_ context.Context, p river.JobStuckHandlerParams) river.JobStuckHandlerResult {
			return river.JobStuckHandlerResult{AddWorkerSlot: p.TotalStuckJobs <= maxStuck}
		},
		Workers: workers, ReindexerIndexNames: slices.DeleteFunc(river.ReindexerIndexNamesDefault(), dropped),
	}
	if len(queues) > 0 {
		riverConfig.Queues, riverConfig.PeriodicJobs = queues, sweeps
	}
	if j.client, err = river.NewClient(riverpgxv5.New(j.pool), riverConfig); err != nil {
		j.pool.Close()
		return nil, fmt.Errorf("create the queue of jobs: %w", err)
	}
	return j, nil
}

// dropped reports whether package migrations drops an index of River's. No query finds jobs by parts of their arguments.
func dropped(index string) bool {
	return index == "river_job_args_index" || index == "river_job_metadata_index"
}

// ownPool creates a small pool on the same database.
func ownPool(ctx context.Context, like *pgxpool.Pool) (*pgxpool.Pool, error) {
	config := like.Config()
	config.MaxConns, config.MinConns = connections, 0
	config.ConnConfig.RuntimeParams["application_name"] = "bahi jobs"
	// The planner settings for views are wrong for a queue.
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

// unfinished are the states of jobs that are waiting or running.
var unfinished = []rivertype.JobState{
	rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRetryable, rivertype.JobStateRunning,
	rivertype.JobStateScheduled,
}

// maxAsked is the timeout of the check which jobs are needed.
const maxAsked = time.Second

// dropUnneeded returns the jobs that are needed.
func (j *Jobs) dropUnneeded(ctx context.Context, jobs []job) []job {
	ctx, cancel := context.WithTimeout(ctx, maxAsked)
	defer cancel()
	asOf, of := event.Position(0), map[string][]int{}
	for i, job := range jobs {
		asOf = max(asOf, job.from.Position)
		if kind := job.args.Kind(); j.needed[kind] != nil {
			of[kind] = append(of[kind], i)
		}
	}
	needless := map[int]bool{}
	for kind, places := range of {
		all := make([]job, len(places))
		for i, place := range places {
			all[i] = jobs[place]
		}
		needed, err := j.needed[kind](ctx, asOf, all)
		if err != nil {
			j.log.Debug("checking whether jobs are needed failed; adding them", "kind", kind, "error", err)
			continue
		}
		for i, place := range places {
			needless[place] = !needed[i]
		}
	}
	var kept []job
	for i, job := range jobs {
		if !needless[i] {
			kept = append(kept, job)
		}
	}
	return kept
}

// insert writes jobs and returns the number of new ones.
func (j *Jobs) insert(ctx context.Context, tx pgx.Tx, jobs []job) (added int, err error) {
	if jobs = j.dropUnneeded(ctx, jobs); len(jobs) == 0 {
		return 0, nil
	}
	all := make([]river.InsertManyParams, len(jobs))
	for i, job := range jobs {
		kind := job.args.Kind()
		policy, known := j.policies[kind]
		if !known {
			return 0, fmt.Errorf("no worker for jobs of kind %s", kind)
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

// start starts the workers. It tries again while Postgres is unreachable or slow, for example after a crash under load, until ctx ends.
func (j *Jobs) start(ctx context.Context) error {
	for {
		err := j.client.Start(context.WithoutCancel(ctx))
		switch {
		case err == nil:
			return nil
		case !projections.IsTransient(err):
			return fmt.Errorf("start the workers: %w", err)
		}
		j.log.Warn("starting the workers failed; trying again", "error", err)
		if signal.Sleep(ctx, time.Second) != nil {
			return nil //nolint:nilerr // the server ends
		}
	}
}

// Run executes jobs until ctx ends. Running jobs then have a few seconds to finish before their contexts end. An interrupted job starts
// again later, and its attempt does not count. Run returns within eight seconds in any case.
func (j *Jobs) Run(ctx context.Context) error {
	if len(j.policies) == 0 {
		<-ctx.Done()
		return nil
	}
	events, unsubscribe := j.client.Subscribe(
		river.EventKindJobCompleted, river.EventKindJobFailed, river.EventKindJobCancelled, river.EventKindJobSnoozed,
		river.EventKindJobInterrupted)
	logged := make(chan struct{})
	go func() {
		defer close(logged)
		for e := range events {
			j.logEnd(e)
		}
	}()
	defer func() {
		unsubscribe()
		<-logged
	}()
	if err := j.start(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	j.notifyDue(ctx)
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), hardStop)
	defer cancel()
	if err := j.client.Stop(within); err != nil {
		j.log.Error("jobs still running at the stop of the process; they will start again", "error", err)
	}
	return nil
}

// notifyDue notifies the producers of the queues that have due jobs, as River does when a job is added, until ctx ends.
func (j *Jobs) notifyDue(ctx context.Context) {
	const notify = `
		select pg_notify('` + schema + `.river_insert', json_build_object('queue', name)::text) from unnest($1::text[]) name
		where exists (select from ` + schema + `.river_job where state = 'available' and queue = name)`
	kinds := slices.Collect(maps.Keys(j.policies))
	for signal.Sleep(ctx, j.poll) == nil {
		if _, err := j.pool.Exec(ctx, notify, kinds); err != nil {
			j.log.Debug("looking for due jobs failed; trying again", "error", err)
		}
	}
}

// Close closes the connections.
func (j *Jobs) Close() {
	closed := make(chan struct{})
	go func() { j.pool.Close(); close(closed) }()
	select {
	case <-closed:
	case <-time.After(time.Second): // a hanging job may hold a connection
	}
}

// Retry makes a waiting or discarded job due at once. It returns [opsview.ErrNoJob] if there is none, and an error if the job is running
// or complete.
func (j *Jobs) Retry(ctx context.Context, id int64) error {
	return j.change(ctx, id, func(tx pgx.Tx, state rivertype.JobState) error {
		switch state {
		case rivertype.JobStateRunning:
			return opsview.ErrJobRuns
		case rivertype.JobStateCompleted:
			return opsview.ErrJobDone
		default:
			_, err := j.client.JobRetryTx(ctx, tx, id)
			return err
		}
	})
}

// Cancel cancels a job: a waiting one at once, a running one by ending its context. It returns [opsview.ErrNoJob] if there is none, and
// leaves a finished job unchanged.
func (j *Jobs) Cancel(ctx context.Context, id int64) error {
	return j.change(ctx, id, func(tx pgx.Tx, state rivertype.JobState) error {
		switch state {
		case rivertype.JobStateCompleted, rivertype.JobStateDiscarded:
			return opsview.ErrJobEnded
		default:
			_, err := j.client.JobCancelTx(ctx, tx, id)
			return err
		}
	})
}

// change runs do while the job's row is locked.
func (j *Jobs) change(ctx context.Context, id int64, do func(pgx.Tx, rivertype.JobState) error) error {
	return pgx.BeginFunc(ctx, j.pool, func(tx pgx.Tx) error {
		var state rivertype.JobState
		err := tx.QueryRow(ctx, `select state::text from river.river_job where id = $1 for update`, id).Scan(&state)
		if errors.Is(err, pgx.ErrNoRows) {
			return opsview.ErrNoJob
		}
		if err != nil {
			return fmt.Errorf("find job %d: %w", id, err)
		}
		return do(tx, state)
	})
}
