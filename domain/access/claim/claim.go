// Package claim is the aggregate of a value that only one user may have: an email address, or an identity at a provider (see package
// claims).
package claim

import (
	"time"

	"github.com/google/uuid"

	"bahi/domain/claims"
	"bahi/domain/event"
	"bahi/domain/fault"
)

// The kinds of the streams emailclaim-<hash> and identityclaim-<hash>. Names never change.
var (
	Email = claims.Stored(
		event.NewKind("emailclaim",
			event.Of[Claimed]("EmailClaimed", 1),
			event.Of[Released]("EmailReleased", 1),
		),
		func(holder string, since time.Time) event.Event[claims.State] {
			return Claimed{uuid.MustParse(holder), since}
		},
		func(holder string) event.Event[claims.State] { return Released{uuid.MustParse(holder)} },
	)
	Identity = claims.Stored(
		event.NewKind("identityclaim",
			event.Of[IdentityClaimed]("IdentityClaimed", 1),
			event.Of[IdentityReleased]("IdentityReleased", 1),
		),
		func(holder string, since time.Time) event.Event[claims.State] {
			return IdentityClaimed{uuid.MustParse(holder), since}
		},
		func(holder string) event.Event[claims.State] { return IdentityReleased{uuid.MustParse(holder)} },
	)
)

// ErrTaken reports that another user has the value.
var ErrTaken = &fault.Error{Kind: fault.Conflict, Detail: "Email already registered", Code: "email_taken"}

// Claimed records the user who has the address.
type Claimed struct {
	User  uuid.UUID `json:"user_id"`
	Since time.Time `json:"since"`
}

// Released records that the address is free again.
type Released struct {
	User uuid.UUID `json:"user_id"`
}

// IdentityClaimed records the user who signs in with the identity.
type IdentityClaimed struct {
	User  uuid.UUID `json:"user_id"`
	Since time.Time `json:"since"`
}

// IdentityReleased records that the identity is free again.
type IdentityReleased struct {
	User uuid.UUID `json:"user_id"`
}

// Evolve gives the address to the user.
func (e Claimed) Evolve(claims.State) claims.State { return held(e.User, e.Since) }

// Evolve releases the address.
func (Released) Evolve(claims.State) claims.State { return claims.State{} }

// Evolve gives the identity to the user.
func (e IdentityClaimed) Evolve(claims.State) claims.State { return held(e.User, e.Since) }

// Evolve releases the identity.
func (IdentityReleased) Evolve(claims.State) claims.State { return claims.State{} }

func held(by uuid.UUID, since time.Time) claims.State {
	return claims.State{Holder: by.String(), Since: since}
}

// Holder returns the user who has a claim, [uuid.Nil] if there is none.
func Holder(s claims.State) uuid.UUID {
	id, _ := uuid.Parse(s.Holder)
	return id
}
