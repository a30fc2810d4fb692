// Package claims keeps values that at most one record may have: an email address, a phone, a domain, a slug.
// Each value has a stream, named after a keyed hash of it, which names the owner and hides the value
// (DESIGN.md, hard case 7). Package commands/unique writes it together with the record.
package claims

import (
	"time"

	"bahi/domain/event"
)

// State is whose a value is.
type State struct {
	Holder string // id of the record; empty: nobody's
	Since  time.Time
}

// Value is a kind of value: its streams are <category>-<keyed hash>.
type Value struct {
	*event.Kind[State]

	claimed  func(holder string, since time.Time) event.Event[State]
	released func(holder string) event.Event[State]
}

// New names a kind of value and its two events. V is a type of its own, which keeps its events apart from other values'. Names are for
// ever.
func New[V any](category, claimed, released string) Value {
	return Stored(event.NewKind(category, event.Of[Claimed[V]](claimed, 1), event.Of[Released[V]](released, 1)),
		func(holder string, since time.Time) event.Event[State] { return Claimed[V]{holder, since} },
		func(holder string) event.Event[State] { return Released[V]{holder} })
}

// Stored is [New] for events with a payload of their own.
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

// Evolve takes it back.
func (Released[V]) Evolve(State) State { return State{} }

// Claim gives the value to a record, once more if it is the record's: a claim is known by its revision.
type Claim struct {
	Value  Value
	Holder string
	Now    time.Time
}

// Decide always decides: who may claim is known by the revision at which the claim is appended.
func (c Claim) Decide(State) ([]event.Event[State], error) {
	return []event.Event[State]{c.Value.claimed(c.Holder, c.Now.UTC())}, nil
}

// Release gives up a value that is the record's.
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
