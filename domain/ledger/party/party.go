// Package party links an account to a messaging contact and records the contact's replies about balances.
package party

import (
	"maps"
	"strconv"

	"bahi/domain/event"
	"bahi/domain/fault"
)

// Kind registers the events of streams party-<account>. Stored names are permanent.
var Kind = event.NewKind("party",
	event.Of[ContactSet]("PartyContactSet", 1),
	event.Of[Confirmed]("BalanceConfirmed", 1),
	event.Of[Disputed]("BalanceDisputed", 1),
).Sealing(contacts)

// contacts are the data subjects of the notes.
const contacts event.SubjectType = "messagingcontact"

// The outcomes of a confirmation.
const (
	OutcomeConfirmed = "confirmed"
	OutcomeDisputed  = "disputed"
)

// ErrContact reports a contact that is not in the workspace.
var ErrContact = fault.Wrong("contactId", "Contact not found")

// State is the state that decisions require.
type State struct {
	Contact int64          // 0: none
	Said    map[int64]Said // by confirmation
}

// Said is a reply with its outcome.
type Said struct {
	Outcome string
	Answer
}

// ContactSet records the account's contact.
type ContactSet struct {
	Contact *int64 `json:"contact"` // null: none
}

// Answer is a party's reply about its balances. It has only ids and the workspace's note. The contact's key seals the note.
type Answer struct {
	Confirmation int64          `json:"confirmation"`
	Message      int64          `json:"message,omitempty"` // the contact's message; 0: a user decided
	Position     event.Position `json:"position"`          // position of the statement
	Note         event.Personal `json:"note,omitzero"`
}

// Confirmed records that the party agrees with its balances.
type Confirmed struct{ Answer }

// Disputed records that the party does not agree with its balances.
type Disputed struct{ Answer }

// Evolve sets the contact.
func (e ContactSet) Evolve(s State) State {
	s.Contact = 0
	if e.Contact != nil {
		s.Contact = *e.Contact
	}
	return s
}

// Evolve sets the reply.
func (e Confirmed) Evolve(s State) State { return s.with(OutcomeConfirmed, e.Answer) }

// Evolve sets the reply.
func (e Disputed) Evolve(s State) State { return s.with(OutcomeDisputed, e.Answer) }

func (s State) with(outcome string, a Answer) State {
	said := maps.Clone(s.Said)
	if said == nil {
		said = map[int64]Said{}
	}
	said[a.Confirmation] = Said{outcome, a}
	s.Said = said
	return s
}

// SetContact sets the account's contact.
type SetContact struct {
	Contact *int64 `json:"contactId" minimum:"1" doc:"ID of the contact; null: none"`
}

// Decide returns no events if the account already has this contact.
func (c SetContact) Decide(s State) ([]event.Event[State], error) {
	e := ContactSet(c)
	if e.Evolve(s).Contact == s.Contact {
		return nil, nil
	}
	return []event.Event[State]{e}, nil
}

// Reply records the reply of a party. Contact and Text belong to the note of a user who decides.
type Reply struct {
	Said

	Contact int64
	Text    string
}

// Decide records the first message, with its newest text. A user's decision replaces any other reply.
func (c Reply) Decide(s State) ([]event.Event[State], error) {
	was, answered := s.Said[c.Confirmation]
	if answered && (c.Message != was.Message && c.Message != 0 || c.Text == "" && was == c.Said) {
		return nil, nil
	}
	c.Note = contacts.Personal(strconv.FormatInt(c.Contact, 10), c.Text)
	if c.Outcome == OutcomeConfirmed {
		return []event.Event[State]{Confirmed{c.Answer}}, nil
	}
	return []event.Event[State]{Disputed{c.Answer}}, nil
}
