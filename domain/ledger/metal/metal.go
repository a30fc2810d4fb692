// Package metal is the metal of a workspace's books. It applies to accounts and entries that name no metal. The stream's
// id is the workspace's.
package metal

import (
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/ledger/book"
)

// Kind registers the events of streams booksmetal-<workspace>. Stored names are permanent.
var Kind = event.NewKind("booksmetal",
	event.Of[Set]("BooksMetalSet", 1),
)

// Default is the metal of a workspace that has set none.
const Default = "silver"

// State is the metal, "" for [Default].
type State struct{ Metal string }

// Set records the metal.
type Set struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Evolve sets the metal.
func (e Set) Evolve(State) State { return State{Metal: e.To} }

// Of returns the name of the metal.
func (s State) Of() string {
	if s.Metal == "" {
		return Default
	}
	return s.Metal
}

// Change sets the metal.
type Change struct {
	Metal book.Metal `json:"metal" maxLength:"40" doc:"Metal of the accounts and entries that name none, such as silver"`
}

// Decide refuses an empty name.
func (c Change) Decide(s State) ([]event.Event[State], error) {
	var check book.Checker
	check.Metallic(c.Metal, true)
	if c.Metal == "" {
		check.Wrong("metal", "must not be empty")
	}
	switch wrong := check.Faults(); {
	case len(wrong) > 0:
		return nil, fault.Fields(wrong...)
	case string(c.Metal) == s.Of():
		return nil, nil
	}
	return []event.Event[State]{Set{From: s.Of(), To: string(c.Metal)}}, nil
}
