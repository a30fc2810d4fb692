// Package session is the aggregate of one sign-in of a user. The log does not have the session's tokens.
package session

import (
	"github.com/google/uuid"

	"bahi/domain/event"
)

// Kind is the kind of the streams session-<uuid>. Names never change: old logs have them.
var Kind = event.NewKind("session",
	event.Of[SignedIn]("UserSignedIn", 1),
	event.Of[SignedOut]("UserSignedOut", 1),
)

// State is the session's state.
type State struct {
	User  uuid.UUID
	Ended bool
}

// The ways to sign in.
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

// Evolve starts the session.
func (e SignedIn) Evolve(State) State { return State{User: e.User} }

// Evolve ends the session.
func (SignedOut) Evolve(s State) State { s.Ended = true; return s }

// Begin records a sign-in.
type Begin struct {
	User uuid.UUID
	By   string
}

// Decide records a sign-in once.
func (c Begin) Decide(s State) ([]event.Event[State], error) {
	if s.User != uuid.Nil {
		return nil, nil
	}
	return []event.Event[State]{SignedIn(c)}, nil
}

// End records that the user signed out.
type End struct{}

// Decide records a sign-out once.
func (End) Decide(s State) ([]event.Event[State], error) {
	if s.User == uuid.Nil || s.Ended {
		return nil, nil
	}
	return []event.Event[State]{SignedOut{User: s.User}}, nil
}
