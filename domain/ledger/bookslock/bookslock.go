// Package bookslock is the lock of a workspace's books: rows dated on or before it do not change.
// Its stream is named after the workspace.
package bookslock

import (
	"slices"
	"strings"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/unit"
)

// Kind names what a stream bookslock-<workspace> holds. A name is for ever: old logs have it.
var Kind = event.NewKind("bookslock",
	event.Of[Moved]("BooksLockMoved", 1),
)

// State has every place that the lock was put at, and since when: a few a year.
type State struct {
	Moves []Move
}

// Move is one step of the lock.
type Move struct {
	At      event.Position
	Through *unit.Date // nil: unlocked
}

// Through is the last locked day at this position of the log, nil when nothing is locked.
func (s State) Through(at event.Position) *unit.Date {
	for _, m := range slices.Backward(s.Moves) {
		if m.At < at {
			return m.Through
		}
	}
	return nil
}

// MovedAt is where the lock last moved before this position of the log, 0 when it never did.
func (s State) MovedAt(at event.Position) event.Position {
	for _, m := range slices.Backward(s.Moves) {
		if m.At < at {
			return m.At
		}
	}
	return 0
}

// Now is the last locked day, nil when nothing is locked.
func (s State) Now() *unit.Date {
	if len(s.Moves) == 0 {
		return nil
	}
	return s.Moves[len(s.Moves)-1].Through
}

// Moved records that the lock was set, moved or removed.
type Moved struct {
	From *unit.Date `json:"from"`
	To   *unit.Date `json:"to"`
}

// EvolveAt notes the move.
func (e Moved) EvolveAt(s State, at event.Position) State {
	s.Moves = append(slices.Clip(s.Moves), Move{At: at, Through: e.To}) // the state before may be in use elsewhere
	return s
}

// Evolve serves those who do not ask for positions.
func (e Moved) Evolve(s State) State { return e.EvolveAt(s, event.Position(len(s.Moves)+1)) }

// Set puts the lock at a day, or takes it away.
type Set struct {
	Through *unit.Date `json:"locked_through"`
	Reason  string     `json:"-"`
	Today   unit.Date  `json:"-"`
}

// Decide wants a reason for moving the lock back, and locks no day that is not over.
func (c Set) Decide(s State) ([]event.Event[State], error) {
	now := s.Now()
	switch {
	case now == nil && c.Through == nil, now != nil && c.Through != nil && *now == *c.Through:
		return nil, nil
	case c.Through != nil && *c.Through >= c.Today:
		return nil, fault.Fields(fault.Field{Field: "locked_through", Message: "must be before today"})
	case now != nil && (c.Through == nil || *c.Through < *now) && strings.TrimSpace(c.Reason) == "":
		return nil, fault.New(fault.Invalid, "Moving the lock back wants a reason (header Bahi-Reason)")
	}
	return []event.Event[State]{Moved{From: now, To: c.Through}}, nil
}
