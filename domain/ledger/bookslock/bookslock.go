// Package bookslock is the lock of a workspace's books: rows dated on or before the locked day cannot change. The
// stream's id is the workspace's.
package bookslock

import (
	"strings"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/unit"
)

// Kind registers the events of streams bookslock-<workspace>. Stored names are permanent.
var Kind = event.NewKind("bookslock",
	event.Of[Moved]("BooksLockMoved", 1),
)

// State is the lock.
type State struct {
	Through *unit.Date // the last locked day; nil: nothing is locked
}

// Covers reports whether a date is locked.
func (s State) Covers(day unit.Date) bool { return s.Through != nil && day <= *s.Through }

// Moved records that the lock was set, moved or removed.
type Moved struct {
	From *unit.Date `json:"from"`
	To   *unit.Date `json:"to"`
}

// Evolve sets the lock.
func (e Moved) Evolve(State) State { return State{Through: e.To} }

// Set sets or removes the lock.
type Set struct {
	Through *unit.Date `json:"locked_through" doc:"Last locked date; null: none"`
	Reason  string     `json:"-"`
	Today   unit.Date  `json:"-"`
	Closed  *unit.Date `json:"-"` // last day of the newest closed period; nil: none is closed
}

// Decide requires a reason to move the lock back, and refuses to move it before the end of a closed period. It refuses today and later
// dates.
func (c Set) Decide(s State) ([]event.Event[State], error) {
	now := s.Through
	switch {
	case now == nil && c.Through == nil, now != nil && c.Through != nil && *now == *c.Through:
		return nil, nil
	case c.Through != nil && *c.Through >= c.Today:
		return nil, fault.Wrong("locked_through", "must be before today")
	case c.Closed != nil && (c.Through == nil || *c.Through < *c.Closed):
		return nil, fault.Newf(fault.Conflict, "The period through %s is closed: an operator may reopen it", *c.Closed)
	case now != nil && (c.Through == nil || *c.Through < *now) && strings.TrimSpace(c.Reason) == "":
		return nil, fault.New(fault.Invalid, "Moving the lock back requires a reason (header Bahi-Reason)")
	}
	return []event.Event[State]{Moved{From: now, To: c.Through}}, nil
}
