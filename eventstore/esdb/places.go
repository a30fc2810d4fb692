package esdb

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"bahi/domain/event"
	"bahi/eventstore"
)

// Places is a table of positions at which events begin. Without one, the store knows only those that it has seen.
type Places interface {
	// Before returns the last noted position at or before a position, 0 if there is none.
	Before(ctx context.Context, position event.Position) (event.Position, error)
	// At returns the last noted position whose event, like all before it, was recorded at or before a time; 0 if there is none.
	At(ctx context.Context, at time.Time) (event.Position, error)
}

// UsePlaces lets the store look positions up in a table.
func (s *Store) UsePlaces(p Places) { s.places.Store(&p) }

// beginsAppend reports whether an event was not appended together with the one before it in the log. Events of one append are adjacent,
// in one stream, and have the same metadata, which say which request they are of and when it came.
func beginsAppend(before, e event.Stored) bool {
	return before.Stream != e.Stream || before.Revision+1 != e.Revision || !bytes.Equal(before.Meta, e.Meta)
}

const (
	// markEvery is the distance of two marks in events, and of two places in a table.
	markEvery = 256

	// maxMarks limits the memory for marks. Beyond it, every other one is dropped.
	maxMarks = 1 << 16
)

// told is what this process knows of positions from the server's own responses.
type told struct {
	recent [1 << 14]atomic.Uint64 // positions by their hashes; newer ones replace older ones

	mu    sync.Mutex
	since int    // number of events since the last mark
	marks []mark // in order
}

// mark is the position and time of an event.
type mark struct {
	position event.Position
	at       time.Time
}

func (t *told) slot(at event.Position) *atomic.Uint64 {
	return &t.recent[uint64(at)*0x9E3779B97F4A7C15>>50]
}

// add notes a position.
func (t *told) add(at event.Position) { t.slot(at).Store(uint64(at)) }

// has reports whether a position was noted lately.
func (t *told) has(at event.Position) bool { return t.slot(at).Load() == uint64(at) }

// saw notes the position of an event, and marks some.
func (t *told) saw(e *esdb.RecordedEvent) {
	at := event.Position(e.Position.Commit)
	t.add(at)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.since++; t.since < markEvery {
		return
	}
	t.since = 0
	i, there := slices.BinarySearchFunc(t.marks, at, func(m mark, p event.Position) int { return compare(m.position, p) })
	if there {
		return
	}
	t.marks = slices.Insert(t.marks, i, mark{at, stored(e).At})
	if len(t.marks) > maxMarks {
		for i := range len(t.marks) / 2 {
			t.marks[i] = t.marks[2*i]
		}
		t.marks = t.marks[:len(t.marks)/2]
	}
}

func compare(a, b event.Position) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// last returns the last mark that keep accepts, which accepts all up to some mark; 0 if there is none.
func (t *told) last(keep func(mark) bool) event.Position {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, m := range slices.Backward(t.marks) { // callers mostly ask for the newest
		if keep(m) {
			return m.position
		}
	}
	return 0
}

// forget forgets everything: the log has lost events.
func (t *told) forget() {
	for i := range t.recent {
		t.recent[i].Store(0)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.marks, t.since = nil, 0
}

// placeBefore returns a position at or before another, from which the server reads; 0 is the beginning.
func (s *Store) placeBefore(ctx context.Context, at event.Position) (event.Position, error) {
	if s.told.has(at) {
		return at, nil
	}
	place := s.told.last(func(m mark) bool { return m.position <= at })
	if table := s.places.Load(); table != nil {
		noted, err := (*table).Before(ctx, at)
		if err != nil {
			return 0, fmt.Errorf("look up a position: %w", err)
		}
		place = max(place, noted)
	}
	return place, nil
}

// placeFrom returns the first position at or after another from which the server reads backwards; End if there is none.
func (s *Store) placeFrom(ctx context.Context, at event.Position) (event.Position, error) {
	if at >= eventstore.End || s.told.has(at) {
		return min(at, eventstore.End), nil
	}
	before, err := s.placeBefore(ctx, at)
	if err != nil {
		return 0, err
	}
	for e, err := range s.raw(ctx, math.MaxInt64, allFrom(before, eventstore.Forwards)) {
		if err != nil {
			return 0, err
		}
		s.told.saw(e)
		if place := event.Position(e.Position.Commit); place >= at {
			return place, nil
		}
	}
	return eventstore.End, nil
}

// PositionAt implements [eventstore.Store]. It reads on from the last known place before the time. An append takes place at the time of
// its last event, and so has no part before it.
func (s *Store) PositionAt(ctx context.Context, at time.Time) (event.Position, error) {
	place := s.told.last(func(m mark) bool { return !m.at.After(at) })
	if table := s.places.Load(); table != nil {
		noted, err := (*table).At(ctx, at)
		if err != nil {
			return 0, fmt.Errorf("look up the position of %s: %w", at, err)
		}
		place = max(place, noted)
	}
	known, first, err := s.lastUntil(ctx, place, at)
	if err != nil || known > 0 || first.Position == 0 {
		return known, err
	}
	for e, err := range s.ReadAll(ctx, place, eventstore.Backwards) { // the append at the place took place later
		if err != nil || beginsAppend(e, first) {
			return e.Position, err
		}
		first = e
	}
	return 0, nil
}

// lastUntil reads from a place on. It returns the end of the last append that took place at or before a time, 0 if the first one did not,
// and the first event.
func (s *Store) lastUntil(ctx context.Context, place event.Position, at time.Time) (known event.Position, first event.Stored, err error) {
	var last event.Stored
	read := s.readAll(ctx, max(place, 1)-1, place, eventstore.Forwards, 2*markEvery, func(e event.Stored, _ error) bool {
		begins := last.Position == 0 || beginsAppend(last, e)
		switch {
		case last.Position == 0:
			first = e
		case begins:
			known = last.Position
		}
		if e.At.After(at) {
			if !begins {
				last = event.Stored{} // that append took place later
			}
			return false
		}
		last = e
		return true
	})
	if read != nil {
		return 0, first, fmt.Errorf("find the position of %s: %w", at, read)
	}
	return max(known, last.Position), first, nil
}
