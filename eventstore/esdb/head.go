package esdb

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"bahi/domain/event"
	"bahi/eventstore"
)

// heads lets callers that wait for the head share a read. A caller never shares a read that began before its call: that read may miss
// an event appended in between.
type heads struct {
	mu      sync.Mutex
	running bool
	next    *headRead // not started

	// The result of the last read: $all was known up to end, and the newest of our events in it was at head.
	end, head event.Position
}

type headRead struct {
	done chan struct{}
	head event.Position
	err  error
}

// Head implements [eventstore.Store].
func (s *Store) Head(ctx context.Context) (event.Position, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	h := &s.heads
	h.mu.Lock()
	if h.next == nil {
		h.next = &headRead{done: make(chan struct{})}
	}
	read := h.next
	if !h.running {
		h.running = true
		go s.readHeads()
	}
	h.mu.Unlock()
	select {
	case <-read.done:
		return read.head, read.err
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// readHeads reads the head while callers wait.
func (s *Store) readHeads() {
	h := &s.heads
	for {
		h.mu.Lock()
		read := h.next
		h.next = nil
		if read == nil {
			h.running = false
			h.mu.Unlock()
			return
		}
		h.mu.Unlock()
		read.head, _, read.err = s.readEnd(s.conn.life)
		close(read.done)
	}
}

// firstLook is the number of events that the first read at the end of $all returns. One is usually enough.
const firstLook = 16

// readEnd returns the positions of our newest event and of the newest event in $all. It reads backwards past the server's own events,
// down to the end of the last such read. If the event there no longer exists, it reads on: the log may have lost its newest events.
func (s *Store) readEnd(ctx context.Context) (head, end event.Position, err error) {
	h := &s.heads
	h.mu.Lock()
	knownEnd, knownHead := h.end, h.head
	h.mu.Unlock()
	from := eventstore.End
	for count := uint64(firstLook); ; count *= 8 {
		read := uint64(0)
		for e, err := range s.raw(ctx, count, allFrom(from, eventstore.Backwards)) {
			if err != nil {
				return 0, 0, fmt.Errorf("read the log's head: %w", err)
			}
			read++
			from = event.Position(e.Position.Commit)
			end = max(end, from)
			if from == knownEnd {
				return s.keepEnd(knownHead, end)
			}
			if end < knownEnd {
				s.forgetMarks()
			}
			if ours(e) {
				return s.keepEnd(from, end)
			}
		}
		if read < count { // the log has no events
			return s.keepEnd(0, end)
		}
	}
}

func (s *Store) keepEnd(head, end event.Position) (event.Position, event.Position, error) {
	h := &s.heads
	h.mu.Lock()
	defer h.mu.Unlock()
	h.head, h.end = head, end // the order of concurrent reads does not matter: both are true
	return head, end, nil
}

// mark is the position and time of an event.
type mark struct {
	position event.Position
	at       time.Time
}

// markEvery is the distance of two marks in events.
const markEvery = 1024

// PositionAt implements [eventstore.Store] by bisecting the log. EventStoreDB reads only from positions at which an event begins. If it
// refuses a position, PositionAt scans that part of the log, and keeps marks so that this happens once.
func (s *Store) PositionAt(ctx context.Context, at time.Time) (event.Position, error) {
	head, err := s.Head(ctx)
	if err != nil {
		return 0, err
	}
	low, high := s.between(at, head+1)
	for high-low > 1 {
		middle := low + (high-low)/2
		found, there, err := s.firstFrom(ctx, middle)
		switch {
		case err != nil && isPlace(ctx, err):
			return s.scan(ctx, low, high, at)
		case err != nil:
			return 0, fmt.Errorf("find the position of %s: %w", at, err)
		case !there || found.position >= high || found.at.After(at):
			high = middle
		default:
			low = found.position
		}
	}
	return low, nil
}

// between returns the last mark at or before a time, and the first one after it.
func (s *Store) between(at time.Time, end event.Position) (low, high event.Position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	high = end
	for _, m := range s.marks {
		if m.at.After(at) {
			return low, min(high, m.position)
		}
		low = m.position
	}
	return low, high
}

// firstFrom returns our first event at or after a position.
func (s *Store) firstFrom(ctx context.Context, place event.Position) (m mark, there bool, err error) {
	for e, err := range s.raw(ctx, firstLook, allFrom(place, eventstore.Forwards)) {
		if err != nil {
			return m, false, err
		}
		if m = (mark{event.Position(e.Position.Commit), stored(e).At}); ours(e) {
			return m, true, nil
		}
	}
	if m.position == 0 {
		return m, false, nil
	}
	for e, err := range s.ReadAll(ctx, m.position, eventstore.Forwards) {
		return mark{e.Position, e.At}, err == nil, err
	}
	return m, false, nil
}

// scan reads the log between two positions and returns the last event at or before a time.
func (s *Store) scan(ctx context.Context, low, high event.Position, at time.Time) (event.Position, error) {
	read := 0
	for e, err := range s.ReadAll(ctx, low, eventstore.Forwards) {
		if err != nil {
			return 0, err
		}
		if e.Position >= high || e.At.After(at) {
			break
		}
		low = e.Position
		if read++; read%markEvery == 0 {
			s.keep(mark{e.Position, e.At})
		}
	}
	return low, nil
}

func (s *Store) forgetMarks() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.marks = nil
}

// keep inserts a mark in order.
func (s *Store) keep(m mark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, there := slices.BinarySearchFunc(s.marks, m, func(a, b mark) int { return cmp.Compare(a.position, b.position) })
	if !there {
		s.marks = slices.Insert(s.marks, i, m)
	}
}
