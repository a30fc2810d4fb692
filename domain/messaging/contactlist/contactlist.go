// Package contactlist is a named list of contacts. Each contact records the lists that it is in.
package contactlist

import (
	"slices"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/person"
)

// Kind registers the events of streams contactlist-<number>. Stored names are permanent.
var Kind = event.NewKind("contactlist", event.Of[Created]("ContactListCreated", 1))

// ErrNotFound also answers those who may not know that the list exists.
var ErrNotFound = fault.New(fault.NotFound, "Contact list not found")

// State is what decisions and answers need.
type State struct {
	Name string // empty: there is no list
}

// Created records a new list.
type Created struct {
	Name string `json:"name"`
}

// Evolve begins the list.
func (e Created) Evolve(State) State { return State(e) }

// Create makes a list.
type Create struct {
	Name       string  `json:"name" maxLength:"400" doc:"Name of the contact list"`
	ContactIDs []int64 `json:"contactIds,omitempty" maxItems:"500" doc:"Contacts that are in it at once"`
}

// Decide puts the values in order.
func (c Create) Decide(State) ([]event.Event[State], error) {
	name, err := person.Name("name", c.Name)
	if err != nil {
		return nil, err
	}
	return []event.Event[State]{Created{Name: name}}, nil
}

// Distinct returns ids in their order, each once.
func Distinct(ids []int64) []int64 {
	return slices.Compact(slices.Sorted(slices.Values(ids)))
}
