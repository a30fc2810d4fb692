// Package commands carries out what callers ask: it loads a stream's state, lets the domain decide,
// and appends what follows.
//
// State comes from a cache that follows the log, so a command on a known stream reads nothing. The
// cache may be late by a moment. What was decided on a late copy of the stream itself is found by the
// expected revision and decided again; a refusal is only ever given on a state read from the store;
// and rules that span streams are looked at again after the append, at the position that the event got
// (see [Rule]).
//
// Loading each stream for each command was turned down: it costs a query a command for nothing, since
// a read before the append proves nothing about the moment of the append.
package commands
