package accesscmd

import (
	"cmp"
	"context"
	"errors"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/commands/accesscmd/credentials"
	"bahi/domain/access/user"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/patch"
	"bahi/domain/person"
	"bahi/domain/wording"
)

// Profile has the user's own changes. An absent field does not change.
type Profile struct {
	Email     patch.Field[string] `json:"email,omitzero"      nullable:"false" maxLength:"254" doc:"Email address"`
	FirstName patch.Field[string] `json:"first_name,omitzero" nullable:"false" maxLength:"400" doc:"First name"`
	LastName  patch.Field[string] `json:"last_name,omitzero"  nullable:"false" maxLength:"400" doc:"Last name"`
	Phone     patch.Field[string] `json:"phone,omitzero"      nullable:"true"  maxLength:"40" doc:"E.164; without a country's code, of India. Empty or null: none"`
}

// Change changes a user's profile. A new address takes effect at once, unverified (G11).
func (a *Accounts) Change(ctx context.Context, req commands.Request, id uuid.UUID, p Profile) (out commands.Outcome[user.State],
	err error) {
	s, err := a.Load(ctx, id)
	if err != nil {
		return out, err
	}
	edit, email, err := edited(id, p)
	if err != nil {
		return out, err
	}
	if email != "" {
		key, err := a.EmailKey(ctx, email)
		if err != nil {
			return out, err
		}
		edit.Email = &user.ChangeEmail{Email: user.Subjects.Personal(id.String(), email), EmailKey: key}
	}
	return commands.Do(ctx, a.Commands, matching(req, id, s.Workspace), user.Kind, func(ctx context.Context, tx *commands.Tx) error {
		before, err := commands.Load(ctx, tx, user.Kind, id.String())
		if err != nil {
			return err
		}
		after, err := commands.Decide(ctx, tx, user.Kind, id.String(), edit)
		if err != nil || after.State.EmailKey == before.State.EmailKey {
			return err
		}
		if err := a.takeEmail(ctx, tx, after.State.EmailKey, id, asked); err != nil {
			if errors.Is(err, ErrTaken) {
				err = ErrInUse
			}
			return err
		}
		return leaveEmail(ctx, tx, before.State.EmailKey, id)
	})
}

// edited returns the requested change of a profile without the address, and the address. It reports all invalid fields together.
func edited(id uuid.UUID, p Profile) (edit user.Edit, email string, err error) {
	var (
		wrong []error
		set   = func(into **event.Personal, given patch.Field[string], rule func(string, string) (string, error), field string) {
			if !given.Present() {
				return
			}
			text, err := rule(field, given.Value)
			wrong = append(wrong, err)
			*into = new(user.Subjects.Personal(id.String(), text))
		}
	)
	if p.Email.Present() {
		email, err = person.Email("email", p.Email.Value)
		wrong = append(wrong, err)
	}
	set(&edit.Profile.FirstName, p.FirstName, person.Name, "first_name")
	set(&edit.Profile.LastName, p.LastName, person.Name, "last_name")
	set(&edit.Profile.Phone, p.Phone, wording.Phone, "phone")
	return edit, email, fault.Join(wrong...)
}

// ChangePassword sets a new password and ends the user's other sessions. It ignores If-Match, because the current password identifies the
// state.
func (a *Accounts) ChangePassword(ctx context.Context, req commands.Request, id, thisSession uuid.UUID, current,
	password string) (commands.Outcome[user.State], error) {
	out, done, err := a.PreviousOutcome(ctx, req, id) // a retry must not need the current password, which has changed
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
	if commands.Untried(ctx) != nil {
		return out, cmp.Or(a.checkPassword(ctx, s, password), commands.ErrTrial)
	}
	_, known, err := a.verify(ctx, "change "+id.String(), id, current) // unauthenticated clients cannot use up this count
	if err != nil {
		return out, err
	}
	if !known {
		return out, withFaults("current_password", ErrWrongPassword, a.checkPassword(ctx, s, password))
	}
	if err := a.setPassword(ctx, id, s, password, thisSession); err != nil {
		return out, err
	}
	// A reset link from before the change must not set another password.
	if err := a.Credentials.Mailed.Void(ctx, credentials.Reset, Addressee(id, s.EmailKey)); err != nil {
		return out, err
	}
	return a.decide(ctx, req, id, s, user.ChangePassword{})
}

// ChangePicture sets the user's stored picture. It returns the key of the unused picture: the previous one, or this one if an equal request
// has already stored another picture.
func (a *Accounts) ChangePicture(ctx context.Context, req commands.Request, id uuid.UUID, key string) (unused string,
	out commands.Outcome[user.State], err error) {
	s, err := a.Load(ctx, id)
	if err != nil {
		return "", out, err
	}
	out, err = commands.Handle(ctx, a.Commands, matching(req, id, s.Workspace), user.Kind, id.String(), user.ChangePicture{Key: key})
	if out.Replayed {
		return key, out, err
	}
	return s.Picture, out, err
}

// RequestDeletion schedules the deletion of the account. A second request returns the first one's outcome.
func (a *Accounts) RequestDeletion(ctx context.Context, req commands.Request, id uuid.UUID) (out commands.Outcome[user.State], err error) {
	s, err := a.Load(ctx, id)
	if err != nil {
		return out, err
	}
	return a.decide(ctx, req, id, s, user.RequestDeletion{DeleteAfter: a.Now().Add(a.Grace)})
}

// CancelDeletion cancels a deletion, for an administrator.
func (a *Accounts) CancelDeletion(ctx context.Context, req commands.Request, id uuid.UUID) error {
	s, err := a.Load(ctx, id)
	if err == nil {
		_, err = a.handle(ctx, req, id, s, user.CancelDeletion{})
	}
	return err
}

// Grant makes the user an operator of the deployment, or revokes that.
func (a *Accounts) Grant(ctx context.Context, req commands.Request, id uuid.UUID, operator bool) error {
	s, err := a.Load(ctx, id)
	if err == nil {
		_, err = a.handle(ctx, req, id, s, user.Grant{Operator: operator})
	}
	return err
}
