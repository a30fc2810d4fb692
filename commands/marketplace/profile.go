package marketplace

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/commands/marketplace/credentials"
	"bahi/domain/event"
	"bahi/domain/marketplace/person"
	"bahi/domain/marketplace/user"
)

// Profile is what a user may change of themselves. What is nil stays.
type Profile struct {
	Email     *string `json:"email,omitempty"      maxLength:"254"`
	FirstName *string `json:"first_name,omitempty" maxLength:"400"`
	LastName  *string `json:"last_name,omitempty"  maxLength:"400"`
	Phone     *string `json:"phone,omitempty"      maxLength:"40" doc:"E.164; without a country's code, of India. Empty: none"`
}

// Change changes a user's profile. Another address takes effect at once, and is to be verified (G11).
func (a *Accounts) Change(ctx context.Context, id uuid.UUID, p Profile) (at event.Position, err error) {
	s, err := a.Load(ctx, id)
	if err != nil {
		return 0, err
	}
	var (
		c     user.ChangeProfile
		wrong []error
		set   = func(into **event.Personal, given *string, rule func(string, string) (string, error), field string) {
			if given == nil {
				return
			}
			text, err := rule(field, *given)
			wrong = append(wrong, err)
			*into = new(personal(id, text))
		}
		email = ""
	)
	if p.Email != nil {
		var err error
		email, err = person.Email("email", *p.Email)
		wrong = append(wrong, err)
	}
	set(&c.FirstName, p.FirstName, person.Name, "first_name")
	set(&c.LastName, p.LastName, person.Name, "last_name")
	set(&c.Phone, p.Phone, person.Phone, "phone")
	if err := together(wrong...); err != nil {
		return 0, err
	}
	if email != "" {
		if at, err = a.changeEmail(ctx, id, s, email); err != nil {
			return at, err
		}
	}
	out, err := a.decide(ctx, id, s, c)
	return max(at, out.Position), err
}

// changeEmail claims the new address first and releases the old one last. A crash in between leaves a
// claim that nobody's address matches, which may be taken over.
func (a *Accounts) changeEmail(ctx context.Context, id uuid.UUID, s user.State, email string) (event.Position, error) {
	key, err := a.EmailKey(ctx, email)
	if err != nil || key == s.EmailKey {
		return 0, err
	}
	claimed, err := a.claimEmail(ctx, key, id, false)
	var out commands.Outcome[user.State]
	if err == nil {
		out, err = a.handle(ctx, id, s, user.ChangeEmail{Email: personal(id, email), EmailKey: key, Claim: claimed})
	}
	if errors.Is(err, ErrTaken) {
		err = ErrInUse
	}
	if err != nil {
		return out.Position, err
	}
	return out.Position, a.releaseEmail(ctx, s.EmailKey, id)
}

// ChangePassword sets another password and ends the user's other sessions.
func (a *Accounts) ChangePassword(ctx context.Context, id, thisSession uuid.UUID, current, password string) (event.Position, error) {
	s, err := a.Load(ctx, id)
	if err != nil {
		return 0, err
	}
	if s.Provider != user.ByEmail {
		return 0, user.ErrNoPassword
	}
	_, known, err := a.Credentials.Passwords.Verify(ctx, id, current)
	if err != nil {
		return 0, err
	}
	if !known {
		return 0, ErrWrongPassword
	}
	if err := a.setPassword(ctx, id, s, "new_password", password, thisSession); err != nil {
		return 0, err
	}
	// A link that was mailed before sets no other one.
	if err := a.Credentials.Mailed.Void(ctx, credentials.Reset, Addressee(id, s.EmailKey)); err != nil {
		return 0, err
	}
	out, err := a.decide(ctx, id, s, user.ChangePassword{})
	return out.Position, err
}

// ChangePicture gives the user a picture that is stored already. It answers which one is nobody's now: the one
// before, or this one where the same request has stored and given another.
func (a *Accounts) ChangePicture(ctx context.Context, id uuid.UUID, key string) (unused string, at event.Position, err error) {
	s, err := a.Load(ctx, id)
	if err != nil {
		return "", 0, err
	}
	out, err := a.decide(ctx, id, s, user.ChangePicture{Key: key})
	if out.Replayed {
		return key, out.Position, err
	}
	return s.Picture, out.Position, err
}

// RequestDeletion schedules the end of the account. Asked again, it answers the first request's.
func (a *Accounts) RequestDeletion(ctx context.Context, id uuid.UUID) (event.Position, error) {
	s, err := a.Load(ctx, id)
	if err != nil {
		return 0, err
	}
	out, err := a.decide(ctx, id, s, user.RequestDeletion{DeleteAfter: a.Now().Add(a.Grace)})
	return out.Position, err
}

// CancelDeletion lets the user stay. It is for an administrator.
func (a *Accounts) CancelDeletion(ctx context.Context, id uuid.UUID) error {
	s, err := a.Load(ctx, id)
	if err == nil {
		_, err = a.handle(ctx, id, s, user.CancelDeletion{})
	}
	return err
}

// Grant lets the user operate the deployment, or no more.
func (a *Accounts) Grant(ctx context.Context, id uuid.UUID, operator bool) error {
	s, err := a.Load(ctx, id)
	if err == nil {
		_, err = a.handle(ctx, id, s, user.Grant{Operator: operator})
	}
	return err
}
