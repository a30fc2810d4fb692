package contact

import (
	"slices"
	"strings"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/patch"
)

// Absorbed records that another contact was merged into this one. The other's messages and lists now belong to this contact.
type Absorbed struct {
	Contact int64          `json:"contact"` // the other one
	Name    event.Personal `json:"name,omitzero"`
	ByHand  bool           `json:"by_hand,omitempty"` // a user has set that name
}

// Merged records that this contact was merged into another one. It follows the other contact's Absorbed.
type Merged struct {
	Into int64 `json:"into"`
}

// Evolve adds the merged contact, which is erased together with this one.
func (e Absorbed) Evolve(s State) State {
	s.Absorbed = append(slices.Clone(s.Absorbed), e.Contact)
	if !e.Name.IsZero() {
		s.Name, s.ByHand = e.Name, e.ByHand
	}
	return s
}

// Evolve ends the contact. Contacts that were merged into it are erased with the contact Into.
func (e Merged) Evolve(s State) State { return State{Into: e.Into, Absorbed: s.Absorbed} }

// MergedError returns the error for a contact that was merged into another one, with the other's id.
func MergedError(into int64) error {
	return &fault.Error{
		Kind: fault.NotFound, Detail: ErrNotFound.Detail, Code: ErrNotFound.Code,
		Fields: []fault.Field{{Field: "id", Message: "The contact was merged into another one", ID: into}},
	}
}

// gone returns the error for a contact that does not exist.
func (s State) gone() error {
	if s.Into != 0 {
		return MergedError(s.Into)
	}
	return ErrNotFound
}

// Absorb merges another contact of the same person into this one (CONTRACT.md N10).
type Absorb struct {
	ID      string
	Contact int64  // the other one
	Other   State  // its decrypted values
	Name    string // name of this contact
}

// Decide merges lists and senders. It keeps the consent if both contacts have opted in, and the better name. The caller
// moves the claims of the phone and of the senders.
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

// rank orders names: set by a user, shown by the network, a user name, a phone, none.
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

// Nameless is the name of a contact without a name.
const Nameless = "Guest"

// MergeInto ends a contact that was merged into another one.
type MergeInto Merged

// Decide returns no events for a contact that has ended.
func (c MergeInto) Decide(s State) ([]event.Event[State], error) {
	if s.Status == "" {
		return nil, nil
	}
	return []event.Event[State]{Merged(c)}, nil
}

// Forget erases a merged contact together with the contact into which it was merged.
type Forget struct{}

// Decide returns no events for a contact that was not merged or is already erased.
func (Forget) Decide(s State) ([]event.Event[State], error) {
	if s.Into == 0 {
		return nil, nil
	}
	return []event.Event[State]{Deleted{}}, nil
}
