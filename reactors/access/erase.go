package access

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"bahi/commands"
	flows "bahi/commands/access"
	"bahi/domain/access/claim"
	"bahi/domain/access/picture"
	"bahi/domain/access/user"
	"bahi/domain/access/workspace"
	"bahi/domain/actor"
	"bahi/domain/claims"
	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/vault"
	"bahi/reactors"
	"bahi/readmodels"
	views "bahi/readmodels/access"
)

// Vault is what an erasure needs of the vault.
type Vault interface {
	Erase(ctx context.Context, subject string) error
	Erasures(ctx context.Context) ([]vault.Erasure, error)
	ApplyErasures(ctx context.Context, list []vault.Erasure) (changed int, err error)
}

// Remains are what is kept of a person outside the log and its tables. What is in folders is this node's.
type Remains interface {
	// ScrubMail removes kept mails whose names have one of the marks.
	ScrubMail(ctx context.Context, marks ...string) error
	// DeletePictures removes all images of a folder; one that is not there is no error.
	DeletePictures(ctx context.Context, folder string) error
	// Scrub makes Postgres forget what rows held that were changed or deleted. It answers what Postgres does not let it
	// do, having done the rest: trying again would not help.
	Scrub(ctx context.Context) (denied []string, err error)
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

	scrubbed atomic.Uint64 // position up to which the log's erasures are forgotten by Postgres
	cleaned  time.Time     // whose erasures were before then have nothing left in this node's folders
}

// SweepEvery is how often somebody looks for people who are to be erased, whatever became of their jobs.
const SweepEvery = time.Hour

// foldWithin is how long the tables may take to hear what the log says.
const foldWithin = 30 * time.Second

// policy: an erasure is tried for as long as the promise holds, and swept for afterwards.
var policy = reactors.Policy{Attempts: 20, Timeout: 5 * time.Minute, AtOnce: 1}

// Workers are those who do it.
func (e *Eraser) Workers() reactors.Workers {
	return reactors.Workers{
		reactors.Work(policy, func(ctx context.Context, job reactors.Job[EraseUser]) error { return e.Erase(ctx, job.Args.User) }),
		reactors.Work(policy, func(ctx context.Context, _ reactors.Job[SweepErasures]) error { return e.Sweep(ctx) }),
		reactors.Work(policy, e.scrub),
	}
}

// Sweep erases everybody whose time has come, ends erasures that were begun, and forgets to whom invitations were
// sent that are over.
func (e *Eraser) Sweep(ctx context.Context) error {
	due, err := e.Views.DueForErasure(ctx, e.Now())
	if err != nil {
		return err
	}
	var failed []error
	for _, id := range due {
		failed = append(failed, e.Erase(ctx, id))
	}
	over, err := e.Views.InvitationsToForget(ctx, e.Now())
	failed = append(failed, err)
	for _, id := range over {
		if err := e.Remains.ScrubMail(ctx, named(id)); err != nil {
			failed = append(failed, fmt.Errorf("scrub mails: %w", err))
			continue
		}
		failed = append(failed, e.Vault.Erase(ctx, workspace.InvitationSubject(id)))
	}
	return errors.Join(failed...)
}

// scrub makes Postgres forget everybody whom the log has erased by now, once for them all: while their tables
// are written again nobody signs in.
func (e *Eraser) scrub(ctx context.Context, job reactors.Job[ScrubTables]) error {
	if uint64(job.Args.Erased) <= e.scrubbed.Load() {
		return nil
	}
	head, err := e.Store.Head(ctx)
	if err != nil {
		return err
	}
	folding := readmodels.WithFreshness(ctx, &readmodels.Freshness{Min: head, Wait: foldWithin})
	if _, err := e.Views.DueForErasure(folding, e.Now()); err != nil {
		return fmt.Errorf("wait for the tables: %w", err)
	}
	denied, err := e.Remains.Scrub(ctx)
	if err != nil {
		return fmt.Errorf("scrub the tables: %w", err)
	}
	e.scrubbed.Store(uint64(head))
	if len(denied) > 0 {
		e.warn(denied)
		return reactors.Report(ctx, keeps+": Bahi's role may not "+strings.Join(denied, "; ")+".")
	}
	e.Log.Info("Postgres has forgotten who was erased", "up_to", head)
	return nil
}

// keeps says what becomes of what Postgres could not be made to forget.
const keeps = "Postgres may keep values of erased people until it overwrites them"

func (e *Eraser) warn(denied []string) { e.Log.Warn(keeps, "denied", denied) }

// Clean removes from this node's folders what they have of people who were erased: the node that did it
// does not reach them, and a mail may have been on its way then. It is to be called at the start, and each [SweepEvery]
// afterwards, by one goroutine.
func (e *Eraser) Clean(ctx context.Context) error {
	began := e.Now()
	list, err := e.Vault.Erasures(ctx)
	if err != nil {
		return err
	}
	for _, erased := range list {
		id, isUser := userOf(erased.Subject)
		if !isUser || erased.At.Before(e.cleaned) {
			continue
		}
		of, err := e.remember(ctx, id)
		if err != nil {
			return err
		}
		if err := e.wipe(ctx, of); err != nil {
			return err
		}
	}
	e.cleaned = began.Add(-SweepEvery) // clocks differ, and mails take their time
	return nil
}

// userOf returns the user whose key a subject has; false if it is not a user's.
func userOf(subject string) (uuid.UUID, bool) {
	text, isUser := strings.CutPrefix(subject, user.Kind.Category()+"-")
	id, err := uuid.Parse(text)
	return id, isUser && err == nil
}

// Erase erases a user whose time has come; for anybody else it does nothing. The log says first that it has
// begun, from where on the user is not there any more and cannot be kept. Each step after that bears being done
// again, and none needs anything that another has destroyed. What begins an erasure ends it, since the user's
// row names it as due until [Eraser.conclude] has run. What Postgres keeps goes by the job that follows from it.
func (e *Eraser) Erase(ctx context.Context, id uuid.UUID) error {
	l, err := commands.Load(ctx, e.Commands.Fresh(), user.Kind, id.String())
	if err != nil || !l.State.Registered {
		return err
	}
	begun, err := commands.Handle(ctx, e.Commands, acting(l.Workspace), user.Kind, id.String(), user.BeginErasure{Now: e.Now()})
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
	if err := e.wipe(ctx, of); err != nil {
		return err
	}
	if err := e.forget(readmodels.AtLeast(ctx, begun.Position), id, of); err != nil {
		return err
	}
	if err := e.wipe(ctx, of); err != nil { // a mail may have been on its way
		return err
	}
	return e.conclude(ctx, id, of)
}

// wipe removes what this node's folders have of the person.
func (e *Eraser) wipe(ctx context.Context, of *memory) error {
	if err := e.Remains.ScrubMail(ctx, of.marks...); err != nil {
		return fmt.Errorf("scrub mails: %w", err)
	}
	if err := e.Remains.DeletePictures(ctx, of.pictures); err != nil {
		return fmt.Errorf("delete pictures: %w", err)
	}
	return nil
}

// forget destroys the keys of the user, and of invitations to addresses that were theirs.
func (e *Eraser) forget(ctx context.Context, id uuid.UUID, of *memory) error {
	subjects, err := e.invited(ctx, of)
	if err != nil {
		return err
	}
	for _, subject := range append(subjects, user.Subject(id)) {
		if err := e.Vault.Erase(ctx, subject); err != nil {
			return fmt.Errorf("destroy a key: %w", err)
		}
	}
	return nil
}

// Again erases those of the list who are here again, because a backup from before their erasure was
// restored. What the restored log says of their wishes is older than the list. Whom only the list knows
// never gets a key any more.
func (e *Eraser) Again(ctx context.Context, list []vault.Erasure) error {
	for _, erased := range list {
		id, isUser := userOf(erased.Subject)
		if !isUser { // somebody who was invited
			continue
		}
		if err := e.again(ctx, id, erased.At); err != nil {
			return fmt.Errorf("erase %s: %w", erased.Subject, err)
		}
	}
	if _, err := e.Vault.ApplyErasures(ctx, list); err != nil {
		return err
	}
	denied, err := e.Remains.Scrub(ctx)
	if err == nil && len(denied) > 0 {
		e.warn(denied)
	}
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
			if _, err := commands.Handle(ctx, e.Commands, acting(of.state.Workspace), user.Kind, id.String(), c); err != nil {
				return err
			}
		}
	}
	return e.Erase(ctx, id)
}

// conclude says in the log that it is done, and waits until the tables have heard of it.
func (e *Eraser) conclude(ctx context.Context, id uuid.UUID, of *memory) error {
	out, err := commands.Handle(ctx, e.Commands, acting(of.state.Workspace), user.Kind, id.String(), user.Erase{})
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

// memory is what has to be known of a person to forget them. None of it is personal, so it is known as well when
// the person's key is destroyed.
type memory struct {
	state       user.State
	credentials []uuid.UUID // whose they are: the user's, the addresses', and their changes'
	emailKeys   []string
	proven      []string // those of them whose addresses were verified, and are nobody else's now
	identities  []string
	marks       []string // of mails: on the user's account, and to addresses that were theirs
	pictures    string   // their folder
}

// remember reads the person's whole stream: they may have had other addresses before.
func (e *Eraser) remember(ctx context.Context, id uuid.UUID) (*memory, error) {
	of := &memory{credentials: []uuid.UUID{id}, marks: []string{named(id)}, pictures: picture.Folder(id)}
	for stored, err := range e.Store.ReadStream(ctx, user.Kind.Stream(id.String()), 0, eventstore.Forwards) {
		if err != nil {
			return nil, err
		}
		r, err := user.Kind.Decode(stored)
		if err != nil {
			return nil, err
		}
		before := of.state.Changes
		of.state = user.Kind.Evolve(of.state, r)
		if of.state.Changes > before {
			of.credentials = append(of.credentials, flows.ChangeOf(id, before))
		}
		if key := of.state.EmailKey; key != "" && !slices.Contains(of.emailKeys, key) {
			of.emailKeys = append(of.emailKeys, key)
		}
		if key := of.state.EmailKey; of.state.Verified && !slices.Contains(of.proven, key) {
			of.proven = append(of.proven, key)
		}
		if linked, ok := r.Data.(user.IdentityLinked); ok {
			of.identities = append(of.identities, linked.IdentityKey)
		}
	}
	for _, key := range of.emailKeys {
		of.credentials = append(of.credentials, flows.Addressee(id, key))
	}
	proven := of.proven
	of.proven = nil
	for _, key := range proven {
		another, err := e.another(ctx, key, id)
		if err != nil {
			return nil, err
		}
		if another {
			continue
		}
		of.proven = append(of.proven, key)
		of.credentials = append(of.credentials, flows.Recipient(key))
		of.marks = append(of.marks, named(flows.Recipient(key)))
	}
	return of, nil
}

// another says whether an address is somebody else's by now: mails and invitations to it may be theirs, and those are
// forgotten when they are over.
func (e *Eraser) another(ctx context.Context, key string, id uuid.UUID) (bool, error) {
	holder, _, err := e.Accounts.HolderOf(ctx, key)
	return holder != uuid.Nil && holder != id, err
}

// invited returns the subjects of invitations to addresses that were the user's.
func (e *Eraser) invited(ctx context.Context, of *memory) (subjects []string, err error) {
	ids, err := e.Views.InvitationsTo(ctx, of.proven)
	for _, id := range ids {
		subjects = append(subjects, workspace.InvitationSubject(id))
	}
	return subjects, err
}

// leave gives up what is the user's alone, and takes them out of every workspace.
func (e *Eraser) leave(ctx context.Context, id uuid.UUID, of *memory) error {
	nobody := acting(uuid.Nil) // claims are no workspace's
	for _, key := range of.emailKeys {
		if _, err := commands.Handle(ctx, e.Commands, nobody, claim.Email.Kind, key, claims.Release{Value: claim.Email, Holder: id.String()}); err != nil {
			return fmt.Errorf("release an address: %w", err)
		}
	}
	for _, key := range of.identities {
		if _, err := commands.Handle(ctx, e.Commands, nobody, claim.Identity.Kind, key, claims.Release{Value: claim.Identity, Holder: id.String()}); err != nil {
			return fmt.Errorf("release an identity: %w", err)
		}
	}
	memberships, err := e.Views.WorkspacesOf(ctx, id)
	if err != nil {
		return err
	}
	for _, m := range memberships {
		_, err := commands.Handle(ctx, e.Commands, acting(m.ID), workspace.Kind, m.ID.String(), workspace.Remove{User: id, Erased: true})
		if err != nil {
			return fmt.Errorf("leave a workspace: %w", err)
		}
	}
	return nil
}

// acting returns what is known of a command by which the system itself acts in a workspace.
func acting(workspace uuid.UUID) commands.Request {
	return commands.Request{Actor: actor.Actor{Type: "system", ID: "erasure", Workspace: workspace}, Workspace: workspace}
}
