package esdb

import (
	"context"
	"fmt"
	"sync"

	"github.com/google/uuid"

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

// readEnd returns the position of our newest event, and the newest event in $all, which may be the server's; without events, neither. It
// reads backwards past the server's own events, down to the end of the last such read. If the event there no longer exists, it reads
// on: the log may have lost its newest events.
func (s *Store) readEnd(ctx context.Context) (head event.Position, end event.Stored, err error) {
	h := &s.heads
	h.mu.Lock()
	knownEnd, knownHead := h.end, h.head
	h.mu.Unlock()
	from := eventstore.End
	for count := uint64(1); ; count *= 8 { // usually the newest event is ours
		read := uint64(0)
		for e, err := range s.raw(ctx, count, allFrom(from, eventstore.Backwards)) {
			if err != nil {
				return 0, end, fmt.Errorf("read the log's head: %w", err)
			}
			if read++; end.ID == uuid.Nil {
				end = stored(e)
			}
			from = event.Position(e.Position.Commit)
			s.told.add(from)
			if from == knownEnd {
				s.keepEnd(knownHead, end.Position)
				return knownHead, end, nil
			}
			if end.Position < knownEnd {
				s.told.forget()
			}
			if ours(e) {
				s.keepEnd(from, end.Position)
				return from, end, nil
			}
		}
		if read < count { // the log has no events
			s.keepEnd(0, end.Position)
			return 0, end, nil
		}
	}
}

func (s *Store) keepEnd(head, end event.Position) {
	h := &s.heads
	h.mu.Lock()
	defer h.mu.Unlock()
	h.head, h.end = head, end // the order of concurrent reads does not matter: both are true
}
