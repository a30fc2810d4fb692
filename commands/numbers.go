package commands

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"bahi/domain/event"
	"bahi/domain/number"
	"bahi/eventstore"
)

const (
	// A process reserves few numbers at first, so that a workshop's ids stay small through restarts. It reserves more the faster it uses
	// them.
	minReserved   = 8
	maxReserved   = 8192
	usedUpTimeout = 2 * time.Second
)

// numbers assigns the integer ids of this process.
type numbers struct {
	h      *Handler
	mu     sync.Mutex
	series map[string]*series
	given  map[string]int64 // the greatest reserved number of a series that this process has seen
	lives  int              // number of times that reservations may have been lost
}

type series struct {
	mu         sync.Mutex
	next, last int64
	size       int64
	reserved   time.Time
	life       int
}

func newNumbers(h *Handler) *numbers {
	return &numbers{h: h, series: map[string]*series{}, given: map[string]int64{}}
}

// saw records reservations from the log. The log may lose them later while the numbers are in use.
func (n *numbers) saw(events []event.Stored) {
	for _, e := range events {
		category, name := event.SplitStream(e.Stream)
		if category != number.Kind.Category() {
			continue
		}
		if r, err := number.Kind.Decode(e); err == nil {
			n.reserved(name, number.Kind.Evolve(number.State{}, r))
		}
	}
}

// reserved records a reservation, and returns the greatest reserved number known.
func (n *numbers) reserved(name string, s number.State) number.State {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.given[name] = max(n.given[name], s.Last)
	return number.State{Last: n.given[name]}
}

// forget drops this process's remaining numbers, because their reservations may be lost.
func (n *numbers) forget() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lives++
}

// Numbers returns the first of count consecutive numbers of a series that were never assigned before.
func (h *Handler) Numbers(ctx context.Context, name string, count int64) (int64, error) {
	if err := Untried(ctx); err != nil {
		return 0, err
	}
	h.numbers.mu.Lock()
	s := h.numbers.series[name]
	if s == nil {
		s = &series{next: 1, size: minReserved / 2}
		h.numbers.series[name] = s
	}
	life := h.numbers.lives
	h.numbers.mu.Unlock()

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life < life {
		s.life, s.next = life, s.last+1
	}
	if s.last-s.next+1 < count {
		now, size := h.now(), max(s.size/2, minReserved)
		if now.Sub(s.reserved) < usedUpTimeout || s.reserved.IsZero() {
			size = min(2*s.size, maxReserved)
		}
		r, err := h.reserve(ctx, name, max(size, count))
		if err != nil {
			return 0, err
		}
		if r.First != s.last+1 { // another process has reserved in between
			s.next = r.First
		}
		s.last, s.size, s.reserved = r.Last, size, now
	}
	n := s.next
	s.next += count
	return n, nil
}

// reserve appends a reservation of numbers. They follow the newest reserved ones, even those that the log may have lost.
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
		events, err := number.Reserve{Count: count}.Decide(h.numbers.reserved(name, state))
		if err != nil {
			return number.Reserved{}, err
		}
		e, err := number.Kind.Encode(newEventID(), events[0], event.Meta{Actor: "system:numbers", OccurredAt: h.now().UTC()})
		if err != nil {
			return number.Reserved{}, err
		}
		_, err = h.store.Append(ctx, eventstore.To(stream, eventstore.Expected(revision), e))
		if err == nil {
			reserved, _ := events[0].(number.Reserved)
			h.numbers.reserved(name, number.State{Last: reserved.Last})
			return reserved, nil
		}
		if _, raced := errors.AsType[*eventstore.WrongRevision](err); !raced {
			return number.Reserved{}, fmt.Errorf("reserve numbers of %s: %w", name, err)
		}
	}
	return number.Reserved{}, ErrBusy
}

// IDFromSeries returns the id of a new record from a series, for [Create]: the first of count numbers.
func (h *Handler) IDFromSeries(series string, count int64) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		n, err := h.Numbers(ctx, series, count)
		return strconv.FormatInt(n, 10), err
	}
}
