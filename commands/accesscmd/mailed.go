package accesscmd

import (
	"context"
	"errors"
	"strings"

	"github.com/google/uuid"

	"bahi/commands/accesscmd/credentials"
	"bahi/domain/access/user"
)

// Addressee returns the subject of tokens that are mailed to a user. It differs for each address, so that a token mailed to one address
// does not verify the user's next address.
func Addressee(id uuid.UUID, emailKey string) uuid.UUID { return uuid.NewSHA1(id, []byte(emailKey)) }

// Recipient returns the id of an address, independent of its user.
func Recipient(emailKey string) uuid.UUID { return uuid.NewSHA1(uuid.Nil, []byte(emailKey)) }

// IssueToken creates the token that a job mails to the address in the user's state: the user's id and a mailed token. It returns the error
// of [credentials.Mailed.Issue] if no mail must be sent.
func (a *Accounts) IssueToken(ctx context.Context, kind credentials.Kind, id uuid.UUID, s user.State, job int64) (string, error) {
	mailed, err := a.Credentials.Mailed.Issue(ctx, kind, credentials.Mailing{
		Subject: Addressee(id, s.EmailKey), Recipient: Recipient(s.EmailKey), Number: job,
	})
	return id.String() + "." + mailed, err
}

// useToken calls do for the user of a token from [Accounts.IssueToken]. It checks that the mailed token belongs to the address of the user
// with the id in the token.
func (a *Accounts) useToken(ctx context.Context, kind credentials.Kind, token string,
	do func(context.Context, uuid.UUID, user.State) error) error {
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
