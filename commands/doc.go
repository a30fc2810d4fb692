// Package commands executes the commands of callers. [Do] loads the records that a decision needs, calls the domain for the decision, and
// appends all events as one transaction. The append checks that none of these records has changed. After a conflict, Do decides again.
//
// Records come from a cache, so a command on a cached record reads nothing. A subscription to the log updates the cache, so the cache may
// lag. The append's checks find a decision on an old state. Do returns a refusal only after an append without events has confirmed the
// states.
//
// Loading each record for each command would cost a query, and the record could still change before the append.
//
// A command with an idempotency key stores its outcome with its events. A retry returns that outcome.
package commands
