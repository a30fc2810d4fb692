// Package feedreact forwards committed events to a broker, for other programs. Each event is a CloudEvent ([Message]); docs/feed.md
// documents the feed for consumers.
//
// The feed subscribes to the log with a checkpoint, like reactors. It forwards an event at least once: the checkpoint advances after the
// broker has acknowledged the events, so a crash in between repeats some of them, under the same ids. The events of a stream arrive in
// order. Of several processes on one database, one forwards while the others are on standby.
//
// If the broker refuses an event permanently, the feed stops until an operator repairs the cause or skips the event. While the broker is
// unavailable, the feed retries without limit: nothing else waits for it.
//
// There is no outbox table, because the log is one.
package feedreact
