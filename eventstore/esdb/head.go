package esdb

import (
	"context"
	"fmt"
	"sync"

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

// readEnd returns the positions of our newest event and of the newest event in $all. It reads backwards past the server's own events,
// down to the end of the last such read. If the event there no longer exists, it reads on: the log may have lost its newest events.
func (s *Store) readEnd(ctx context.Context) (head, end event.Position, err error) {
	h := &s.heads
	h.mu.Lock()
	knownEnd, knownHead := h.end, h.head
	h.mu.Unlock()
	from := eventstore.End
	for count := uint64(1); ; count *= 8 { // usually the newest event is ours
		read := uint64(0)
		for e, err := range s.raw(ctx, count, allFrom(from, eventstore.Backwards)) {
			if err != nil {
				return 0, 0, fmt.Errorf("read the log's head: %w", err)
			}
			read++
			from = event.Position(e.Position.Commit)
			s.told.add(from)
			end = max(end, from)
			if from == knownEnd {
				return s.keepEnd(knownHead, end)
			}
			if end < knownEnd {
				s.told.forget()
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
