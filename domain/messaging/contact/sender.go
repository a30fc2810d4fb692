package contact

import (
	"slices"

	"bahi/domain/claims"
	"bahi/domain/event"
	"bahi/domain/messaging/network"
)

type sender struct{}

// Senders are the claims of the networks' ids of persons. Each id belongs to one contact of a workspace. The streams are
// messagingsender-<hash>.
var Senders = claims.New[sender]("messagingsender", "MessagingSenderClaimed", "MessagingSenderReleased")

// Sender is the id of a contact at the network of a channel.
type Sender struct {
	Channel int64          `json:"channel"`
	Key     string         `json:"key"` // keyed hash, which identifies the claim of the id
	ID      event.Personal `json:"id"`

	InClear string `json:"-"` // plaintext of ID in a command
}

// sealed returns the sender in the form for events.
func (s Sender) sealed(contact string) Sender {
	return Sender{Channel: s.Channel, Key: s.Key, ID: Subjects.Personal(contact, s.InClear)}
}

// SenderAdded records the id of the contact at the network of a channel.
type SenderAdded Sender

// Evolve adds the id. Messages are sent to the last id of a channel.
func (e SenderAdded) Evolve(s State) State {
	s.Senders = append(slices.Clone(s.Senders), Sender(e))
	return s
}

// SenderKey returns the key if the contact has it, else "".
func (s State) SenderKey(key string) string {
	if slices.ContainsFunc(s.Senders, func(k Sender) bool { return k.Key == key }) {
		return key
	}
	return ""
}

// SenderAt returns the newest id of the contact at the network of a channel. Zero: none.
func (s State) SenderAt(channel int64) event.Personal {
	for _, k := range slices.Backward(s.Senders) {
		if k.Channel == channel {
			return k.ID
		}
	}
	return event.Personal{}
}

// Identify records the id of a contact at a network.
type Identify struct {
	Sender

	Contact string
}

// Decide returns no events for a known id.
func (c Identify) Decide(s State) ([]event.Event[State], error) {
	switch {
	case s.Status == "":
		return nil, s.gone()
	case s.SenderKey(c.Key) != "":
		return nil, nil
	}
	return []event.Event[State]{SenderAdded(c.sealed(c.Contact))}, nil
}

// The ways in which a contact opts out, and in again.
const (
	ByWord    = "word"    // the contact wrote a keyword
	ByNetwork = "network" // the contact used the network's setting
)

// ConsentChanged records that the contact opted out, or opted in again in the same way.
type ConsentChanged struct {
	OptIn bool   `json:"opt_in"`
	By    string `json:"by"`

	network.Moment // when the contact did so
}

// Evolve sets the consent.
func (e ConsentChanged) Evolve(s State) State {
	s.OptIn, s.OptedOutBy = e.OptIn, e.By
	if e.OptIn {
		s.OptedOutBy = ""
	} else if s.OptedOutAt.Before(e.Moment) {
		s.OptedOutAt = e.Moment
	}
	return s
}

// ChangeConsent is a contact's change of its consent. After an opt-out, a contact can opt in only in the same way (CONTRACT.md N9).
type ChangeConsent struct {
	OptIn bool
	By    string
	network.Moment
}

// Decide records a change. It records a later opt-out even if the contact has already opted out: messages may arrive out of order, and an
// older keyword must not revoke a later opt-out.
func (c ChangeConsent) Decide(s State) ([]event.Event[State], error) {
	again := c.OptIn == s.OptIn && (c.OptIn || s.OptedOutBy != c.By || !s.OptedOutAt.Before(c.Moment))
	if s.Status == "" || again || c.OptIn && (s.OptedOutBy != c.By || c.Before(s.OptedOutAt)) {
		return nil, nil
	}
	return []event.Event[State]{ConsentChanged(c)}, nil
}
