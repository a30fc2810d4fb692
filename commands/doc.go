// Package commands carries out what callers ask. [Do] loads the records that a decision needs, lets the domain decide, and appends
// everything that was decided as one transaction. The append checks that no record which was read has changed. If one has, the decision
// runs again.
//
// Records come from a cache that follows the log, so a command on a known record reads nothing. The cache may be late by a moment: what was
// decided on it is found by the checks, and a refusal is returned only after an append without events has confirmed them.
//
// Loading each record for each command was turned down: it costs a query a command for nothing, since a read before the append proves
// nothing about the moment of the append.
package commands
