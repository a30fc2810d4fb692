// Package number assigns integer ids. Events reserve the ids in blocks, so the log ensures that no id is assigned twice. When a process
// ends, the rest of its block is lost.
package number

import "bahi/domain/event"

// Kind is the kind of the streams number-<series>. Its names never change: old logs have them.
var Kind = event.NewKind("number",
	event.Of[Reserved]("NumbersReserved", 1),
)

// The series. The accounts of all five ledgers share one series, their rows another, and the items of all orders a third. So an id is
// unique in the whole deployment.
const (
	Accounts   = "account"
	Rows       = "row"
	OrderItems = "clientorderitem"
)

// State is the last reserved number of a series. Only the newest event of a stream determines it.
type State struct {
	Last int64
}

// Reserved reserves the numbers First to Last for one process.
type Reserved struct {
	First int64 `json:"first"`
	Last  int64 `json:"last"`
}

// Evolve implements [event.Event].
func (e Reserved) Evolve(State) State { return State{Last: e.Last} }

// Reserve reserves the next Count numbers.
type Reserve struct {
	Count int64
}

// Decide always returns one event.
func (c Reserve) Decide(s State) ([]event.Event[State], error) {
	return []event.Event[State]{Reserved{First: s.Last + 1, Last: s.Last + c.Count}}, nil
}
