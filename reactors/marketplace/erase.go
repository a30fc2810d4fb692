package marketplace

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"bahi/commands"
	flows "bahi/commands/marketplace"
	"bahi/domain/actor"
	"bahi/domain/event"
	"bahi/domain/marketplace/claim"
	"bahi/domain/marketplace/user"
	"bahi/domain/marketplace/workspace"
	"bahi/eventstore"
	"bahi/eventstore/vault"
	"bahi/reactors"
	"bahi/readmodels"
	views "bahi/readmodels/marketplace"
)

// Vault is what an erasure needs of the vault.
type Vault interface {
	Erase(ctx context.Context, subject string) error
	ApplyErasures(ctx context.Context, list []vault.Erasure) (changed int, err error)
}

// Remains are what is kept of a person outside the log and its tables.
type Remains interface {
	// ScrubMail removes kept mails to the addresses.
	ScrubMail(ctx context.Context, addresses ...string) error
	// DeletePicture removes an image; one that is not there is no error.
	DeletePicture(ctx context.Context, key string) error
	// Scrub makes Postgres forget what rows held that were changed or deleted.
	Scrub(ctx context.Context) error
}

// Eraser erases people (DESIGN.md, "Secrets and personal data"; CONTRACT.md 8.7): an event says so, then
// their key is destroyed, and what is left of them elsewhere goes. The books stay.
type Eraser struct {
	Accounts *flows.Accounts
	Commands *commands.Handler
	Store    eventstore.Store
	Views    *views.Views
	Vault    Vault
	Remains  Remains
	Now      func() time.Time
	Log      *slog.Logger
}

// SweepEvery is how often somebody looks for people who are to be erased, whatever became of their jobs.
const SweepEvery = time.Hour

// policy: an erasure is tried for as long as the promise holds, and swept for afterwards.
var policy = reactors.Policy{Attempts: 20, Timeout: 5 * time.Minute, AtOnce: 1}

// Workers are those who do it.
func (e *Eraser) Workers() reactors.Workers {
	return reactors.Workers{
		reactors.Work(policy, func(ctx context.Context, job reactors.Job[EraseUser]) error { return e.Erase(ctx, job.Args.User) }),
		reactors.Work(policy, func(ctx context.Context, _ reactors.Job[SweepErasures]) error { return e.Sweep(ctx) }),
	}
}

// Sweep erases everybody whose time has come, and ends erasures that were begun.
func (e *Eraser) Sweep(ctx context.Context) error {
	due, err := e.Views.DueForErasure(ctx, e.Now())
	if err != nil {
		return err
	}
	var failed []error
	for _, id := range due {
		failed = append(failed, e.Erase(ctx, id))
	}
	return errors.Join(failed...)
}

// Erase erases a user whose time has come; for anybody else it does nothing. The log says first that it has
// begun, from where on the user is not there any more and cannot be kept. Each step after that bears being done
// again, and the key goes last but for what Postgres keeps: until then the addresses can be read that
// mails are to be scrubbed of. What begins an erasure ends it, since the user's row names it as due until
// [Eraser.conclude] has run.
func (e *Eraser) Erase(ctx context.Context, id uuid.UUID) error {
	l, err := commands.Load(ctx, e.Commands.Fresh(), user.Kind, id.String())
	if err != nil || !l.State.Registered {
		return err
	}
	begun, err := commands.Handle(acting(ctx, l.Workspace), e.Commands, user.Kind, id.String(), user.BeginErasure{Now: e.Now()})
	if err != nil || begun.State.Active() { // they changed their mind
		return err
	}
	of, err := e.remember(ctx, id)
	if err != nil {
		return err
	}
	if err := e.shutOut(ctx, of); err != nil {
		return err
	}
	if err := e.leave(readmodels.AtLeast(ctx, begun.Position), id, of); err != nil {
		return err
	}
	if err := e.Remains.ScrubMail(ctx, of.addresses...); err != nil {
		return fmt.Errorf("scrub mails: %w", err)
	}
	for _, key := range of.pictures {
		if err := e.Remains.DeletePicture(ctx, key); err != nil {
			return fmt.Errorf("delete a picture: %w", err)
		}
	}
	for _, subject := range of.subjects {
		if err := e.Vault.Erase(ctx, subject); err != nil {
			return fmt.Errorf("destroy a key: %w", err)
		}
	}
	if err := e.Remains.ScrubMail(ctx, of.addresses...); err != nil { // one may have been on its way
		return fmt.Errorf("scrub mails: %w", err)
	}
	return e.conclude(ctx, id, of)
}

// Again erases those of the list who are here again, because a backup from before their erasure was
// restored. What the restored log says of their wishes is older than the list. Whom only the list knows
// never gets a key any more.
func (e *Eraser) Again(ctx context.Context, list []vault.Erasure) error {
	for _, erased := range list {
		text, isUser := strings.CutPrefix(erased.Subject, user.Kind.Category()+"-")
		id, err := uuid.Parse(text)
		if !isUser || err != nil { // somebody who was invited
			continue
		}
		if err := e.again(ctx, id, erased.At); err != nil {
			return fmt.Errorf("erase %s: %w", erased.Subject, err)
		}
	}
	_, err := e.Vault.ApplyErasures(ctx, list)
	return err
}

func (e *Eraser) again(ctx context.Context, id uuid.UUID, at time.Time) error {
	of, err := e.remember(ctx, id)
	if err != nil || !of.state.Registered {
		return err
	}
	if now := e.Now(); of.state.Active() && (of.state.DeleteAfter == nil || now.Before(*of.state.DeleteAfter)) {
		if at.After(now) { // by another machine's clock
			at = now
		}
		for _, c := range []event.Command[user.State]{user.CancelDeletion{}, user.RequestDeletion{DeleteAfter: at}} {
			if _, err := commands.Handle(acting(ctx, of.state.Workspace), e.Commands, user.Kind, id.String(), c); err != nil {
				return err
			}
		}
	}
	return e.Erase(ctx, id)
}

// conclude says in the log that it is done, waits until the tables have heard of it, and makes Postgres
// forget.
func (e *Eraser) conclude(ctx context.Context, id uuid.UUID, of *memory) error {
	ctx = acting(ctx, of.state.Workspace)
	out, err := commands.Handle(ctx, e.Commands, user.Kind, id.String(), user.Erase{})
	if err != nil {
		return err
	}
	if err := e.shutOut(ctx, of); err != nil { // a sign-in, or a mail, may have been under way
		return err
	}
	_, err = e.Views.User(readmodels.AtLeast(ctx, out.Position), id)
	if !errors.Is(err, user.ErrNotFound) {
		return fmt.Errorf("the tables have not heard of it yet: %w", err)
	}
	if err := e.Remains.Scrub(ctx); err != nil {
		return fmt.Errorf("scrub the tables: %w", err)
	}
	e.Log.Info("a user was erased", "user", id)
	return nil
}

// shutOut removes what the user signs in with, and what the tokens open that were mailed to them.
func (e *Eraser) shutOut(ctx context.Context, of *memory) error {
	for _, subject := range of.credentials {
		if err := e.Accounts.Credentials.Erase(ctx, subject); err != nil {
			return err
		}
	}
	return nil
}

// memory is what has to be known of a person to forget them.
type memory struct {
	state       user.State
	credentials []uuid.UUID // whose they are: the user's, and the addresses'
	addresses   []string
	emailKeys   []string
	identities  []string
	pictures    []string
	subjects    []string // whose keys are to be destroyed
}

// remember reads the person's whole stream: they may have had other addresses and pictures before.
func (e *Eraser) remember(ctx context.Context, id uuid.UUID) (*memory, error) {
	of := &memory{credentials: []uuid.UUID{id}, subjects: []string{user.Subject(id)}}
	sealed := []event.Personal{}
	for stored, err := range e.Store.ReadStream(ctx, user.Kind.Stream(id.String()), 0, eventstore.Forwards) {
		if err != nil {
			return nil, err
		}
		r, err := user.Kind.Decode(stored)
		if err != nil {
			return nil, err
		}
		of.state = user.Kind.Evolve(of.state, r)
		switch d := r.Data.(type) {
		case user.Registered:
			sealed, of.emailKeys = append(sealed, d.Email), append(of.emailKeys, d.EmailKey)
		case user.EmailChanged:
			sealed, of.emailKeys = append(sealed, d.Email), append(of.emailKeys, d.EmailKey)
		case user.PictureChanged:
			of.pictures = append(of.pictures, d.Key)
		case user.IdentityLinked:
			of.identities = append(of.identities, d.IdentityKey)
		}
	}
	slices.Sort(of.emailKeys)
	of.emailKeys = slices.Compact(of.emailKeys)
	for _, key := range of.emailKeys {
		of.credentials = append(of.credentials, flows.Addressee(id, key))
		invited, err := e.invited(ctx, key, id)
		if err != nil {
			return nil, err
		}
		of.subjects = append(of.subjects, invited...)
	}
	for _, p := range sealed {
		address, err := e.Accounts.Text(ctx, p)
		switch {
		case errors.Is(err, event.ErrErased): // an earlier try came this far
		case err != nil:
			return nil, err
		case !slices.Contains(of.addresses, address):
			of.addresses = append(of.addresses, address)
		}
	}
	return of, nil
}

// invited answers the subjects of invitations to an address, up to when it was the user's for the last time.
func (e *Eraser) invited(ctx context.Context, key string, id uuid.UUID) (subjects []string, err error) {
	var (
		claims int64
		all    []string
		s      claim.State
	)
	for stored, err := range e.Store.ReadStream(ctx, claim.Email.Stream(key), 0, eventstore.Forwards) {
		if err != nil {
			return nil, err
		}
		r, err := claim.Email.Decode(stored)
		if err != nil {
			return nil, err
		}
		all = append(all, flows.InviteeSubject(key, claims))
		s, claims = claim.Email.Evolve(s, r), stored.Revision+1
		if s.User == id {
			subjects = append(slices.Clone(all), flows.InviteeSubject(key, claims))
		}
	}
	return subjects, nil
}

// leave gives up what is the user's alone, and takes them out of every workspace.
func (e *Eraser) leave(ctx context.Context, id uuid.UUID, of *memory) error {
	nobody := acting(ctx, uuid.Nil) // claims are no workspace's
	for _, key := range of.emailKeys {
		if _, err := commands.Handle(nobody, e.Commands, claim.Email, key, claim.Release{User: id, Kind: claim.AnEmail}); err != nil {
			return fmt.Errorf("release an address: %w", err)
		}
	}
	for _, key := range of.identities {
		if _, err := commands.Handle(nobody, e.Commands, claim.Identity, key, claim.Release{User: id, Kind: claim.AnIdentity}); err != nil {
			return fmt.Errorf("release an identity: %w", err)
		}
	}
	memberships, err := e.Views.WorkspacesOf(ctx, id)
	if err != nil {
		return err
	}
	for _, m := range memberships {
		_, err := commands.Handle(acting(ctx, m.ID), e.Commands, workspace.Kind, m.ID.String(), workspace.Remove{User: id, Erased: true})
		if err != nil {
			return fmt.Errorf("leave a workspace: %w", err)
		}
	}
	return nil
}

// acting answers a context in which the system itself acts in a workspace.
func acting(ctx context.Context, workspace uuid.UUID) context.Context {
	return commands.With(ctx, commands.Request{Actor: actor.Actor{Type: "system", ID: "erasure", Workspace: workspace}, Workspace: workspace})
}
