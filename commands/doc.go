// Package commands executes the commands of callers. [Do] loads the records that a decision needs, lets the domain decide, and appends all
// events as one transaction. The append checks that none of these records has changed. After a conflict, Do decides again.
//
// Records come from a cache that follows the log, so a command on a cached record reads nothing. The cache may lag: the append's checks
// find a decision on an old state, and Do returns a refusal only after an append without events has confirmed it.
//
// Loading each record for each command would cost a query, and would prove nothing about the time of the append.
//
// A command with an idempotency key stores its outcome with its events. A retry returns that outcome.
package commands
