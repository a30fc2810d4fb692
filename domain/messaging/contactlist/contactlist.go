// Package contactlist is a named list of contacts. Each contact records its lists.
package contactlist

import (
	"slices"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/person"
)

// Kind registers the events of streams contactlist-<number>. Stored names are permanent.
var Kind = event.NewKind("contactlist", event.Of[Created]("ContactListCreated", 1))

// ErrNotFound reports an unknown list. Callers without access to the list receive it too.
var ErrNotFound = fault.New(fault.NotFound, "Contact list not found")

// State is the state that decisions and responses require.
type State struct {
	Name string // empty: the list does not exist
}

// Created records a new list.
type Created struct {
	Name string `json:"name"`
}

// Evolve creates the list.
func (e Created) Evolve(State) State { return State(e) }

// Create creates a list.
type Create struct {
	Name       string  `json:"name" maxLength:"400" doc:"Name of the contact list"`
	ContactIDs []int64 `json:"contactIds,omitempty" maxItems:"500" doc:"First contacts of the list"`
}

// Decide normalises the values.
func (c Create) Decide(State) ([]event.Event[State], error) {
	name, err := person.Name("name", c.Name)
	if err != nil {
		return nil, err
	}
	return []event.Event[State]{Created{Name: name}}, nil
}

// Distinct returns the ids sorted and without duplicates.
func Distinct(ids []int64) []int64 {
	return slices.Compact(slices.Sorted(slices.Values(ids)))
}
