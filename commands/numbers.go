package commands

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"bahi/domain/event"
	"bahi/domain/number"
	"bahi/eventstore"
)

const (
	// A process reserves few numbers at first, so that a workshop's ids stay small through restarts,
	// and more the faster it uses them up.
	leastReserved = 8
	mostReserved  = 8192
	usedUpWithin  = 2 * time.Second
)

// numbers gives out the integer ids of this process.
type numbers struct {
	h      *Handler
	mu     sync.Mutex
	series map[string]*series
}

type series struct {
	mu         sync.Mutex
	next, last int64
	size       int64
	reserved   time.Time
}

func newNumbers(h *Handler) *numbers { return &numbers{h: h, series: map[string]*series{}} }

// Numbers answers the first of count numbers of a series that follow one another, never given before.
func (h *Handler) Numbers(ctx context.Context, name string, count int64) (int64, error) {
	h.numbers.mu.Lock()
	s := h.numbers.series[name]
	if s == nil {
		s = &series{next: 1, size: leastReserved / 2}
		h.numbers.series[name] = s
	}
	h.numbers.mu.Unlock()

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last-s.next+1 < count {
		now, size := h.now(), max(s.size/2, leastReserved)
		if now.Sub(s.reserved) < usedUpWithin || s.reserved.IsZero() {
			size = min(2*s.size, mostReserved)
		}
		r, err := h.reserve(ctx, name, max(size, count))
		if err != nil {
			return 0, err
		}
		if r.First != s.last+1 { // another process reserved in between
			s.next = r.First
		}
		s.last, s.size, s.reserved = r.Last, size, now
	}
	n := s.next
	s.next += count
	return n, nil
}

// reserve appends a reservation behind the newest one, which alone matters.
func (h *Handler) reserve(ctx context.Context, name string, count int64) (number.Reserved, error) {
	stream := number.Kind.Stream(name)
	for range maxTries {
		revision, state := int64(-1), number.State{}
		for stored, err := range h.store.ReadStream(ctx, stream, eventstore.LastRevision, eventstore.Backwards) {
			if err != nil {
				return number.Reserved{}, err
			}
			r, err := number.Kind.Decode(stored)
			if err != nil {
				return number.Reserved{}, err
			}
			revision, state = r.Revision, number.Kind.Evolve(state, r)
			break
		}
		events, err := number.Reserve{Count: count}.Decide(state)
		if err != nil {
			return number.Reserved{}, err
		}
		e, err := number.Kind.Encode(newEventID(), events[0], event.Meta{Actor: "system:numbers", OccurredAt: h.now().UTC()})
		if err != nil {
			return number.Reserved{}, err
		}
		_, err = h.store.Append(ctx, stream, eventstore.Expected(revision), e)
		if err == nil {
			reserved, _ := events[0].(number.Reserved)
			return reserved, nil
		}
		if _, raced := errors.AsType[*eventstore.WrongRevision](err); !raced {
			return number.Reserved{}, fmt.Errorf("reserve numbers of %s: %w", name, err)
		}
	}
	return number.Reserved{}, ErrBusy
}
