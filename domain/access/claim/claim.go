// Package claim keeps what may belong to one user only: an email address, an identity at a provider.
// Its stream is named after a keyed hash of that, so the log alone decides who has it, and does not
// tell what it is (DESIGN.md, hard case 7).
package claim

import (
	"time"

	"github.com/google/uuid"

	"bahi/domain/event"
	"bahi/domain/fault"
)

// The kinds of claim: what streams emailclaim-<hash> and identityclaim-<hash> hold. A name is for ever.
var (
	Email = event.NewKind("emailclaim",
		event.Of[Claimed]("EmailClaimed", 1),
		event.Of[Released]("EmailReleased", 1),
	)
	Identity = event.NewKind("identityclaim",
		event.Of[IdentityClaimed]("IdentityClaimed", 1),
		event.Of[IdentityReleased]("IdentityReleased", 1),
	)
)

// ErrTaken answers who claims what is another's.
var ErrTaken = &fault.Error{Kind: fault.Conflict, Detail: "Email already registered", Code: "email_taken"}

// State is whose it is.
type State struct {
	User  uuid.UUID // uuid.Nil: nobody's
	Since time.Time
}

// Claimed: the address is this user's.
type Claimed struct {
	User  uuid.UUID `json:"user_id"`
	Since time.Time `json:"since"`
}

// Released: it is nobody's again.
type Released struct {
	User uuid.UUID `json:"user_id"`
}

// IdentityClaimed: who signs in as this at the provider is this user.
type IdentityClaimed struct {
	User  uuid.UUID `json:"user_id"`
	Since time.Time `json:"since"`
}

// IdentityReleased: it is nobody's again.
type IdentityReleased struct {
	User uuid.UUID `json:"user_id"`
}

// Evolve gives it to the user.
func (e Claimed) Evolve(State) State { return State(e) }

// Evolve takes it back.
func (Released) Evolve(State) State { return State{} }

// Evolve gives it to the user.
func (e IdentityClaimed) Evolve(State) State { return State(e) }

// Evolve takes it back.
func (IdentityReleased) Evolve(State) State { return State{} }

// Take claims it for a user, once more if it is theirs: a claim is known by its revision, and the one before
// may be judged forsaken.
type Take struct {
	User     uuid.UUID
	Now      time.Time
	Forsaken uuid.UUID // a user whose claim may be taken over: they never came to be
	Kind     Taken
}

// Taken says what is claimed.
type Taken int

// What may be claimed.
const (
	AnEmail Taken = iota
	AnIdentity
)

// Decide refuses what is another's.
func (c Take) Decide(s State) ([]event.Event[State], error) {
	switch {
	case s.User != uuid.Nil && s.User != c.User && s.User != c.Forsaken:
		return nil, ErrTaken
	case c.Kind == AnIdentity:
		return []event.Event[State]{IdentityClaimed{User: c.User, Since: c.Now.UTC()}}, nil
	default:
		return []event.Event[State]{Claimed{User: c.User, Since: c.Now.UTC()}}, nil
	}
}

// Release gives up what is the user's. Whoever has it not gives up nothing.
type Release struct {
	User uuid.UUID
	Kind Taken
}

// Decide releases it once.
func (c Release) Decide(s State) ([]event.Event[State], error) {
	switch {
	case s.User != c.User || s.User == uuid.Nil:
		return nil, nil
	case c.Kind == AnIdentity:
		return []event.Event[State]{IdentityReleased{User: c.User}}, nil
	default:
		return []event.Event[State]{Released{User: c.User}}, nil
	}
}
