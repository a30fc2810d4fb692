// Package reactors turns events into jobs and executes the jobs: mails, calls of providers, all effects outside the system. No
// request and no projection waits for them.
//
// A reactor decides which jobs follow from an event. Its jobs are written in one transaction with its checkpoint, so each event
// gets its jobs exactly once, despite crashes. A worker then tries a job until it succeeds or its attempts are used up. A job is
// thus executed at least once, and workers MUST be idempotent.
//
// Reactors follow the log by the runner of package projections. They differ from projections because their effects cannot be
// undone: a reactor is never rebuilt, it starts at the log's head, and only an operator's explicit command repeats old events
// ([Replay]). What must happen even without an event is also found by sweeps over the state ([Every]).
//
// The queue is River's, in Postgres, because a job can then be written in the checkpoint's transaction. A separate broker was turned
// down: a crash between the two writes would lose or duplicate jobs.
package reactors
