// Package feedreact forwards committed events to a broker, for other programs. Each event is a CloudEvent ([Message]); docs/feed.md
// tells consumers what to expect.
//
// The feed follows the log by a checkpoint, like reactors. It forwards an event at least once: the checkpoint advances after the
// broker has acknowledged the events, so a crash in between repeats some of them, under the same ids. The events of a stream are
// forwarded in order. Of several processes on one database one forwards, and the others are on standby.
//
// An event that the broker rejects for good stops the feed until it is repaired or an operator skips the event. While the broker
// is unavailable the feed retries without end: nothing else waits for it.
//
// An outbox table was turned down: the log is one already.
package feedreact
