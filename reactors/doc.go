// Package reactors turns events into jobs and runs them: mails, calls of providers, and all other effects outside the system. No request
// and no projection waits for them.
//
// A reactor decides which jobs follow from an event. It stores them in one transaction with its checkpoint, so each event creates its jobs
// exactly once, despite crashes. A worker retries a job until it succeeds or its attempts are used up. So a job runs at least once, and
// workers MUST be idempotent.
//
// Reactors use the runner of package projections. Their effects cannot be undone, so a reactor is never rebuilt. It starts at the log's
// head, and only an operator's command repeats old events ([Replay]). Sweeps over the state find work without an event ([Every]).
//
// The queue is River's, in Postgres, because the checkpoint's transaction can then store a job. With a separate broker, a crash between the
// two writes would lose or duplicate jobs.
package reactors
