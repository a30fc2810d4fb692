package reactors

import (
	"context"
	"encoding/json"
	"math"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"
)

// Policy says how hard a kind of job is tried. The zero Policy is for what calls a provider: it gives
// up after some three days.
type Policy struct {
	Attempts int           // in all; 0: 12
	First    time.Duration // between the first attempt and the second, and three times as long each time; 0: 3 s
	Timeout  time.Duration // of one attempt; 0: 30 s
	AtOnce   int           // most jobs of this kind that a process does at the same time; 0: 4
}

const (
	growth = 3   // of the time between attempts
	jitter = 0.1 // share of it, either way, so that what failed together does not come back together
)

// withDefaults fills in what was left open.
func (p Policy) withDefaults() Policy {
	if p.Attempts == 0 {
		p.Attempts = 12
	}
	if p.First == 0 {
		p.First = 3 * time.Second
	}
	if p.Timeout == 0 {
		p.Timeout = 30 * time.Second
	}
	if p.AtOnce == 0 {
		p.AtOnce = 4
	}
	return p
}

// wait is how long to wait after an attempt, counted from 1. An operator may have added attempts: they
// come no later after one another than the last of the policy's own.
func (p Policy) wait(attempt int) time.Duration {
	n := max(0, min(attempt, p.Attempts-1)-1)
	seconds := p.First.Seconds() * math.Pow(growth, float64(n))
	seconds *= 1 + jitter*(2*rand.Float64()-1) //nolint:gosec // G404: it spreads load, and hides nothing
	return time.Duration(math.Min(seconds*float64(time.Second), math.MaxInt64/2))
}

// Job is one thing to do.
type Job[A Args] struct {
	ID      int64
	Attempt int       // from 1
	Event   uuid.UUID // that it follows from; uuid.Nil for a sweep's
	Args    A
}

// Worker does jobs of one kind.
type Worker struct {
	kind   string
	policy Policy
	add    func(to *river.Workers, now func() time.Time) error
}

// Workers does jobs of several kinds. No two are of one kind.
type Workers []Worker

// Work does jobs of A's kind. Do MUST bear being done twice and MUST heed its context, which ends with
// the attempt's time or the process. It answers nil when the job is done, [Snooze] to be asked again
// later, [GiveUp] when no further attempt would help, and any other error to try again; a panic is an
// error too. Errors are stored and logged, so they name no person.
func Work[A Args](policy Policy, do func(context.Context, Job[A]) error) Worker {
	var args A
	policy = policy.withDefaults()
	return Worker{kind: args.Kind(), policy: policy, add: func(to *river.Workers, now func() time.Time) error {
		return river.AddWorkerSafely(to, &worker[A]{policy: policy, do: do, now: now})
	}}
}

// Snooze asks for a job to be done again after a while, which counts as no attempt.
func Snooze(d time.Duration) error { return river.JobSnooze(d) }

// GiveUp ends a job that cannot succeed.
func GiveUp(why error) error { return river.JobCancel(why) }

// Report says what a job has done, or has not, for operators, in a sentence that names no person. It is kept with the
// job, however that ends; of several, the last. Its context MUST be a job's.
func Report(ctx context.Context, what string) error { return river.RecordOutput(ctx, what) }

type worker[A Args] struct {
	river.WorkerDefaults[A]

	policy Policy
	do     func(context.Context, Job[A]) error
	now    func() time.Time
}

// Work implements river.Worker.
func (w *worker[A]) Work(ctx context.Context, job *river.Job[A]) error {
	return w.do(ctx, Job[A]{ID: job.ID, Attempt: job.Attempt, Event: eventOf(job.EncodedArgs), Args: job.Args})
}

// NextRetry implements river.Worker.
func (w *worker[A]) NextRetry(job *river.Job[A]) time.Time {
	return w.now().Add(w.policy.wait(job.Attempt))
}

// Timeout implements river.Worker.
func (w *worker[A]) Timeout(*river.Job[A]) time.Duration { return w.policy.Timeout }

// eventOf finds the event that a job follows from, uuid.Nil when there is none.
func eventOf(args []byte) uuid.UUID {
	var from struct {
		Event uuid.UUID `json:"event_id"`
	}
	if json.Unmarshal(args, &from) != nil {
		return uuid.Nil
	}
	return from.Event
}

// Sweep is a job that is done now and then, whatever happens.
type Sweep struct {
	every time.Duration
	args  Args
}

// Every does a job each time the interval has passed, and when a process takes over as the one that
// looks after the queue. It is not added while it is still to be done.
func Every(interval time.Duration, args Args) Sweep { return Sweep{interval, args} }
