// Package esdbtest is an event log that behaves as EventStoreDB 23.10 does, for tests: in memory, over the same protocol. What it
// copies was measured on the vendor's server (CONTRACT.md 0.10): positions are byte offsets, and only those of events can be read
// from; each event has its own time; an append under an exact revision can be repeated for ever, also its first events alone, and
// nothing in the answer tells so; an append has a greatest size.
package esdbtest

import (
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
)

// MaxAppend is the greatest size of an append in bytes unless [Cluster.MaxAppend] is set: the server's default.
const MaxAppend = 1 << 20

// recorded is an event of the log.
type recorded struct {
	position uint64
	stream   string
	revision uint64
	proposal

	at time.Time
}

// proposal is an event to append.
type proposal struct {
	id          uuid.UUID
	typ         string
	contentType string
	data, meta  []byte
}

func (p *proposal) size() int { return len(p.data) + len(p.meta) + len(p.typ) + 16 }

// Expectations other than a revision.
const (
	expectAny    = -2
	expectNone   = -1
	expectExists = -4
)

// log is what the nodes of a cluster have in common.
type log struct {
	mu      sync.Mutex
	events  []recorded
	streams map[string][]int // indexes of events
	end     uint64           // position of the next event
	last    time.Time
	changed chan struct{} // closed by the next append
}

func newLog() *log { return &log{streams: map[string][]int{}, changed: make(chan struct{})} }

// wrongRevision is the answer to an append that the stream does not match; actual is -1 for a missing stream.
type wrongRevision struct{ actual int64 }

func (wrongRevision) Error() string { return "wrong expected version" }

// append appends, or finds the events at their place. It returns the last event.
func (l *log) append(stream string, expected int64, proposals []proposal) (recorded, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last, repeated := l.repeated(stream, expected, proposals); repeated {
		return last, nil
	}
	count := int64(len(l.streams[stream]))
	if expected >= expectNone && expected != count-1 || expected == expectExists && count == 0 || l.knows(stream, expected, proposals) {
		return recorded{}, wrongRevision{count - 1}
	}
	var e recorded
	for i, p := range proposals {
		e = recorded{position: l.end, stream: stream, revision: uint64(count) + uint64(i), proposal: p, at: l.tick()}
		l.streams[stream] = append(l.streams[stream], len(l.events))
		l.events = append(l.events, e)
		l.end += uint64(p.size()+len(stream)) + 97 // a record's frame
	}
	close(l.changed)
	l.changed = make(chan struct{})
	return e, nil
}

// tick returns a time a few microseconds after the last one.
func (l *log) tick() time.Time {
	now := time.Now().UTC().Truncate(100 * time.Nanosecond)
	if least := l.last.Add(3 * time.Microsecond); now.Before(least) {
		now = least
	}
	l.last = now
	return now
}

// repeated reports whether the stream has exactly these events, one after the other: after the expected revision, or anywhere.
func (l *log) repeated(stream string, expected int64, proposals []proposal) (last recorded, is bool) {
	indexes := l.streams[stream]
	first := int(min(expected, math.MaxInt64-1) + 1)
	if expected < expectNone {
		first = slices.IndexFunc(indexes, func(i int) bool { return l.events[i].id == proposals[0].id })
	}
	if first < 0 || first > len(indexes)-len(proposals) {
		return last, false
	}
	for i, p := range proposals {
		if last = l.events[indexes[first+i]]; last.id != p.id {
			return last, false
		}
	}
	return last, true
}

// knows reports whether an append without a revision has an event that the stream already has.
func (l *log) knows(stream string, expected int64, proposals []proposal) bool {
	return expected < expectNone && slices.ContainsFunc(l.streams[stream], func(i int) bool {
		return slices.ContainsFunc(proposals, func(p proposal) bool { return p.id == l.events[i].id })
	})
}

// stream returns a copy of a stream's events, and whether the stream exists.
func (l *log) stream(name string) (events []recorded, exists bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, i := range l.streams[name] {
		events = append(events, l.events[i])
	}
	return events, len(events) > 0
}

// all returns the events, which are never changed, the end, and a channel that is closed by the next append.
func (l *log) all() (events []recorded, end uint64, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clip(l.events), l.end, l.changed
}

// cut removes the newest events that are not the server's own.
func (l *log) cut(count int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for count > 0 && len(l.events) > 0 {
		e := l.events[len(l.events)-1]
		l.events = slices.Clone(l.events[:len(l.events)-1])
		l.streams[e.stream] = l.streams[e.stream][:len(l.streams[e.stream])-1]
		l.end = e.position
		if !e.system() {
			count--
		}
	}
}

// past moves all events days into the past.
func (l *log) past(days int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = slices.Clone(l.events) // readers have the old ones
	for i := range l.events {
		l.events[i].at = l.events[i].at.AddDate(0, 0, -days)
	}
}

func (e *recorded) system() bool { return strings.HasPrefix(e.typ, "$") }

// at returns the index of the event at a position; false if none begins there.
func at(events []recorded, position uint64) (int, bool) {
	return slices.BinarySearchFunc(events, position, func(e recorded, p uint64) int {
		switch {
		case e.position < p:
			return -1
		case e.position > p:
			return 1
		}
		return 0
	})
}
