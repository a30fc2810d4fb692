// Package number assigns the integer ids of the ledger area. Events reserve them in blocks, so the log alone ensures that no id is given
// twice. The rest of a block is lost when its process ends.
package number

import "bahi/domain/event"

// Kind is the kind of the streams number-<series>. Its names never change: old logs have them.
var Kind = event.NewKind("number",
	event.Of[Reserved]("NumbersReserved", 1),
)

// The series. Accounts of all five ledgers share one, and so do their rows, so an id is unique in the whole deployment. The items of all
// orders share another.
const (
	Accounts   = "account"
	Rows       = "row"
	OrderItems = "clientorderitem"
)

// State is the last reserved number of a series. Only the newest event of a stream matters.
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
