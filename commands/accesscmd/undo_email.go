package accesscmd

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/commands/accesscmd/credentials"
	"bahi/domain/access/user"
	"bahi/domain/fault"
)

// ErrAnothers reports that another user has verified the address since.
var ErrAnothers = &fault.Error{Kind: fault.Conflict, Detail: "This email address belongs to another account now", Code: "email_taken"}

// ChangeOf returns the subject of the token that undoes a change of a user's address. change is the change's number.
func ChangeOf(id uuid.UUID, change int) uuid.UUID {
	return uuid.NewSHA1(id, []byte("change "+strconv.Itoa(change)))
}

// IssueUndo creates the token that a job mails to the user's previous address. It returns the error of [credentials.Mailed.Issue] if no
// mail must be sent.
func (a *Accounts) IssueUndo(ctx context.Context, id uuid.UUID, left user.FormerEmail, job int64) (string, error) {
	mailed, err := a.Credentials.Mailed.Issue(ctx, credentials.Undo, credentials.Mailing{
		Subject: ChangeOf(id, left.Change), Recipient: Recipient(left.EmailKey), Number: job,
	})
	return strings.Join([]string{id.String(), strconv.Itoa(left.Change), mailed}, "."), err
}

// UndoEmail restores the address to which the token was mailed. An attacker with access to the account may have changed it, so UndoEmail
// removes the password, ends the sessions, and unlinks identities that were linked after the change. It returns [ErrAnothers] if another
// account has verified the address.
func (a *Accounts) UndoEmail(ctx context.Context, req commands.Request, token string) (out commands.Outcome[user.State], err error) {
	name, rest, _ := strings.Cut(token, ".")
	number, mailed, _ := strings.Cut(rest, ".")
	id, idErr := uuid.Parse(name)
	change, changeErr := strconv.Atoi(number)
	if idErr != nil || changeErr != nil {
		return out, credentials.Undo.Refusal()
	}
	err = a.Credentials.Mailed.Use(ctx, credentials.Undo, mailed, func(ctx context.Context, subject uuid.UUID) error {
		if subject != ChangeOf(id, change) {
			return credentials.Undo.Refusal()
		}
		out, err = a.undoEmail(ctx, req, id, change)
		return err
	})
	return out, err
}

// undoEmail ends all access before it restores the address, in case the process stops in between. It ends all access again afterwards,
// because until then a linked identity can sign in.
func (a *Accounts) undoEmail(ctx context.Context, req commands.Request, id uuid.UUID, change int) (out commands.Outcome[user.State],
	err error) {
	s, err := a.Load(ctx, id)
	if errors.Is(err, user.ErrNotFound) {
		return out, credentials.Undo.Refusal()
	}
	if err != nil {
		return out, err
	}
	left, there := s.LeftBy(change)
	if !there { // undoing an earlier change has undone this change too
		return out, credentials.Undo.Refusal()
	}
	email, err := a.Text(ctx, left.Email)
	if err != nil {
		return out, err
	}
	restore := func(dryRun bool) error {
		req := as(req, id, s.Workspace)
		req.DryRun = dryRun
		out, err = commands.Do(ctx, a.Commands, req, user.Kind, func(ctx context.Context, tx *commands.Tx) error {
			before, err := commands.Load(ctx, tx, user.Kind, id.String())
			if err != nil {
				return err
			}
			c := user.RestoreEmail{Change: change, Email: user.Subjects.Personal(id.String(), email), EmailKey: left.EmailKey}
			if _, err := commands.Decide(ctx, tx, user.Kind, id.String(), c); err != nil {
				return err
			}
			if err := a.takeEmail(ctx, tx, left.EmailKey, id, regained); err != nil || before.State.EmailKey == left.EmailKey {
				return err
			}
			return leaveEmail(ctx, tx, before.State.EmailKey, id)
		})
		switch {
		case errors.Is(err, user.ErrNotFound), errors.Is(err, user.ErrUndone):
			err = credentials.Undo.Refusal()
		case errors.Is(err, ErrTaken):
			err = ErrAnothers
		}
		return err
	}
	if err := restore(true); err != nil {
		return out, err
	}
	if s.Provider == user.ByEmail {
		if err := a.Credentials.Passwords.Remove(ctx, id); err != nil {
			return out, err
		}
	}
	if err := a.Credentials.Sessions.RevokeAll(ctx, id, uuid.Nil); err != nil {
		return out, err
	}
	if err := restore(false); err != nil {
		return out, err
	}
	return out, a.Credentials.Sessions.RevokeAll(ctx, id, uuid.Nil)
}
