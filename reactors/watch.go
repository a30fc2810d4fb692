package reactors

import (
	"context"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"bahi/readmodels/opsview"
)

// The outcomes of an attempt, as metrics name them.
const (
	done      = "done"
	failed    = "failed"    // and retried later
	discarded = "discarded" // after the last attempt
	cancelled = "cancelled"
	snoozed   = "snoozed"
)

// logEnd logs and counts the end of an attempt.
func (j *Jobs) logEnd(e *river.Event) {
	log := j.log.With("job", e.Job.ID, "kind", e.Job.Kind, "attempt", e.Job.Attempt, "event", eventOf(e.Job.EncodedArgs))
	var outcome string
	switch e.Kind {
	case river.EventKindJobCompleted:
		outcome = done
		log.Info("job done")
	case river.EventKindJobFailed:
		outcome = failed
		if e.Job.State == rivertype.JobStateDiscarded {
			outcome = discarded
			log.Error("job failed for the last time", "error", lastError(e.Job))
		} else {
			log.Warn("job failed; retrying later", "at", e.Job.ScheduledAt, "error", lastError(e.Job))
		}
	case river.EventKindJobCancelled:
		outcome = cancelled
		log.Warn("job cancelled", "error", lastError(e.Job))
	case river.EventKindJobSnoozed:
		outcome = snoozed
		log.Debug("job snoozed", "until", e.Job.ScheduledAt)
	default: // interrupted: not an attempt
		log.Info("job interrupted; restarting later")
		return
	}
	j.attempts.WithLabelValues(e.Job.Kind, outcome).Inc()
}

func lastError(job *rivertype.JobRow) string {
	if len(job.Errors) == 0 {
		return ""
	}
	return job.Errors[len(job.Errors)-1].Error
}

func newAttempts() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "bahi_job_attempts_total", Help: "Attempts of jobs in this process, by kind and outcome: done, failed, discarded, cancelled, " +
			"snoozed.",
	}, []string{"kind", "outcome"})
}

// Register adds the metrics of jobs.
func (j *Jobs) Register(to prometheus.Registerer) {
	to.MustRegister(j.attempts, opsview.Gauges{
		Help: map[string]string{waitingJobs: "Jobs that are waiting or running, by kind."}, Label: "kind",
		Read: j.countWaiting, Failure: "counting the waiting jobs failed", Log: j.log,
	})
}

const waitingJobs = "bahi_jobs_waiting"

// countWaiting sets the numbers of unfinished jobs in the database.
func (j *Jobs) countWaiting(ctx context.Context, set opsview.SetGauge) error {
	counts := map[string]int64{}
	var (
		kind string
		n    int64
	)
	rows, _ := j.pool.Query(ctx, `
		select kind, count(*) from river.river_job
		where state in ('available', 'pending', 'retryable', 'running', 'scheduled') group by kind`) // ForEachRow returns the error
	if _, err := pgx.ForEachRow(rows, []any{&kind, &n}, func() error { counts[kind] = n; return nil }); err != nil {
		return err
	}
	for kind := range j.policies {
		counts[kind] += 0
	}
	for kind, n := range counts {
		set(waitingJobs, float64(n), kind)
	}
	return nil
}

// quiet lowers River's own messages of success to debug; logEnd logs the outcome of jobs.
type quiet struct{ slog.Handler }

func (q quiet) Enabled(ctx context.Context, level slog.Level) bool {
	return q.Handler.Enabled(ctx, lowered(level))
}

func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(attrs)} }

func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name)} }

func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	r.Level = lowered(r.Level)
	return q.Handler.Handle(ctx, r)
}

func lowered(level slog.Level) slog.Level {
	if level < slog.LevelWarn {
		return slog.LevelDebug
	}
	return level
}
