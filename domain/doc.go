// Package domain lists every kind of stream of the system, and its folders contain all rules.
//
// An aggregate is a package with one [event.Kind]: the stored names of its events, a State, commands and their events. A command's Decide
// returns the events that follow from a State; an event's Evolve returns the next State. Neither has a clock, creates ids or does I/O: a
// command carries what it needs. So a rule is tested without a database, and replaying the log gives the same states.
//
// Events are types with one method, and the compiler finds a missing one. A central switch on event names was turned down: it fails at run
// time. A decision on several streams is one transaction of package commands, so no aggregate imports another area's aggregate. Errors
// that a client may read are [fault.Error] values beside their rule.
package domain
