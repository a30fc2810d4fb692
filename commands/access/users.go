package access

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/commands/access/credentials"
	"bahi/domain/access/user"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/person"
)

// Profile is what a user may change of themselves. What is nil stays.
type Profile struct {
	Email     *string `json:"email,omitempty"      maxLength:"254"`
	FirstName *string `json:"first_name,omitempty" maxLength:"400"`
	LastName  *string `json:"last_name,omitempty"  maxLength:"400"`
	Phone     *string `json:"phone,omitempty"      maxLength:"40" doc:"E.164; without a country's code, of India. Empty: none"`
}

// Change changes a user's profile. Another address takes effect at once, and is to be verified (G11).
//
// It claims the new address first and releases the old one last. A crash in between, or a profile that moved
// meanwhile, leaves a claim that nobody's address matches, which may be taken over.
func (a *Accounts) Change(ctx context.Context, req commands.Request, id uuid.UUID, p Profile) (out commands.Outcome[user.State], err error) {
	l, err := a.active(ctx, id)
	if err != nil {
		return out, err
	}
	edit, email, err := edited(id, p)
	if err != nil {
		return out, err
	}
	if email != "" {
		if edit.Email, err = a.claimAnother(ctx, req, id, l, email); err != nil {
			return out, err
		}
	}
	out, err = a.edit(ctx, req, id, l.State, edit)
	if errors.Is(err, ErrTaken) {
		err = ErrInUse
	}
	if err != nil || edit.Email == nil {
		return out, err
	}
	released, err := a.releaseEmail(ctx, req, l.State.EmailKey, id)
	out.Position = max(out.Position, released)
	return out, err
}

// edited returns the change that a profile asks for, with its address apart from the rest; empty when there is none. It
// refuses all that is wrong at once.
func edited(id uuid.UUID, p Profile) (edit user.Edit, email string, err error) {
	var (
		wrong []error
		set   = func(into **event.Personal, given *string, rule func(string, string) (string, error), field string) {
			if given == nil {
				return
			}
			text, err := rule(field, *given)
			wrong = append(wrong, err)
			*into = new(user.Subjects.Personal(id.String(), text))
		}
	)
	if p.Email != nil {
		email, err = person.Email("email", *p.Email)
		wrong = append(wrong, err)
	}
	set(&edit.Profile.FirstName, p.FirstName, person.Name, "first_name")
	set(&edit.Profile.LastName, p.LastName, person.Name, "last_name")
	set(&edit.Profile.Phone, p.Phone, person.Phone, "phone")
	return edit, email, fault.Join(wrong...)
}

// claimAnother claims an address for the user, and returns the change to it; nil when it is theirs.
func (a *Accounts) claimAnother(ctx context.Context, req commands.Request, id uuid.UUID, l commands.Loaded[user.State], email string) (*user.ChangeEmail, error) {
	key, err := a.EmailKey(ctx, email)
	if err != nil || key == l.State.EmailKey {
		return nil, err
	}
	if seen := req.IfMatch; seen != nil && *seen != l.Revision { // before anything is claimed
		return nil, commands.ErrStale
	}
	claimed, err := a.claimEmail(ctx, req, key, id, asked)
	if errors.Is(err, ErrTaken) {
		err = ErrInUse
	}
	return &user.ChangeEmail{Email: user.Subjects.Personal(id.String(), email), EmailKey: key, Claim: claimed}, err
}

// ChangePassword sets another password and ends the user's other sessions. The current password proves enough: If-Match is
// not asked for.
func (a *Accounts) ChangePassword(ctx context.Context, req commands.Request, id, thisSession uuid.UUID, current, password string) (commands.Outcome[user.State], error) {
	out, done, err := a.Earlier(ctx, req, id) // the current password is another one by now
	if done || err != nil {
		return out, err
	}
	s, err := a.Load(ctx, id)
	if err != nil {
		return out, err
	}
	if s.Provider != user.ByEmail {
		return out, user.ErrNoPassword
	}
	_, known, err := a.Credentials.Passwords.Verify(ctx, id, current)
	if err != nil {
		return out, err
	}
	if !known {
		return out, ErrWrongPassword
	}
	if err := a.setPassword(ctx, id, s, "new_password", password, thisSession); err != nil {
		return out, err
	}
	// A link that was mailed before sets no other one.
	if err := a.Credentials.Mailed.Void(ctx, credentials.Reset, Addressee(id, s.EmailKey)); err != nil {
		return out, err
	}
	return a.decide(ctx, req, id, s, user.ChangePassword{})
}

// ChangePicture gives the user a picture that is stored already. It returns the key of the picture that nobody has now: the one
// before, or this one where the same request has stored and given another.
func (a *Accounts) ChangePicture(ctx context.Context, req commands.Request, id uuid.UUID, key string) (unused string, out commands.Outcome[user.State], err error) {
	s, err := a.Load(ctx, id)
	if err != nil {
		return "", out, err
	}
	out, err = a.edit(ctx, req, id, s, user.ChangePicture{Key: key})
	if out.Replayed {
		return key, out, err
	}
	return s.Picture, out, err
}

// RequestDeletion schedules the end of the account. A second request returns the first one's outcome.
func (a *Accounts) RequestDeletion(ctx context.Context, req commands.Request, id uuid.UUID) (out commands.Outcome[user.State], err error) {
	s, err := a.Load(ctx, id)
	if err != nil {
		return out, err
	}
	return a.decide(ctx, req, id, s, user.RequestDeletion{DeleteAfter: a.Now().Add(a.Grace)})
}

// CancelDeletion lets the user stay. It is for an administrator.
func (a *Accounts) CancelDeletion(ctx context.Context, req commands.Request, id uuid.UUID) error {
	s, err := a.Load(ctx, id)
	if err == nil {
		_, err = a.handle(ctx, req, id, s, user.CancelDeletion{})
	}
	return err
}

// Grant lets the user operate the deployment, or no more.
func (a *Accounts) Grant(ctx context.Context, req commands.Request, id uuid.UUID, operator bool) error {
	s, err := a.Load(ctx, id)
	if err == nil {
		_, err = a.handle(ctx, req, id, s, user.Grant{Operator: operator})
	}
	return err
}
