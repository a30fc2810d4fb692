package access

import (
	"context"
	"errors"
	"strings"

	"github.com/google/uuid"

	"bahi/commands/access/credentials"
	"bahi/domain/access/user"
)

// Addressee is the subject of tokens that are mailed to a user: another one for each address, so that what
// was mailed to one proves nothing of the next, however late the mail was on its way.
func Addressee(id uuid.UUID, emailKey string) uuid.UUID { return uuid.NewSHA1(id, []byte(emailKey)) }

// Recipient stands for an address, whoever has it.
func Recipient(emailKey string) uuid.UUID { return uuid.NewSHA1(uuid.Nil, []byte(emailKey)) }

// IssueToken makes the token that the job of that number mails to the address in the user's state: a mailed token,
// with the user whom it is for. It returns the error of [credentials.Mailed.Issue] when nothing is to be mailed.
func (a *Accounts) IssueToken(ctx context.Context, kind credentials.Kind, id uuid.UUID, s user.State, job int64) (string, error) {
	mailed, err := a.Credentials.Mailed.Issue(ctx, kind, credentials.Mailing{
		Subject: Addressee(id, s.EmailKey), Recipient: Recipient(s.EmailKey), Number: job,
	})
	return id.String() + "." + mailed, err
}

// useToken does what a token from [Accounts.IssueToken] opens, for its user. The mailed token has to be of that
// user's address, so what is before it need not be believed.
func (a *Accounts) useToken(ctx context.Context, kind credentials.Kind, token string, do func(context.Context, uuid.UUID, user.State) error) error {
	name, mailed, _ := strings.Cut(token, ".")
	id, err := uuid.Parse(name)
	if err != nil {
		return kind.Refusal()
	}
	return a.Credentials.Mailed.Use(ctx, kind, mailed, func(ctx context.Context, addressee uuid.UUID) error {
		s, err := a.Load(ctx, id)
		switch {
		case errors.Is(err, user.ErrNotFound), err == nil && addressee != Addressee(id, s.EmailKey):
			return kind.Refusal()
		case err != nil:
			return err
		}
		return do(ctx, id, s)
	})
}
