// Package bookslock is the lock of a workspace's books: rows dated on or before it do not change.
// Its stream is named after the workspace.
package bookslock

import (
	"strings"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/unit"
)

// Kind names what a stream bookslock-<workspace> holds. A name is for ever: old logs have it.
var Kind = event.NewKind("bookslock",
	event.Of[Moved]("BooksLockMoved", 1),
)

// State is the lock.
type State struct {
	Through *unit.Date // the last locked day; nil: nothing is locked
}

// Covers reports whether a day is locked.
func (s State) Covers(day unit.Date) bool { return s.Through != nil && day <= *s.Through }

// Moved records that the lock was set, moved or removed.
type Moved struct {
	From *unit.Date `json:"from"`
	To   *unit.Date `json:"to"`
}

// Evolve moves the lock.
func (e Moved) Evolve(State) State { return State{Through: e.To} }

// Set puts the lock at a day, or takes it away.
type Set struct {
	Through *unit.Date `json:"locked_through" doc:"Last locked date; null: none"`
	Reason  string     `json:"-"`
	Today   unit.Date  `json:"-"`
	Closed  *unit.Date `json:"-"` // last day of the newest closed period; nil: none is closed
}

// Decide wants a reason for moving the lock back, and does not move it back behind a closed period. It locks no day that is not over.
func (c Set) Decide(s State) ([]event.Event[State], error) {
	now := s.Through
	switch {
	case now == nil && c.Through == nil, now != nil && c.Through != nil && *now == *c.Through:
		return nil, nil
	case c.Through != nil && *c.Through >= c.Today:
		return nil, fault.Fields(fault.Field{Field: "locked_through", Message: "must be before today"})
	case c.Closed != nil && (c.Through == nil || *c.Through < *c.Closed):
		return nil, fault.Newf(fault.Conflict, "The period through %s is closed: an operator may reopen it (POST /books/periods/%s/reopen)",
			*c.Closed,
			*c.Closed)
	case now != nil && (c.Through == nil || *c.Through < *now) && strings.TrimSpace(c.Reason) == "":
		return nil, fault.New(fault.Invalid, "Moving the lock back requires a reason (header Bahi-Reason)")
	}
	return []event.Event[State]{Moved{From: now, To: c.Through}}, nil
}
