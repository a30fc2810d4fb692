// Package number gives out the integer ids of the ledger area. They are reserved in blocks by events,
// so they are never given twice and survive the loss of everything but the log; what is left of a
// block when a process ends is never used.
package number

import "bahi/domain/event"

// Kind names what a stream number-<series> holds. A name is for ever: old logs have it.
var Kind = event.NewKind("number",
	event.Of[Reserved]("NumbersReserved", 1),
)

// The series. Accounts of all five ledgers share one, and so do their rows: an id then means one
// thing in the whole deployment.
const (
	Accounts = "account"
	Rows     = "row"
)

// State is how far a series was given out. Only the newest event of a stream matters.
type State struct {
	Last int64
}

// Reserved gives the numbers First to Last to one process.
type Reserved struct {
	First int64 `json:"first"`
	Last  int64 `json:"last"`
}

// Evolve moves on.
func (e Reserved) Evolve(State) State { return State{Last: e.Last} }

// Reserve takes the next Count numbers.
type Reserve struct {
	Count int64
}

// Decide always answers one event.
func (c Reserve) Decide(s State) ([]event.Event[State], error) {
	return []event.Event[State]{Reserved{First: s.Last + 1, Last: s.Last + c.Count}}, nil
}
