package accesscmd

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/commands/accesscmd/credentials"
	"bahi/domain/access/claim"
	"bahi/domain/access/user"
	"bahi/domain/access/workspace"
	"bahi/domain/actor"
	"bahi/domain/claims"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/person"
	"bahi/eventstore"
)

// Vault has the vault's operations for accounts.
type Vault interface {
	HMAC(ctx context.Context, name string, parts ...[]byte) ([]byte, error)
	OpenValue(ctx context.Context, s event.Sealed) (string, error)
}

// mailQueue queues mails on request. Other mails follow from events.
type mailQueue interface {
	// VerifyEmail mails another token for the user's address.
	VerifyEmail(ctx context.Context, user uuid.UUID) error
	// ResetPassword mails a token to the address with this keyed hash if a user has the address. It takes equally long if no user has it.
	ResetPassword(ctx context.Context, emailKey string) error
}

// Accounts has the operations of users' accounts.
type Accounts struct {
	Commands    *commands.Handler
	Credentials *credentials.Credentials
	Vault       Vault
	Post        mailQueue
	Now         func() time.Time
	Grace       time.Duration // time from the request for deletion to the deletion

	// Guess limits the wrong passwords of an account; nil: no limit. It returns a refusal, or a function. The caller calls the function after
	// the check, with true if the password was wrong.
	Guess func(ctx context.Context, account string) (settle func(wrong bool), err error)
}

// These are the refusals.
var (
	ErrTaken           = claim.ErrTaken
	ErrInUse           = &fault.Error{Kind: fault.Conflict, Detail: "Email already in use", Code: "email_taken"}
	errNotVerified     = &fault.Error{Kind: fault.Forbidden, Detail: "Email not verified", Code: "email_not_verified"}
	ErrWrongPassword   = &fault.Error{Kind: fault.Malformed, Detail: "Incorrect current password", Code: "wrong_password"}
	errUnknownIdentity = fault.New(fault.Forbidden, "The identity provider does not vouch for the email address")
)

// These are the names of the vault's keys for unique values.
const (
	emailHash      = "email"
	identityHash   = "identity"
	invitationHash = "invitation"
)

// EmailKey returns the keyed hash of an address, for comparisons.
func (a *Accounts) EmailKey(ctx context.Context, email string) (string, error) {
	sum, err := a.Vault.HMAC(ctx, emailHash, []byte(email))
	return hex.EncodeToString(sum), err
}

// as returns the request for commands that act for the user, in their own workspace. Sign-in and related operations take
// no Idempotency-Key (DESIGN.md, hard case 2).
func as(req commands.Request, id, workspace uuid.UUID) commands.Request {
	req = req.FollowUp().In(workspace)
	req.Reason = "" // the text of a user, in plaintext: an erasure of the user would not remove it
	if id != uuid.Nil && req.Actor.Type == "" {
		req.Actor = actor.Actor{Type: "user", ID: id.String(), Workspace: workspace}
	}
	return req
}

// Registration has a new user's own data.
type Registration struct {
	Email     string `json:"email"      maxLength:"254" doc:"Email address"`
	Password  string `json:"password"   maxLength:"1000" doc:"Password"`
	FirstName string `json:"first_name" maxLength:"400" doc:"First name"`
	LastName  string `json:"last_name"  maxLength:"400" doc:"Last name"`
}

// Registered is a new account.
type Registered struct {
	ID        uuid.UUID
	Email     string
	FirstName string
	LastName  string
	At        time.Time
	Position  event.Position
}

// Register creates an account with a workspace. It refuses an address that another user has, and reports all invalid values together.
func (a *Accounts) Register(ctx context.Context, req commands.Request, in Registration) (Registered, error) {
	return a.enter(ctx, req, in, false)
}

// RegisterVerified is Register for an administrator, who vouches for the address: it counts as verified.
func (a *Accounts) RegisterVerified(ctx context.Context, req commands.Request, in Registration) (Registered, error) {
	return a.enter(ctx, req, in, true)
}

func (a *Accounts) enter(ctx context.Context, req commands.Request, in Registration, verified bool) (Registered, error) {
	email, emailErr := person.Email("email", in.Email)
	first, firstErr := person.Name("first_name", in.FirstName)
	last, lastErr := person.Name("last_name", in.LastName)
	passwordErr := a.Credentials.Passwords.Check("password", in.Password, credentials.Person{Email: email, Names: []string{first, last}})
	if err := fault.Join(emailErr, passwordErr, firstErr, lastErr); err != nil {
		return Registered{}, err
	}
	return a.register(ctx, req, newcomer{
		provider: user.ByEmail, email: email, first: first, last: last, password: in.Password, verified: verified,
	})
}

// newcomer has the valid values of a new user.
type newcomer struct {
	provider           string
	email, first, last string
	password           string // "": no password
	verified           bool   // the address was verified
}

// register creates the user, their workspace and the claim of the address in one transaction.
func (a *Accounts) register(ctx context.Context, req commands.Request, n newcomer) (Registered, error) {
	id, home := uuid.New(), uuid.New()
	key, err := a.EmailKey(ctx, n.email)
	if err != nil {
		return Registered{}, err
	}
	by := asked
	if n.verified {
		by = proven
	}
	own := func(text string) event.Personal { return user.Subjects.Personal(id.String(), text) }
	c := user.Register{
		Provider: n.provider, Workspace: home, EmailKey: key, Verified: n.verified,
		Email: own(n.email), FirstName: own(n.first), LastName: own(n.last),
	}
	write := func(req commands.Request) (commands.Outcome[user.State], error) {
		return commands.Do(ctx, a.Commands, as(req, id, home), user.Kind, func(ctx context.Context, tx *commands.Tx) error {
			commands.NewRecord(tx, user.Kind, id.String())
			if _, err := commands.Decide(ctx, tx, user.Kind, id.String(), c); err != nil {
				return err
			}
			commands.NewRecord(tx, workspace.Kind, home.String())
			if _, err := commands.Decide(ctx, tx, workspace.Kind, home.String(), workspace.Create{Owner: id}); err != nil {
				return err
			}
			return a.takeEmail(ctx, tx, key, id, by)
		})
	}
	if n.password != "" {
		dry := req
		dry.DryRun = true
		if _, err := write(dry); err != nil { // before the expensive password hash
			return Registered{}, err
		}
		if err := a.Credentials.Passwords.Set(ctx, id, n.password); err != nil {
			return Registered{}, err
		}
	}
	out, err := write(req)
	if err != nil {
		return Registered{}, a.discard(ctx, id, err)
	}
	return Registered{ID: id, Email: n.email, FirstName: n.first, LastName: n.last, At: out.At, Position: out.Position}, nil
}

// discard deletes the user's password after a registration that certainly failed.
func (a *Accounts) discard(ctx context.Context, id uuid.UUID, why error) error {
	if _, refused := errors.AsType[*fault.Error](why); !refused && !errors.Is(why, eventstore.ErrUnavailable) {
		return why
	}
	return errors.Join(why, a.Credentials.Erase(context.WithoutCancel(ctx), id))
}

// verifiedTimeout is the time for which an unverified changed address is reserved for its user: the lifetime of the mailed token. Later,
// another user may register the address. So a user cannot block another person's address for long.
const verifiedTimeout = 24 * time.Hour

// grounds ranks users' claims to an address.
type grounds int

const (
	asked    grounds = iota // none
	proven                  // the address was verified
	regained                // it was verified before, and is again
)

// rival returns the claim of a value, and the other user who has the value, or nil.
func rival(
	ctx context.Context, tx *commands.Tx, v claims.Value, key string, id uuid.UUID,
) (held claims.State, holder *commands.Loaded[user.State], err error) {
	l, err := commands.Load(ctx, tx.In(uuid.Nil), v.Kind, key)
	held = l.State
	if err != nil || held.Holder == "" || held.Holder == id.String() {
		return held, nil, err
	}
	other, err := commands.Load(ctx, tx, user.Kind, held.Holder)
	return held, &other, err
}

// takeEmail gives an address to a user. Another user with a weaker claim loses the address. takeEmail returns [ErrTaken] if another user
// has an equal or stronger claim.
func (a *Accounts) takeEmail(ctx context.Context, tx *commands.Tx, key string, id uuid.UUID, by grounds) error {
	held, holder, err := rival(ctx, tx, claim.Email, key, id)
	if err != nil {
		return err
	}
	if holder != nil {
		lapsed := by != asked || a.Now().Sub(held.Since) >= verifiedTimeout
		lose := user.LoseEmailClaim{EmailKey: key, Lapsed: lapsed, Regained: by == regained}
		if _, err := commands.Decide(ctx, tx.In(holder.Workspace), user.Kind, held.Holder, lose); err != nil {
			return err
		}
	}
	_, err = commands.Decide(ctx, tx.In(uuid.Nil), claim.Email.Kind, key, claims.Claim{Value: claim.Email, Holder: id.String(), Now: a.Now()})
	return err
}

// leaveEmail releases a user's address. It does nothing for the key "".
func leaveEmail(ctx context.Context, tx *commands.Tx, key string, id uuid.UUID) error {
	if key == "" {
		return nil
	}
	_, err := commands.Decide(ctx, tx.In(uuid.Nil), claim.Email.Kind, key, claims.Release{Value: claim.Email, Holder: id.String()})
	return err
}

// HolderOf returns the user who has the address, or [uuid.Nil].
func (a *Accounts) HolderOf(ctx context.Context, key string) (id uuid.UUID, s user.State, err error) {
	held, err := commands.Load(ctx, a.Commands.Fresh(), claim.Email.Kind, key)
	if err != nil || held.State.Holder == "" {
		return uuid.Nil, s, err
	}
	l, err := commands.Load(ctx, a.Commands.Fresh(), user.Kind, held.State.Holder)
	if err != nil || !l.State.Active() || l.State.EmailKey != key {
		return uuid.Nil, s, err
	}
	return claim.Holder(held.State), l.State, nil
}

// Load returns a user's current state, or [user.ErrNotFound].
func (a *Accounts) Load(ctx context.Context, id uuid.UUID) (user.State, error) {
	l, err := active(ctx, a.Commands.Fresh(), id)
	return l.State, err
}

// active returns a user whose account is active, or [user.ErrNotFound].
func active(ctx context.Context, from commands.Source, id uuid.UUID) (commands.Loaded[user.State], error) {
	l, err := commands.Load(ctx, from, user.Kind, id.String())
	if err == nil && !l.State.Active() {
		err = user.ErrNotFound
	}
	return l, err
}

// handle runs a command on a user, in their own workspace.
func (a *Accounts) handle(ctx context.Context, req commands.Request, id uuid.UUID, s user.State,
	cmd event.Command[user.State]) (commands.Outcome[user.State], error) {
	return commands.Handle(ctx, a.Commands, as(req, id, s.Workspace), user.Kind, id.String(), cmd)
}

// keyed returns the request for the main command of a user's own request. Only that command uses the request's Idempotency-Key.
func keyed(req commands.Request, id, workspace uuid.UUID) commands.Request {
	key := req.Key
	req = as(req, id, workspace)
	req.Key = key
	return req
}

// decide is handle for the main command of the user's own request.
func (a *Accounts) decide(ctx context.Context, req commands.Request, id uuid.UUID, s user.State,
	cmd event.Command[user.State]) (commands.Outcome[user.State], error) {
	return commands.Handle(ctx, a.Commands, keyed(req, id, s.Workspace), user.Kind, id.String(), cmd)
}

// matching is keyed with If-Match: if the caller sends a revision, the command applies to that revision only.
func matching(req commands.Request, id, workspace uuid.UUID) commands.Request {
	seen := req.IfMatch
	req = keyed(req, id, workspace)
	req.IfMatch = seen
	return req
}

// PreviousOutcome returns the outcome of an earlier request of the user with the same key.
func (a *Accounts) PreviousOutcome(ctx context.Context, req commands.Request, id uuid.UUID) (out commands.Outcome[user.State], done bool,
	err error) {
	s, err := a.Load(ctx, id)
	if err != nil {
		return out, false, err
	}
	return commands.PreviousOutcome(ctx, a.Commands, keyed(req, id, s.Workspace), user.Kind)
}

// Text returns the plaintext of a personal value, or "".
func (a *Accounts) Text(ctx context.Context, p event.Personal) (string, error) {
	if p.IsZero() {
		return "", nil
	}
	text, err := a.Vault.OpenValue(ctx, p.Sealed)
	if err != nil {
		return "", fmt.Errorf("open a %s: %w", p, err)
	}
	return text, nil
}

// personOf returns the name and address that a password must not contain.
func (a *Accounts) personOf(ctx context.Context, s user.State) (p credentials.Person, err error) {
	if p.Email, err = a.Text(ctx, s.Email); err != nil {
		return p, err
	}
	for _, name := range []event.Personal{s.FirstName, s.LastName} {
		text, err := a.Text(ctx, name)
		if err != nil {
			return p, err
		}
		p.Names = append(p.Names, text)
	}
	return p, nil
}
