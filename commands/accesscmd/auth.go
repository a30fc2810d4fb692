package accesscmd

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"slices"
	"strings"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/commands/accesscmd/credentials"
	"bahi/domain/access/claim"
	"bahi/domain/access/session"
	"bahi/domain/access/user"
	"bahi/domain/claims"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/person"
)

// SignedIn is a new session.
type SignedIn struct {
	Tokens    credentials.Tokens
	Email     string
	FirstName string
	Position  event.Position
}

// SignIn creates a session with a password. Its error and its duration are the same for a wrong password, for an unknown address, and for
// an unverified address with a wrong password.
func (a *Accounts) SignIn(ctx context.Context, req commands.Request, email, password string) (SignedIn, error) {
	email, malformed := person.Email("email", email)
	id, s, key := uuid.Nil, user.State{}, ""
	if malformed == nil {
		var err error
		if key, err = a.EmailKey(ctx, email); err != nil {
			return SignedIn{}, err
		}
		if id, s, err = a.HolderOf(ctx, key); err != nil {
			return SignedIn{}, err
		}
	}
	proof, known, err := a.verify(ctx, "sign-in "+key, id, password)
	switch {
	case err != nil:
		return SignedIn{}, err
	case !known:
		return SignedIn{}, credentials.ErrSignIn
	case !s.Verified:
		if err := a.Post.VerifyEmail(ctx, id); err != nil {
			return SignedIn{}, err
		}
		return SignedIn{}, errNotVerified
	}
	return a.begin(ctx, req, id, s, proof, session.ByPassword)
}

// verify checks a password, unless there were too many wrong ones for the name. It counts unknown accounts too, because otherwise the limit
// would reveal which accounts exist.
func (a *Accounts) verify(ctx context.Context, name string, id uuid.UUID, password string) (credentials.Proof, bool, error) {
	settle := func(bool) {}
	if a.Guess != nil {
		var err error
		if settle, err = a.Guess(ctx, name); err != nil {
			return credentials.Proof{}, false, err
		}
	}
	proof, known, err := a.Credentials.Passwords.Verify(ctx, id, password)
	settle(err == nil && !known)
	return proof, known, err
}

// begin creates a session and records it.
func (a *Accounts) begin(ctx context.Context, req commands.Request, id uuid.UUID, s user.State, proof credentials.Proof,
	by string) (in SignedIn, err error) {
	if in.Email, err = a.Text(ctx, s.Email); err != nil {
		return in, err
	}
	if in.FirstName, err = a.Text(ctx, s.FirstName); err != nil {
		return in, err
	}
	if in.Tokens, err = a.Credentials.Sessions.SignIn(ctx, proof); err != nil {
		return in, err
	}
	out, err := commands.Handle(ctx, a.Commands, as(req, id, s.Workspace), session.Kind, in.Tokens.Session.String(),
		session.Begin{User: id, By: by})
	in.Position = out.Position
	return in, err
}

// SignOut ends the session of an access token.
func (a *Accounts) SignOut(ctx context.Context, req commands.Request, of uuid.UUID) (out commands.Outcome[session.State], err error) {
	if err := a.Credentials.Sessions.Revoke(ctx, of); err != nil {
		return out, err
	}
	l, err := commands.Load(ctx, a.Commands.Fresh(), session.Kind, of.String())
	if err != nil {
		return out, err
	}
	return commands.Handle(ctx, a.Commands, as(req, uuid.Nil, l.Workspace), session.Kind, of.String(), session.End{})
}

// VerifyEmail verifies the user's address with a mailed token.
func (a *Accounts) VerifyEmail(ctx context.Context, req commands.Request, token string) (out commands.Outcome[user.State], err error) {
	err = a.useToken(ctx, credentials.Verify, token, func(ctx context.Context, id uuid.UUID, s user.State) (err error) {
		out, err = a.handle(ctx, req, id, s, user.VerifyEmail{EmailKey: s.EmailKey})
		return err
	})
	return out, err
}

// ForgotPassword mails a token to the address if a user has the address. It does not reveal whether a user has it.
func (a *Accounts) ForgotPassword(ctx context.Context, email string) error {
	email, err := person.Email("email", email)
	if err != nil {
		return err
	}
	key, err := a.EmailKey(ctx, email)
	if err != nil {
		return err
	}
	return a.Post.ResetPassword(ctx, key)
}

// ResetPassword sets a password with a mailed token, ends all sessions, and verifies the address.
func (a *Accounts) ResetPassword(ctx context.Context, req commands.Request, token, password string) (out commands.Outcome[user.State],
	err error) {
	if commands.Untried(ctx) != nil {
		return out, cmp.Or(a.checkPassword(ctx, user.State{}, password), commands.ErrTrial)
	}
	err = a.useToken(ctx, credentials.Reset, token, func(ctx context.Context, id uuid.UUID, s user.State) (err error) {
		if s.Provider != user.ByEmail || !s.Trusted() {
			return credentials.Reset.Refusal()
		}
		if err := a.setPassword(ctx, id, s, password, uuid.Nil); err != nil {
			return err
		}
		if _, err := a.handle(ctx, req, id, s, user.VerifyEmail{EmailKey: s.EmailKey}); err != nil {
			return err
		}
		out, err = a.handle(ctx, req, id, s, user.ChangePassword{Forgotten: true})
		return err
	})
	if errors.Is(err, credentials.Reset.Refusal()) {
		err = withFaults("token", err, a.checkPassword(ctx, user.State{}, password))
	}
	return out, err
}

// checkPassword returns the fault of a new password.
func (a *Accounts) checkPassword(ctx context.Context, s user.State, password string) error {
	of, err := a.personOf(ctx, s)
	if err != nil {
		return err
	}
	return a.Credentials.Passwords.Check("new_password", password, of)
}

// withFaults returns the refusal of a field's value. If other fields have faults, the refusal lists them too.
func withFaults(field string, refusal, faults error) error {
	first, refused := errors.AsType[*fault.Error](refusal)
	more, listed := errors.AsType[*fault.Error](faults)
	if !refused || !listed {
		return refusal
	}
	both := *first
	both.Fields = append([]fault.Field{{Field: field, Message: first.Detail}}, more.Fields...)
	return &both
}

// setPassword sets the user's password and ends their sessions, except one.
func (a *Accounts) setPassword(ctx context.Context, id uuid.UUID, s user.State, password string, except uuid.UUID) error {
	if err := a.checkPassword(ctx, s, password); err != nil {
		return err
	}
	if err := a.Credentials.Passwords.Set(ctx, id, password); err != nil {
		return err
	}
	return a.Credentials.Sessions.RevokeAll(ctx, id, except)
}

// Identity has an identity provider's data of a user.
type Identity struct {
	Issuer, Subject       string
	Email                 string
	EmailVerified         bool
	GivenName, FamilyName string
}

// SignInByProvider creates a session for an identity that a provider has verified. It finds the user by issuer and subject, or else by the
// address if the provider has verified it (CONTRACT.md G7). An account that never had a verified address loses its password and sessions,
// because an attacker may have registered it. An account that had verified another address before belongs to another person: it stays
// without the address. A new user gets an account.
func (a *Accounts) SignInByProvider(ctx context.Context, req commands.Request, who Identity) (SignedIn, error) {
	for tries := 1; ; tries++ {
		in, err := a.signInByProvider(ctx, req, who)
		if !errors.Is(err, ErrTaken) || tries == maxOvertaken {
			return in, err
		}
	}
}

// maxOvertaken is the maximum number of retries of a sign-in after a concurrent one, such as in another tab, has created the account.
const maxOvertaken = 5

func (a *Accounts) signInByProvider(ctx context.Context, req commands.Request, who Identity) (SignedIn, error) {
	sum, err := a.Vault.HMAC(ctx, identityHash, []byte(who.Issuer), []byte(who.Subject))
	if err != nil {
		return SignedIn{}, err
	}
	key := hex.EncodeToString(sum)
	held, err := commands.Load(ctx, a.Commands.Fresh(), claim.Identity.Kind, key)
	if err != nil {
		return SignedIn{}, err
	}
	id := claim.Holder(held.State)
	s, err := a.Load(ctx, id)
	if err == nil && slices.Contains(s.Identities, key) {
		return a.begin(ctx, req, id, s, credentials.Vouched(id), session.ByProvider)
	}
	if err != nil && !errors.Is(err, user.ErrNotFound) {
		return SignedIn{}, err
	}
	if id, s, err = a.vouchedFor(ctx, req, who); err != nil {
		return SignedIn{}, err
	}
	_, err = commands.Do(ctx, a.Commands, as(req, id, s.Workspace), user.Kind, func(ctx context.Context, tx *commands.Tx) error {
		if _, err := commands.Decide(ctx, tx, user.Kind, id.String(), user.LinkIdentity{IdentityKey: key}); err != nil {
			return err
		}
		return takeIdentity(ctx, tx, key, id)
	})
	if err != nil {
		return SignedIn{}, err
	}
	return a.begin(ctx, req, id, s, credentials.Vouched(id), session.ByProvider)
}

// takeIdentity gives an identity to a user. It returns [ErrTaken] if another user signs in with it.
func takeIdentity(ctx context.Context, tx *commands.Tx, key string, id uuid.UUID) error {
	_, holder, err := rival(ctx, tx, claim.Identity, key, id)
	if err != nil {
		return err
	}
	if holder != nil && holder.State.Active() && slices.Contains(holder.State.Identities, key) {
		return ErrTaken
	}
	c := claims.Claim{Value: claim.Identity, Holder: id.String(), Now: tx.Now()}
	_, err = commands.Decide(ctx, tx.In(uuid.Nil), claim.Identity.Kind, key, c)
	return err
}

// vouchedFor returns the account of an address that a provider has verified.
func (a *Accounts) vouchedFor(ctx context.Context, req commands.Request, who Identity) (id uuid.UUID, s user.State, err error) {
	email, err := person.Email("email", who.Email)
	if err != nil || !who.EmailVerified {
		return id, s, errUnknownIdentity
	}
	key, err := a.EmailKey(ctx, email)
	if err != nil {
		return id, s, err
	}
	if id, s, err = a.HolderOf(ctx, key); err != nil {
		return id, s, err
	}
	if id == uuid.Nil || !s.Trusted() { // another person uses the account
		local, _, _ := strings.Cut(email, "@")
		made, err := a.register(ctx, req, newcomer{
			provider: user.ByProvider, email: email, verified: true,
			first: nameOr(who.GivenName, local), last: nameOr(who.FamilyName, ""),
		})
		if err != nil {
			return id, s, err
		}
		s, err = a.Load(ctx, made.ID)
		return made.ID, s, err
	}
	if s.Verified {
		return id, s, nil
	}
	if err := a.Credentials.Passwords.Remove(ctx, id); err != nil {
		return id, s, err
	}
	if err := a.Credentials.Sessions.RevokeAll(ctx, id, uuid.Nil); err != nil {
		return id, s, err
	}
	if _, err := a.handle(ctx, req, id, s, user.ChangePassword{Removed: true}); err != nil {
		return id, s, err
	}
	out, err := a.handle(ctx, req, id, s, user.VerifyEmail{EmailKey: key})
	return id, out.State, err
}

// nameOr returns the provider's name of a user, or the text otherwise if that name is invalid.
func nameOr(given, otherwise string) string {
	if name, err := person.Name("", given); err == nil {
		return name
	}
	return otherwise
}
