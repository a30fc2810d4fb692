package reactors

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/readmodels"
)

// Policy has the retry policy of a kind of job. The zero Policy suits calls of a provider: its attempts end after about three days.
type Policy struct {
	Attempts      int           // total number; 0: 12
	First         time.Duration // delay after the first attempt, which triples each time; 0: 3 s
	Timeout       time.Duration // timeout of one attempt; 0: 30 s
	MaxConcurrent int           // maximum of running jobs of this kind in a process; 0: 4

	longest time.Duration // maximum delay after an attempt: the interval of a sweep; 0: none
}

// defaultTimeout is the timeout of kinds that set no other.
const defaultTimeout = 30 * time.Second

// builtAgain is the delay of a job whose tables are not built yet.
const builtAgain = time.Second

const (
	growth = 3   // factor between successive delays
	jitter = 0.1 // fraction of a delay; spreads the retries of jobs that failed together
)

// withDefaults returns the policy with its defaults.
func (p Policy) withDefaults() Policy {
	p.Attempts, p.First = cmp.Or(p.Attempts, 12), cmp.Or(p.First, 3*time.Second)
	p.Timeout, p.MaxConcurrent = cmp.Or(p.Timeout, defaultTimeout), cmp.Or(p.MaxConcurrent, 4)
	return p
}

// wait returns the delay after an attempt, counted from 1. It stops growing at the policy's last attempt, because an operator may add
// attempts.
func (p Policy) wait(attempt int) time.Duration {
	n := max(0, min(attempt, p.Attempts-1)-1)
	seconds := p.First.Seconds() * math.Pow(growth, float64(n))
	seconds *= 1 + jitter*(2*rand.Float64()-1) //nolint:gosec // G404: it only spreads load
	return time.Duration(math.Min(seconds*float64(time.Second), float64(cmp.Or(p.longest, math.MaxInt64/2))))
}

// Job is one job to do.
type Job[A Args] struct {
	ID      int64
	Attempt int       // from 1
	Event   uuid.UUID // its event; uuid.Nil for a sweep
	Args    A
}

// Worker executes jobs of one kind.
type Worker struct {
	kind   string
	policy Policy
	needed func(context.Context, event.Position, []job) ([]bool, error) // decides which jobs are needed; nil: all
	add    func(to *river.Workers, policy Policy, now func() time.Time) error
}

// Workers is a list of workers of different kinds.
type Workers []Worker

// Work returns the worker for jobs of A's kind. Do MUST be idempotent and MUST end with its context, which ends with the attempt's timeout
// or the process. It returns nil when the job is done, [Snooze] to run later, [GiveUp] if another attempt would not help, and any other
// error to retry. A panic counts as an error. Errors are stored and logged, so they MUST NOT name a person.
func Work[A Args](policy Policy, do func(context.Context, Job[A]) error) Worker {
	var args A
	return Worker{kind: args.Kind(), policy: policy.withDefaults(), add: func(to *river.Workers, policy Policy, now func() time.Time) error {
		return river.AddWorkerSafely(to, &worker[A]{policy: policy, do: do, now: now})
	}}
}

// Wanted is a job that may follow from an event.
type Wanted[A Args] struct {
	Args      A
	Workspace uuid.UUID // workspace of the event
}

// WorkIf is [Work] for jobs that mostly find nothing to do. Before such jobs are added, needed returns the jobs that may have work, as of a
// position of the log or later. If needed fails, all jobs are added.
func WorkIf[A Args](policy Policy, needed func(ctx context.Context, asOf event.Position, all []Wanted[A]) ([]bool, error),
	do func(context.Context, Job[A]) error) Worker {
	w := Work(policy, do)
	w.needed = func(ctx context.Context, asOf event.Position, jobs []job) ([]bool, error) {
		all := make([]Wanted[A], len(jobs))
		for i, j := range jobs {
			args, _ := j.args.(A) // job j has this kind
			all[i] = Wanted[A]{args, j.from.Meta.Workspace}
		}
		return needed(ctx, asOf, all)
	}
	return w
}

// Snooze returns an error that runs the job again after a delay and does not count as an attempt.
func Snooze(d time.Duration) error { return river.JobSnooze(d) }

// Later returns err or, if its cause may pass soon (see [fault.Soon]), an error that runs the job again after a delay.
func Later(err error) error {
	if seconds := fault.Soon(err); seconds > 0 {
		return Snooze(time.Duration(seconds) * time.Second)
	}
	return err
}

// GiveUp returns an error that ends a job that cannot succeed.
func GiveUp(why error) error { return river.JobCancel(why) }

// Report stores a sentence for operators about a job's result. It MUST NOT name a person. The finished job keeps its last report. ctx MUST
// be a job's.
func Report(ctx context.Context, what string) error { return river.RecordOutput(ctx, what) }

type worker[A Args] struct {
	river.WorkerDefaults[A]

	policy Policy
	do     func(context.Context, Job[A]) error
	now    func() time.Time
}

// Work implements river.Worker.
func (w *worker[A]) Work(ctx context.Context, job *river.Job[A]) error {
	ctx, cancel := context.WithTimeout(ctx, w.policy.Timeout)
	defer cancel()
	err := w.do(ctx, Job[A]{ID: job.ID, Attempt: job.Attempt, Event: eventOf(job.EncodedArgs), Args: job.Args})
	if errors.Is(err, readmodels.ErrNotBuilt) { // at a first start, or before a new version's tables are filled
		return Snooze(builtAgain)
	}
	return err
}

// NextRetry implements river.Worker.
func (w *worker[A]) NextRetry(job *river.Job[A]) time.Time {
	return w.now().Add(w.policy.wait(job.Attempt))
}

// Timeout implements river.Worker. River ends the context and, if the process died, runs the job again after this time.
func (w *worker[A]) Timeout(*river.Job[A]) time.Duration { return w.policy.Timeout + grace }

// eventOf returns the id of a job's event, or uuid.Nil.
func eventOf(args []byte) uuid.UUID {
	var from struct {
		Event uuid.UUID `json:"event_id"`
	}
	if json.Unmarshal(args, &from) != nil {
		return uuid.Nil
	}
	return from.Event
}

// Sweep is a job that runs periodically.
type Sweep struct {
	every time.Duration
	args  Args
}

// Every returns a sweep that runs a job after each interval, and when a process becomes the queue's leader. A job is not added while the
// previous one is unfinished. A failed attempt is repeated after the interval at the latest, because a sweep does the work of many: a fault
// of one MUST NOT delay the others.
func Every(interval time.Duration, args Args) Sweep { return Sweep{interval, args} }
