package postgres

import (
	"bahi/domain/event"
	"bahi/eventstore"
)

// windowEvents is the minimum number of newest events whose streams a window has.
const windowEvents = 65536

// window has the last revision of each stream that the newest events changed. With it, the appender validates transactions in memory: an
// expectation that was true at a position stays true, unless the window has the stream.
type window struct {
	since   event.Position // the window has every event after it
	head    event.Position // position of the newest event
	changes []change       // in log order
	last    map[string]change
}

// change is an event's position, stream and revision.
type change struct {
	stream   string
	revision int64
	position event.Position
}

// reset empties the window. Then it trusts only expectations from the position since or later.
func (w *window) reset(head, since event.Position) {
	*w = window{since: since, head: head, last: map[string]change{}}
}

// add adds the event that follows the head.
func (w *window) add(stream string, revision int64) {
	w.head++
	c := change{stream, revision, w.head}
	w.changes = append(w.changes, c)
	w.last[stream] = c
}

// trim drops the oldest events. Between the validation of a group and its end, the window only grows.
func (w *window) trim() {
	if len(w.changes) < 2*windowEvents {
		return
	}
	for _, old := range w.changes[:windowEvents] {
		if w.last[old.stream] == old {
			delete(w.last, old.stream)
		}
		w.since = max(w.since, old.position)
	}
	w.changes = append(make([]change, 0, 2*windowEvents), w.changes[windowEvents:]...)
}

// trusts reports whether an expectation is true at the head, for a stream that the window lacks. asOf is a position that the caller knew
// before it read the stream.
func (w *window) trusts(expected eventstore.Expected, asOf event.Position) bool {
	return expected >= eventstore.NoStream && asOf >= w.since && asOf <= w.head
}
