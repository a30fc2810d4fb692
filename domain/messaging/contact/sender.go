package contact

import (
	"slices"

	"bahi/domain/claims"
	"bahi/domain/event"
	"bahi/domain/messaging/network"
)

type sender struct{}

// Senders are the ids by which networks know people: each belongs to one contact of a workspace. A stream is messagingsender-<hash>.
var Senders = claims.New[sender]("messagingsender", "MessagingSenderClaimed", "MessagingSenderReleased")

// Sender is the id by which the network of a channel knows a contact.
type Sender struct {
	Channel int64          `json:"channel"`
	Key     string         `json:"key"` // keyed hash, which names the claim of the id
	ID      event.Personal `json:"id"`

	InClear string `json:"-"` // of a command
}

// sealed returns the sender as events have it.
func (s Sender) sealed(contact string) Sender {
	return Sender{Channel: s.Channel, Key: s.Key, ID: Subjects.Personal(contact, s.InClear)}
}

// SenderAdded records by what id the network of a channel knows the contact, from now on.
type SenderAdded Sender

// Evolve adds the id. The last one of a channel is the one to write to.
func (e SenderAdded) Evolve(s State) State {
	s.Senders = append(slices.Clone(s.Senders), Sender(e))
	return s
}

// SenderKey returns the key if it is one of the contact's, else "".
func (s State) SenderKey(key string) string {
	if slices.ContainsFunc(s.Senders, func(k Sender) bool { return k.Key == key }) {
		return key
	}
	return ""
}

// SenderAt returns the newest id by which the network of a channel knows the contact. The zero value: none.
func (s State) SenderAt(channel int64) event.Personal {
	for _, k := range slices.Backward(s.Senders) {
		if k.Channel == channel {
			return k.ID
		}
	}
	return event.Personal{}
}

// Identify notes by what id a network knows a contact.
type Identify struct {
	Sender

	Contact string
}

// Decide passes over an id that is noted.
func (c Identify) Decide(s State) ([]event.Event[State], error) {
	switch {
	case s.Status == "":
		return nil, s.gone()
	case s.SenderKey(c.Key) != "":
		return nil, nil
	}
	return []event.Event[State]{SenderAdded(c.sealed(c.Contact))}, nil
}

// What takes a contact's consent, and may give it back.
const (
	ByWord    = "word"    // the contact wrote it
	ByNetwork = "network" // the contact told the network
)

// ConsentChanged records that the contact took back consent, or gave again what was taken back in the same way.
type ConsentChanged struct {
	OptIn bool   `json:"opt_in"`
	By    string `json:"by"`

	network.Moment // when the contact wrote or told it
}

// Evolve keeps the consent.
func (e ConsentChanged) Evolve(s State) State {
	s.OptIn, s.OptedOutBy = e.OptIn, e.By
	if e.OptIn {
		s.OptedOutBy = ""
	} else if s.OptedOutAt.Before(e.Moment) {
		s.OptedOutAt = e.Moment
	}
	return s
}

// ChangeConsent is what a contact says about messages. Only what took consent gives it back (CONTRACT.md N9).
type ChangeConsent struct {
	OptIn bool
	By    string
	network.Moment
}

// Decide notes what differs. Messages do not come in the order in which they were written: a word gives nothing back that a later one took,
// so that a later one is noted also where the consent was taken before.
func (c ChangeConsent) Decide(s State) ([]event.Event[State], error) {
	again := c.OptIn == s.OptIn && (c.OptIn || s.OptedOutBy != c.By || !s.OptedOutAt.Before(c.Moment))
	if s.Status == "" || again || c.OptIn && (s.OptedOutBy != c.By || c.Before(s.OptedOutAt)) {
		return nil, nil
	}
	return []event.Event[State]{ConsentChanged(c)}, nil
}
