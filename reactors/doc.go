// Package reactors turns events into jobs, and does the jobs: mail, calls of providers, whatever leaves
// the system. No request and no projection waits for them.
//
// A reactor says which jobs follow from an event. The jobs are written in one transaction with the
// reactor's checkpoint, so each event has its jobs once, whatever crashes. A worker then does a job,
// again and again until it succeeds or its attempts are used up: so it is done at least once, and what
// a worker does MUST bear being done twice.
//
// A reactor follows the log by the runner of package projections, and differs from a projection where
// its effects cannot be taken back: it is never built again, it starts at the log's head, and going over
// old events is an operator's explicit command ([Replay]). What must happen even if no event brings it
// is swept from state as well ([Every]).
//
// The queue is River's, in Postgres, because a job can then be written in the checkpoint's transaction.
// A broker beside the database was turned down: between the two, a crash loses jobs or doubles them.
package reactors
