package esdb

import (
	"context"
	"slices"
	"sync"

	"github.com/google/uuid"

	"bahi/domain/event"
	"bahi/eventstore"
)

const (
	// maxTail and maxTailBytes are how much of the log the tail keeps at least. It has up to twice as much.
	maxTail      = 8192
	maxTailBytes = 16 << 20
)

// tail has the newest events of the log, for all subscribers of this process that have caught up: the server sends an event once, not once
// to each of them.
type tail struct {
	once sync.Once

	mu      sync.Mutex
	live    bool           // it follows the log
	life    int            // number of times that it began: the log may have lost events in between
	from    event.Position // it has all events after this position
	upTo    event.Position // and up to this one
	events  []event.Stored
	bytes   int
	changed chan struct{} // closed by the next change
}

// runTail follows the log until the store is closed.
func (s *Store) runTail() {
	ctx := s.conn.life
	for ctx.Err() == nil {
		_, end, err := s.readEnd(ctx)
		if err == nil {
			at := place{upTo: end.Position}
			if end.ID != uuid.Nil {
				at.last = &end
			}
			_, err = s.follow(ctx, &at, func() { s.tail.begin(end.Position) }, func(b eventstore.Batch) bool { s.tail.add(b); return true })
			s.tail.end()
		}
		if err != nil {
			_ = pause(ctx, retryEvery) // subscribers find out by themselves
		}
	}
}

func (t *tail) begin(at event.Position) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.live, t.life, t.from, t.upTo, t.events, t.bytes = true, t.life+1, at, at, nil, 0
	t.tell()
}

func (t *tail) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.live, t.events = false, nil
	t.tell()
}

func (t *tail) add(b eventstore.Batch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range b.Events {
		t.events, t.bytes = append(t.events, e), t.bytes+size(e)
	}
	if len(t.events) > 2*maxTail || t.bytes > 2*maxTailBytes {
		drop := 0
		for len(t.events)-drop > maxTail || t.bytes > maxTailBytes && drop < len(t.events) {
			t.from, t.bytes = t.events[drop].Position, t.bytes-size(t.events[drop])
			drop++
		}
		t.events = slices.Clone(t.events[drop:]) // readers have parts of the old array
	}
	t.upTo = b.UpTo
	t.tell()
}

func size(e event.Stored) int { return len(e.Data) + len(e.Meta) }

// tell wakes those who wait. The caller holds mu.
func (t *tail) tell() {
	if t.changed != nil {
		close(t.changed)
	}
	t.changed = make(chan struct{})
}

// covers reports whether the tail has all events after a position, and in which of its lives.
func (t *tail) covers(at event.Position) (life int, covered bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.life, t.live && t.from <= at
}

// after returns the events after a position, and a channel that is closed by the next change; false if the tail does not have them all,
// or began again.
func (t *tail) after(at event.Position, life int) (b eventstore.Batch, changed <-chan struct{}, covered bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.live || t.life != life || t.from > at {
		return b, nil, false
	}
	first := len(t.events)
	for first > 0 && t.events[first-1].Position > at { // mostly, only the newest are wanted
		first--
	}
	b = eventstore.Batch{Events: t.events[first:len(t.events):len(t.events)], UpTo: max(at, t.upTo)}
	if len(b.Events) > maxBatch {
		b.Events = b.Events[:maxBatch:maxBatch]
		b.UpTo = b.Events[maxBatch-1].Position
	}
	return b, t.changed, true
}

// followTail yields what the tail has after a place, and advances it. It returns false if the subscriber stopped, and true when the tail
// does not have what follows. A tail that began after the log lost events does not tell so: the place is looked for in the log first.
func (s *Store) followTail(ctx context.Context, at *place, yield func(eventstore.Batch) bool) (more bool, err error) {
	life, _ := s.tail.covers(at.upTo)
	if err := s.stillThere(ctx, at.last); err != nil {
		return true, err
	}
	for {
		b, changed, covered := s.tail.after(at.upTo, life)
		if !covered || ctx.Err() != nil {
			return true, nil //nolint:nilerr // the caller sees that ctx has ended
		}
		if b.UpTo > at.upTo {
			at.upTo = b.UpTo
			if n := len(b.Events); n > 0 {
				at.last = &b.Events[n-1]
			}
			if !yield(b) {
				return false, nil
			}
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return true, nil
		}
	}
}
