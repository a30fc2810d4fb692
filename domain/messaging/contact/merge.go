package contact

import (
	"slices"
	"strings"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/patch"
)

// Absorbed records that another contact is the same person: its messages and lists are this contact's from now on. It decides the merging.
type Absorbed struct {
	Contact int64          `json:"contact"` // the other one
	Name    event.Personal `json:"name,omitzero"`
	ByHand  bool           `json:"by_hand,omitempty"` // people have given that name
}

// Merged records that the contact is another one from now on. It follows that one's Absorbed.
type Merged struct {
	Into int64 `json:"into"`
}

// Evolve keeps the other one, which is forgotten with this one.
func (e Absorbed) Evolve(s State) State {
	s.Absorbed = append(slices.Clone(s.Absorbed), e.Contact)
	if !e.Name.IsZero() {
		s.Name, s.ByHand = e.Name, e.ByHand
	}
	return s
}

// Evolve ends it. Those that it has absorbed are forgotten with it.
func (e Merged) Evolve(s State) State { return State{Into: e.Into, Absorbed: s.Absorbed} }

// MergedError returns the refusal of a contact that another one has absorbed, with the id of that one.
func MergedError(into int64) error {
	return &fault.Error{
		Kind: fault.NotFound, Detail: ErrNotFound.Detail, Code: ErrNotFound.Code,
		Fields: []fault.Field{{Field: "id", Message: "The contact was merged into another one", ID: into}},
	}
}

// gone returns why there is no contact.
func (s State) gone() error {
	if s.Into != 0 {
		return MergedError(s.Into)
	}
	return ErrNotFound
}

// Absorb takes over another contact, who is the same person (CONTRACT.md N10).
type Absorb struct {
	ID      string
	Contact int64  // the other one
	Other   State  // its values in clear
	Name    string // this contact's
}

// Decide unites lists and senders, keeps consent that both have given, and the better name. Claims of the phone and of the senders follow.
func (c Absorb) Decide(s State) ([]event.Event[State], error) {
	if s.Status == "" {
		return nil, s.gone()
	}
	if slices.Contains(s.Absorbed, c.Contact) || c.Other.Status == "" {
		return nil, nil
	}
	absorbed := Absorbed{Contact: c.Contact}
	if name := c.Other.Name.Shown(); name != nil && rank(*name, c.Other.ByHand) > rank(c.Name, s.ByHand) {
		absorbed.Name, absorbed.ByHand = Subjects.Personal(c.ID, *name), c.Other.ByHand
	}
	events, e := []event.Event[State]{absorbed}, Edited{}
	if s.OptIn && !c.Other.OptIn {
		e.OptIn = patch.Set(false)
	}
	if email := c.Other.Email.Shown(); email != nil && s.Email.IsZero() {
		e.Email = patch.Set(Subjects.Personal(c.ID, *email))
	}
	if e != (Edited{}) {
		events = append(events, e)
	}
	return append(events, listed(s.Lists, append(slices.Clone(s.Lists), c.Other.Lists...))...), nil
}

// rank orders names: what people gave, what the network shows, a user's name, a phone, none.
func rank(name string, byHand bool) int {
	switch {
	case byHand:
		return 4
	case name == "", name == Nameless:
		return 0
	case strings.HasPrefix(name, "+"):
		return 1
	case strings.HasPrefix(name, "@"):
		return 2
	default:
		return 3
	}
}

// Nameless is the name of who has told none.
const Nameless = "Guest"

// MergeInto ends a contact that another one has absorbed.
type MergeInto Merged

// Decide passes over a contact that has ended.
func (c MergeInto) Decide(s State) ([]event.Event[State], error) {
	if s.Status == "" {
		return nil, nil
	}
	return []event.Event[State]{Merged(c)}, nil
}

// Forget forgets a contact that was merged, with the one that absorbed it.
type Forget struct{}

// Decide passes over a contact that was not merged, or is forgotten.
func (Forget) Decide(s State) ([]event.Event[State], error) {
	if s.Into == 0 {
		return nil, nil
	}
	return []event.Event[State]{Deleted{}}, nil
}
