// Package session is one sign-in of a user: the record of it. What keeps it going, its tokens, is not
// in the log.
package session

import (
	"github.com/google/uuid"

	"bahi/domain/event"
)

// Kind names what a stream session-<uuid> holds. A name is for ever: old logs have it.
var Kind = event.NewKind("session",
	event.Of[SignedIn]("UserSignedIn", 1),
	event.Of[SignedOut]("UserSignedOut", 1),
)

// State is whose session it is.
type State struct {
	User  uuid.UUID
	Ended bool
}

// The ways in which somebody signs in.
const (
	ByPassword = "password"
	ByProvider = "idp"
)

// SignedIn records a user's sign-in.
type SignedIn struct {
	User uuid.UUID `json:"user_id"`
	By   string    `json:"by"`
}

// SignedOut records that the user ended the session.
type SignedOut struct {
	User uuid.UUID `json:"user_id"`
}

// Evolve begins the session.
func (e SignedIn) Evolve(State) State { return State{User: e.User} }

// Evolve ends it.
func (SignedOut) Evolve(s State) State { s.Ended = true; return s }

// Begin records a sign-in.
type Begin struct {
	User uuid.UUID
	By   string
}

// Decide records it once.
func (c Begin) Decide(s State) ([]event.Event[State], error) {
	if s.User != uuid.Nil {
		return nil, nil
	}
	return []event.Event[State]{SignedIn(c)}, nil
}

// End records that the user signed out.
type End struct{}

// Decide records it once.
func (End) Decide(s State) ([]event.Event[State], error) {
	if s.User == uuid.Nil || s.Ended {
		return nil, nil
	}
	return []event.Event[State]{SignedOut{User: s.User}}, nil
}
