// Package domain lists every kind of stream of the system, and its folders contain all rules.
//
// An aggregate is a package with one [event.Kind]: the stored names of its events, a State, commands and their events. A command's Decide
// returns the events that follow from a State. An event's Evolve returns the next State. Neither has a clock, creates ids or does I/O: the
// command contains all input. So a rule is tested without a database, and replaying the log gives the same states.
//
// Events are types with one method, so the compiler finds a missing method. The alternative, a central switch on event names, was rejected
// because it fails at run time. A decision on several streams is one transaction of package commands, so no aggregate imports another
// area's aggregate. Errors for clients are [fault.Error] values beside their rule.
package domain
