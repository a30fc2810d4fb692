// Package claims has the claims of values that at most one record may have: an email address, a phone, a domain, a slug. Each value has a
// stream with the owner's id. The stream's name contains a keyed hash, which hides the value (DESIGN.md, hard case 7). Package
// commands/unique writes the claim together with the record.
package claims

import (
	"time"

	"bahi/domain/event"
)

// State has the owner of a value.
type State struct {
	Holder string // id of the record; empty: the value is free
	Since  time.Time
}

// Value is a kind of value: its streams are <category>-<keyed hash>.
type Value struct {
	*event.Kind[State]

	claimed  func(holder string, since time.Time) event.Event[State]
	released func(holder string) event.Event[State]
}

// New returns a kind of value with the names of its two events. The type V distinguishes its events from other values' events. Names are
// permanent.
func New[V any](category, claimed, released string) Value {
	return Stored(event.NewKind(category, event.Of[Claimed[V]](claimed, 1), event.Of[Released[V]](released, 1)),
		func(holder string, since time.Time) event.Event[State] { return Claimed[V]{holder, since} },
		func(holder string) event.Event[State] { return Released[V]{holder} })
}

// Stored is [New] for events with their own payload.
func Stored(kind *event.Kind[State], claimed func(holder string, since time.Time) event.Event[State],
	released func(holder string) event.Event[State]) Value {
	return Value{kind, claimed, released}
}

// Claimed records the record that has the value.
type Claimed[V any] struct {
	Holder string    `json:"holder"`
	Since  time.Time `json:"since"`
}

// Released records that the value is free again.
type Released[V any] struct {
	Holder string `json:"holder"`
}

// Evolve gives the value to the record.
func (e Claimed[V]) Evolve(State) State { return State(e) }

// Evolve releases the value.
func (Released[V]) Evolve(State) State { return State{} }

// Claim gives the value to a record, even if the record already has it.
type Claim struct {
	Value  Value
	Holder string
	Now    time.Time
}

// Decide always returns an event. The append's check of the revision ensures that the value is free.
func (c Claim) Decide(State) ([]event.Event[State], error) {
	return []event.Event[State]{c.Value.claimed(c.Holder, c.Now.UTC())}, nil
}

// Release releases a value of the record.
type Release struct {
	Value  Value
	Holder string
}

// Decide returns no events for a value of another record or of none.
func (c Release) Decide(s State) ([]event.Event[State], error) {
	if s.Holder != c.Holder || c.Holder == "" {
		return nil, nil
	}
	return []event.Event[State]{c.Value.released(c.Holder)}, nil
}
