// Package user is the aggregate of a person who signs in. The person's own key seals the name, email and phone in the log. An erasure
// destroys the key. Each sign-in has its own stream.
package user

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"bahi/domain/event"
	"bahi/domain/fault"
)

// Kind is the kind of the streams user-<uuid>. Names never change: old logs have them.
var Kind = event.NewKind("user",
	event.Of[Registered]("UserRegistered", 1),
	event.Of[EmailVerified]("UserEmailVerified", 1),
	event.Of[ProfileChanged]("UserProfileChanged", 1),
	event.Of[EmailChanged]("UserEmailChanged", 1),
	event.Of[EmailClaimLost]("UserEmailLost", 1),
	event.Of[EmailRestored]("UserEmailRestored", 1),
	event.Of[PasswordChanged]("UserPasswordChanged", 1),
	event.Of[PictureChanged]("UserPictureChanged", 1),
	event.Of[IdentityLinked]("UserIdentityLinked", 1),
	event.Of[Granted]("UserGranted", 1),
	event.Of[DeletionRequested]("UserDeletionRequested", 1),
	event.Of[DeletionCancelled]("UserDeletionCancelled", 1),
	event.Of[ErasureBegun]("UserErasureBegun", 1),
	event.Of[Erased]("UserErased", 1),
).Sealing(Subjects)

// The origins of an account.
const (
	ByEmail    = "email"
	ByProvider = "idp"
)

// Errors that commands return.
var (
	ErrNotFound   = fault.New(fault.NotFound, "User not found")
	ErrNoPassword = fault.New(fault.Malformed, "Password change is not available for this account")
	ErrUndone     = fault.New(fault.Conflict, "The change was undone already")
)

// Subjects are the users: each is the subject of its own stream.
const Subjects event.SubjectType = "user"

// Subject returns the name of the key that seals the user's personal values.
func Subject(id uuid.UUID) string { return Subjects.Of(id.String()) }

// State is the state for decisions and sign-ins. Its personal values are sealed.
type State struct {
	Registered  bool
	Provider    string
	Workspace   uuid.UUID
	Email       event.Personal
	FirstName   event.Personal
	LastName    event.Personal
	Phone       event.Personal
	EmailKey    string // keyed hash, which names the claim of the address
	Verified    bool
	Proven      bool          // this or a former address was verified
	Left        []FormerEmail // verified former addresses that the user may restore, oldest first
	Changes     int           // number of changes of the address, ever
	Picture     string        // key of the stored image; empty: none
	Identities  []string
	Operator    bool
	DeleteAfter *time.Time
	Ending      bool // the erasure is in progress
	Erased      bool
}

// Active reports whether the account exists and is not being erased.
func (s State) Active() bool { return s.Registered && !s.Ending && !s.Erased }

// Trusted reports whether access to the address's mailbox may open the account. It must not if the address is unverified and the user has
// verified another address before: the user may be another person.
func (s State) Trusted() bool { return s.Verified || !s.Proven }

// ProvenEmail returns the keyed hash of the address if the user has verified it, else "".
func (s State) ProvenEmail() string {
	if !s.Verified {
		return ""
	}
	return s.EmailKey
}

// FormerEmail is a former, verified address of a user. Their number is unlimited: with a limit, an attacker with access to an account could
// displace the owner's address.
type FormerEmail struct {
	Change     int // number of the change, from 0
	Email      event.Personal
	EmailKey   string
	Identities int // number of linked identities then
}

// LeftBy returns the address before a change. It returns false if the address was not verified, or the change was undone.
func (s State) LeftBy(change int) (FormerEmail, bool) {
	for _, l := range s.Left {
		if l.Change == change {
			return l, true
		}
	}
	return FormerEmail{}, false
}

// Registered records a new account.
type Registered struct {
	Provider  string         `json:"auth_provider"`
	Workspace uuid.UUID      `json:"workspace_id"`
	Email     event.Personal `json:"email,omitzero"`
	EmailKey  string         `json:"email_key"`
	FirstName event.Personal `json:"first_name,omitzero"`
	LastName  event.Personal `json:"last_name,omitzero"`
	Verified  bool           `json:"email_verified"`
}

// EmailVerified records that the user has proved access to the address's mailbox.
type EmailVerified struct {
	EmailKey string `json:"email_key"`
}

// ProfileChanged records another name or phone number. A missing field is unchanged.
type ProfileChanged struct {
	FirstName event.Personal `json:"first_name,omitzero"`
	LastName  event.Personal `json:"last_name,omitzero"`
	Phone     event.Personal `json:"phone,omitzero"`
	NoPhone   bool           `json:"no_phone,omitempty"` // the number was removed
}

// EmailChanged records another address, which is not verified yet.
type EmailChanged struct {
	Email       event.Personal `json:"email,omitzero"`
	EmailKey    string         `json:"email_key"`
	Before      event.Personal `json:"email_before,omitzero"` // recipient of a notice of the change
	EmailBefore string         `json:"email_key_before"`
}

// EmailClaimLost records that the user lost an address to another user.
type EmailClaimLost struct {
	EmailKey string `json:"email_key"`
}

// EmailRestored records that the user has restored a former, verified address. That undoes the change of this address, and all later
// changes of the address and of identities.
type EmailRestored struct {
	Change   int            `json:"change"` // its number among the user's changes of the address, from 0
	Email    event.Personal `json:"email,omitzero"`
	EmailKey string         `json:"email_key"`
}

// PasswordChanged records another password. The log has neither a password nor a hash of one.
type PasswordChanged struct {
	Forgotten bool `json:"forgotten,omitempty"` // changed with a mailed token
	Removed   bool `json:"removed,omitempty"`   // removed, because another person may know it
}

// PictureChanged records another picture.
type PictureChanged struct {
	Key string `json:"key"`
}

// IdentityLinked records that the user can sign in through a provider.
type IdentityLinked struct {
	IdentityKey string `json:"identity_key"` // keyed hash of issuer and subject
}

// Granted records whether the user may operate the deployment.
type Granted struct {
	Operator bool `json:"operator"`
}

// DeletionRequested records the user's request to be erased.
type DeletionRequested struct {
	DeleteAfter time.Time `json:"delete_after"`
}

// DeletionCancelled records that the request was withdrawn.
type DeletionCancelled struct{}

// ErasureBegun records that the erasure has begun. It cannot be undone.
type ErasureBegun struct{}

// Erased records that the user's key is destroyed, and with it all personal values in the log.
type Erased struct{}

// Evolve creates the account.
func (e Registered) Evolve(State) State {
	return State{
		Registered: true, Provider: e.Provider, Workspace: e.Workspace, Email: e.Email, EmailKey: e.EmailKey,
		FirstName: e.FirstName, LastName: e.LastName, Verified: e.Verified, Proven: e.Verified,
	}
}

// Evolve marks the address as verified, if it is still the current one.
func (e EmailVerified) Evolve(s State) State {
	s.Verified = s.Verified || e.EmailKey == s.EmailKey
	s.Proven = s.Proven || s.Verified
	return s
}

// Evolve sets the given fields.
func (e ProfileChanged) Evolve(s State) State {
	if !e.FirstName.IsZero() {
		s.FirstName = e.FirstName
	}
	if !e.LastName.IsZero() {
		s.LastName = e.LastName
	}
	if !e.Phone.IsZero() || e.NoPhone {
		s.Phone = e.Phone
	}
	return s
}

// Evolve replaces the address.
func (e EmailChanged) Evolve(s State) State {
	if s.Verified {
		// the previous state may be in use elsewhere
		s.Left = append(slices.Clip(s.Left), FormerEmail{Change: s.Changes, Email: s.Email, EmailKey: s.EmailKey, Identities: len(s.Identities)})
	}
	s.Changes++
	s.Email, s.EmailKey, s.Verified = e.Email, e.EmailKey, false
	return s
}

// Evolve removes the address.
func (e EmailClaimLost) Evolve(s State) State {
	s.Email, s.EmailKey, s.Verified = event.Personal{}, "", false
	return s
}

// Evolve restores the state before the change.
func (e EmailRestored) Evolve(s State) State {
	for i, l := range s.Left {
		if l.Change == e.Change {
			s.Left, s.Identities = s.Left[:i], s.Identities[:l.Identities]
			break
		}
	}
	s.Email, s.EmailKey, s.Verified, s.Proven = e.Email, e.EmailKey, true, true
	return s
}

// Evolve changes nothing, because no decision requires the event.
func (PasswordChanged) Evolve(s State) State { return s }

// Evolve sets the picture.
func (e PictureChanged) Evolve(s State) State { s.Picture = e.Key; return s }

// Evolve adds the identity.
func (e IdentityLinked) Evolve(s State) State {
	s.Identities = append(slices.Clip(s.Identities), e.IdentityKey) // the previous state may be in use elsewhere
	return s
}

// Evolve sets the permission.
func (e Granted) Evolve(s State) State { s.Operator = e.Operator; return s }

// Evolve sets the time of deletion.
func (e DeletionRequested) Evolve(s State) State { s.DeleteAfter = &e.DeleteAfter; return s }

// Evolve clears the request.
func (DeletionCancelled) Evolve(s State) State { s.DeleteAfter = nil; return s }

// Evolve ends the account.
func (ErasureBegun) Evolve(s State) State { s.Ending = true; return s }

// Evolve removes the personal values.
func (Erased) Evolve(s State) State {
	return State{Registered: true, Erased: true, Provider: s.Provider, Workspace: s.Workspace}
}

// Erases implements [event.ErasureTrigger].
func (Erased) Erases(id string) event.Erasure { return event.Erasure{Subject: Subjects.Of(id)} }
