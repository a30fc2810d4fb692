package user

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"bahi/domain/access/claim"
	"bahi/domain/event"
)

// record returns an event of an active account, or none if it would change nothing.
func (s State) record(e event.Event[State], same bool) ([]event.Event[State], error) {
	switch {
	case !s.Active():
		return nil, ErrNotFound
	case same:
		return nil, nil
	}
	return []event.Event[State]{e}, nil
}

// Register creates an account. The caller has normalised the values (see package person).
type Register struct {
	Provider  string
	Workspace uuid.UUID
	Email     event.Personal
	EmailKey  string
	FirstName event.Personal
	LastName  event.Personal
	Verified  bool
}

// Decide registers once.
func (c Register) Decide(s State) ([]event.Event[State], error) {
	if s.Registered {
		return nil, nil
	}
	return []event.Event[State]{Registered{
		Provider: c.Provider, Workspace: c.Workspace, Email: c.Email, EmailKey: c.EmailKey,
		FirstName: c.FirstName, LastName: c.LastName, Verified: c.Verified,
	}}, nil
}

// VerifyEmail records that the user has access to the address's mailbox.
type VerifyEmail struct {
	EmailKey string // keyed hash of the address to which the token was mailed
}

// Decide returns no events for a former address.
func (c VerifyEmail) Decide(s State) ([]event.Event[State], error) {
	return s.record(EmailVerified(c), s.Verified || c.EmailKey != s.EmailKey)
}

// ChangeProfile changes the given fields. An empty Phone removes the number.
type ChangeProfile struct {
	FirstName *event.Personal
	LastName  *event.Personal
	Phone     *event.Personal
}

// Decide records the given fields, if there are any. It cannot compare values, because both are sealed.
func (c ChangeProfile) Decide(s State) ([]event.Event[State], error) {
	if !s.Active() {
		return nil, ErrNotFound
	}
	e := ProfileChanged{}
	if c.FirstName != nil {
		e.FirstName = *c.FirstName
	}
	if c.LastName != nil {
		e.LastName = *c.LastName
	}
	if c.Phone != nil {
		e.Phone, e.NoPhone = *c.Phone, c.Phone.IsZero()
	}
	if c.FirstName == nil && c.LastName == nil && (c.Phone == nil || e.NoPhone && s.Phone.IsZero()) {
		return nil, nil
	}
	return []event.Event[State]{e}, nil
}

// ChangeEmail changes the user's address. The same transaction claims the new address.
type ChangeEmail struct {
	Email    event.Personal
	EmailKey string
}

// Decide changes the address once.
func (c ChangeEmail) Decide(s State) ([]event.Event[State], error) {
	return s.record(EmailChanged{Email: c.Email, EmailKey: c.EmailKey, Before: s.Email, EmailBefore: s.EmailKey}, c.EmailKey == s.EmailKey)
}

// Edit changes a profile, an address, or both in one decision.
type Edit struct {
	Profile ChangeProfile
	Email   *ChangeEmail // nil: unchanged
}

// Decide changes both or nothing.
func (c Edit) Decide(s State) (events []event.Event[State], err error) {
	if c.Email != nil {
		if events, err = c.Email.Decide(s); err != nil {
			return nil, err
		}
	}
	changed, err := c.Profile.Decide(s)
	if err != nil {
		return nil, err
	}
	return append(events, changed...), nil
}

// RestoreEmail undoes a change of the address. The user must have proved access to the former address. The caller must remove the password,
// because an attacker who changed the address may know it.
type RestoreEmail struct {
	Change   int // the number of the change
	Email    event.Personal
	EmailKey string
}

// Decide undoes a change once.
func (c RestoreEmail) Decide(s State) ([]event.Event[State], error) {
	if !s.Active() {
		return nil, ErrNotFound
	}
	left, there := s.LeftBy(c.Change)
	if !there || left.EmailKey != c.EmailKey {
		return nil, ErrUndone
	}
	events := []event.Event[State]{EmailRestored{Change: c.Change, Email: c.Email, EmailKey: c.EmailKey}}
	if s.Provider == ByEmail {
		events = append(events, PasswordChanged{Removed: true})
	}
	return events, nil
}

// LoseEmailClaim takes an address from the user for another user.
type LoseEmailClaim struct {
	EmailKey string
	Lapsed   bool // another user has verified the address, or the time to verify it has passed
	Regained bool // a former owner of the address has verified it again, and gets it back unless the user has verified it
}

// Decide returns an error if the user's claim is stronger.
func (c LoseEmailClaim) Decide(s State) ([]event.Event[State], error) {
	switch {
	case !s.Active() || s.EmailKey != c.EmailKey:
		return nil, nil
	case (!c.Lapsed || s.Trusted()) && (!c.Regained || s.Verified):
		return nil, claim.ErrTaken
	}
	return []event.Event[State]{EmailClaimLost{EmailKey: c.EmailKey}}, nil
}

// ChangePassword records a new password without the password itself.
type ChangePassword struct {
	Forgotten bool
	Removed   bool
}

// Decide refuses accounts without a password.
func (c ChangePassword) Decide(s State) ([]event.Event[State], error) {
	switch {
	case !s.Active():
		return nil, ErrNotFound
	case s.Provider != ByEmail && !c.Removed:
		return nil, ErrNoPassword
	}
	return []event.Event[State]{PasswordChanged(c)}, nil
}

// ChangePicture sets the user's stored picture.
type ChangePicture struct {
	Key string
}

// Decide changes the picture.
func (c ChangePicture) Decide(s State) ([]event.Event[State], error) {
	return s.record(PictureChanged(c), c.Key == s.Picture)
}

// LinkIdentity lets the user sign in with a provider's identity. The caller has claimed the identity
// before.
type LinkIdentity struct {
	IdentityKey string
}

// Decide links an identity once.
func (c LinkIdentity) Decide(s State) ([]event.Event[State], error) {
	return s.record(IdentityLinked(c), slices.Contains(s.Identities, c.IdentityKey))
}

// Grant makes the user an operator of the deployment, or revokes that.
type Grant struct {
	Operator bool
}

// Decide records only a change.
func (c Grant) Decide(s State) ([]event.Event[State], error) {
	return s.record(Granted(c), s.Operator == c.Operator)
}

// RequestDeletion requests the account's erasure after a delay.
type RequestDeletion struct {
	DeleteAfter time.Time
}

// Decide returns no events for a second request.
func (c RequestDeletion) Decide(s State) ([]event.Event[State], error) {
	return s.record(DeletionRequested{DeleteAfter: c.DeleteAfter.UTC()}, s.DeleteAfter != nil)
}

// CancelDeletion cancels a requested deletion.
type CancelDeletion struct{}

// Decide cancels a pending request.
func (CancelDeletion) Decide(s State) ([]event.Event[State], error) {
	return s.record(DeletionCancelled{}, s.DeleteAfter == nil)
}

// BeginErasure ends the account. It fails before DeleteAfter and after CancelDeletion. After it, the deletion can no longer be cancelled.
type BeginErasure struct {
	Now time.Time
}

// Decide begins once.
func (c BeginErasure) Decide(s State) ([]event.Event[State], error) {
	switch {
	case !s.Registered:
		return nil, ErrNotFound
	case !s.Active(), s.DeleteAfter == nil, c.Now.Before(*s.DeleteAfter):
		return nil, nil
	}
	return []event.Event[State]{ErasureBegun{}}, nil
}

// Erase completes an erasure: the person's values in the log are no longer readable.
type Erase struct{}

// Decide erases once.
func (Erase) Decide(s State) ([]event.Event[State], error) {
	switch {
	case !s.Registered:
		return nil, ErrNotFound
	case s.Erased || !s.Ending:
		return nil, nil
	}
	return []event.Event[State]{Erased{}}, nil
}
