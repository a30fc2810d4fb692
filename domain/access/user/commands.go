package user

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"bahi/domain/access/claim"
	"bahi/domain/event"
)

// Register begins an account. Its values are in order already (see package person).
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

// VerifyEmail says that who has the address has the account.
type VerifyEmail struct {
	EmailKey string // of the address that was asked
}

// Decide passes over an address that is not theirs any more.
func (c VerifyEmail) Decide(s State) ([]event.Event[State], error) {
	if !s.Active() {
		return nil, ErrNotFound
	}
	if s.Verified || c.EmailKey != s.EmailKey {
		return nil, nil
	}
	return []event.Event[State]{EmailVerified(c)}, nil
}

// ChangeProfile changes what is given. An empty Phone takes the number away.
type ChangeProfile struct {
	FirstName *event.Personal
	LastName  *event.Personal
	Phone     *event.Personal
}

// Decide changes what is given, if anything is. Whether a value is another than before cannot be told:
// both are sealed.
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

// ChangeEmail gives the user another address, which is claimed for them in the same transaction.
type ChangeEmail struct {
	Email    event.Personal
	EmailKey string
}

// Decide changes it once.
func (c ChangeEmail) Decide(s State) ([]event.Event[State], error) {
	if !s.Active() {
		return nil, ErrNotFound
	}
	if c.EmailKey == s.EmailKey {
		return nil, nil
	}
	return []event.Event[State]{EmailChanged{Email: c.Email, EmailKey: c.EmailKey, Before: s.Email, EmailBefore: s.EmailKey}}, nil
}

// Edit changes a profile, an address or both, by one decision.
type Edit struct {
	Profile ChangeProfile
	Email   *ChangeEmail // nil: it stays
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

// RestoreEmail undoes a change of the address, for who has proved that they read the one before. Their password must be
// gone: who changed the address may know it.
type RestoreEmail struct {
	Change   int // its number
	Email    event.Personal
	EmailKey string
}

// Decide undoes it once.
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

// LoseEmailClaim takes an address from the user, so that somebody else can have it.
type LoseEmailClaim struct {
	EmailKey string
	Lapsed   bool // somebody else has proved it, or the time to verify it has passed
	Regained bool // who had it before has proved it, and has it back unless it was verified since
}

// Decide refuses while it is the user's with good reason.
func (c LoseEmailClaim) Decide(s State) ([]event.Event[State], error) {
	switch {
	case !s.Active() || s.EmailKey != c.EmailKey:
		return nil, nil
	case (!c.Lapsed || s.Trusted()) && (!c.Regained || s.Verified):
		return nil, claim.ErrTaken
	}
	return []event.Event[State]{EmailClaimLost{EmailKey: c.EmailKey}}, nil
}

// ChangePassword notes a new password, which is kept elsewhere.
type ChangePassword struct {
	Forgotten bool
	Removed   bool
}

// Decide refuses accounts that have none.
func (c ChangePassword) Decide(s State) ([]event.Event[State], error) {
	switch {
	case !s.Active():
		return nil, ErrNotFound
	case s.Provider != ByEmail && !c.Removed:
		return nil, ErrNoPassword
	}
	return []event.Event[State]{PasswordChanged(c)}, nil
}

// ChangePicture gives the user a picture that is stored already.
type ChangePicture struct {
	Key string
}

// Decide changes it.
func (c ChangePicture) Decide(s State) ([]event.Event[State], error) {
	switch {
	case !s.Active():
		return nil, ErrNotFound
	case c.Key == s.Picture:
		return nil, nil
	}
	return []event.Event[State]{PictureChanged(c)}, nil
}

// LinkIdentity lets the user sign in at a provider, with an identity that is claimed for them already.
type LinkIdentity struct {
	IdentityKey string
}

// Decide links it once.
func (c LinkIdentity) Decide(s State) ([]event.Event[State], error) {
	switch {
	case !s.Active():
		return nil, ErrNotFound
	case slices.Contains(s.Identities, c.IdentityKey):
		return nil, nil
	}
	return []event.Event[State]{IdentityLinked(c)}, nil
}

// Grant lets the user operate the deployment, or no more.
type Grant struct {
	Operator bool
}

// Decide changes what is not so.
func (c Grant) Decide(s State) ([]event.Event[State], error) {
	switch {
	case !s.Active():
		return nil, ErrNotFound
	case s.Operator == c.Operator:
		return nil, nil
	}
	return []event.Event[State]{Granted(c)}, nil
}

// RequestDeletion asks to be forgotten after a moment.
type RequestDeletion struct {
	DeleteAfter time.Time
}

// Decide keeps the first request's moment.
func (c RequestDeletion) Decide(s State) ([]event.Event[State], error) {
	switch {
	case !s.Active():
		return nil, ErrNotFound
	case s.DeleteAfter != nil:
		return nil, nil
	}
	return []event.Event[State]{DeletionRequested{DeleteAfter: c.DeleteAfter.UTC()}}, nil
}

// CancelDeletion lets the user stay.
type CancelDeletion struct{}

// Decide cancels what was asked for.
func (CancelDeletion) Decide(s State) ([]event.Event[State], error) {
	switch {
	case !s.Active():
		return nil, ErrNotFound
	case s.DeleteAfter == nil:
		return nil, nil
	}
	return []event.Event[State]{DeletionCancelled{}}, nil
}

// BeginErasure ends the account. Nobody is erased before their time, nor after they changed their mind, and
// nobody changes their mind after it.
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

// Erase ends an erasure that was begun: nothing of the person is left in the log.
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
