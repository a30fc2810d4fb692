// Package feed hands committed events on to a broker, for programs that are not Bahi's. Each event is a
// CloudEvent ([Message]); docs/feed.md tells who reads them what to expect.
//
// The feed follows the log, as reactors do, by a checkpoint that is known by its log and its event. An event
// is forwarded at least once: the checkpoint moves when the broker has said that it keeps the events, so a
// crash in between forwards some of them once more, under the same ids. Those of a stream are forwarded in
// their order. Of several processes on one database one forwards, and the others stand by.
//
// What a broker will never take stops the feed at that event, until it is mended or an operator skips it.
// While a broker is away the feed tries again, for ever: nothing else waits for it.
//
// An outbox table was turned down: the log is one already.
package feed
