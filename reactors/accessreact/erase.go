package accessreact

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
	"bahi/commands/accesscmd"
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
	"bahi/readmodels/accessview"
)

// Vault has the vault's operations for erasures.
type Vault interface {
	Erase(ctx context.Context, subject string) error
	Erasures(ctx context.Context) ([]vault.Erasure, error)
	ApplyErasures(ctx context.Context, list []vault.Erasure) (changed int, err error)
}

// ResidualData deletes personal data outside the log and its tables. It uses the folders of this node.
type ResidualData interface {
	// ScrubMail removes mails whose names have one of the marks.
	ScrubMail(ctx context.Context, marks ...string) error
	// DeletePictures removes all images in a folder, which may be missing.
	DeletePictures(ctx context.Context, folder string) error
	// Scrub makes Postgres remove the values of changed and deleted rows. It returns the steps for which the role lacks permission, after
	// doing the others. A retry would not help.
	Scrub(ctx context.Context) (denied []string, err error)
}

// Scrubs are the jobs that scrub tables.
type Scrubs interface {
	reactors.Adder
	// Newest returns the greatest id of the jobs of a kind, 0 when there is none.
	Newest(ctx context.Context, kind string) (int64, error)
}

// Eraser erases people (DESIGN.md, "Secrets and personal data"; CONTRACT.md 8.7): it appends an event, then destroys the
// user's key, and removes the remaining data elsewhere. The books stay.
type Eraser struct {
	Accounts      *accesscmd.Accounts
	Commands      *commands.Handler
	Store         eventstore.Store
	Views         *accessview.Views
	Vault         Vault
	Remains       ResidualData
	Tables        []string // names of the projections with personal data in their tables
	Jobs          Scrubs
	Now           func() time.Time
	Log           *slog.Logger
	ScrubInterval time.Duration // minimum interval between two scrubs, except urgent ones

	scrubbed  atomic.Int64 // id of the newest job that the last scrub covered
	scrubbing atomic.Int64 // when the last scrub ended, in Unix nanoseconds
	cleaned   time.Time    // this node's folders have no data of users erased before this time
}

// SweepInterval is the interval of the search for users who are due, in case their jobs were lost.
const SweepInterval = time.Hour

// foldTimeout limits the wait for the projections.
const foldTimeout = 30 * time.Second

// policy is the retry policy of erasures. The hourly sweep retries them too.
var policy = reactors.Policy{Attempts: 20, Timeout: 5 * time.Minute, MaxConcurrent: 1}

// Workers returns the workers of erasures.
func (e *Eraser) Workers() reactors.Workers {
	return reactors.Workers{
		reactors.Work(policy, func(ctx context.Context, job reactors.Job[eraseUser]) error { return e.Erase(ctx, job.Args.User) }),
		reactors.Work(policy, func(ctx context.Context, _ reactors.Job[SweepErasures]) error { return e.Sweep(ctx) }),
		reactors.Work(policy, func(ctx context.Context, job reactors.Job[eraseSubject]) error {
			return e.eraseSubject(ctx, job.Args.Subject, !job.Args.Unlisted)
		}),
		reactors.Work(policy, e.scrub),
	}
}

// Sweep erases all users who are due, finishes begun erasures, and erases every due subject that is still readable.
func (e *Eraser) Sweep(ctx context.Context) error {
	due, err := e.Views.DueForErasure(ctx, nil, e.Now())
	if err != nil {
		return err
	}
	var failed []error
	for _, id := range due {
		failed = append(failed, e.Erase(ctx, id))
	}
	over, err := e.Views.Ended(ctx, nil, e.Now())
	failed = append(failed, err)
	for _, end := range over {
		failed = append(failed, e.eraseSubject(ctx, end.Subject, end.Listed))
	}
	return errors.Join(failed...)
}

// eraseSubject deletes a subject's data in this node's folders and destroys its key. If tables list the subject, Postgres must remove the
// old rows too.
func (e *Eraser) eraseSubject(ctx context.Context, subject string, listed bool) error {
	if err := e.forget(ctx, subject); err != nil || !listed {
		return err
	}
	_, isUser := userOf(subject)
	return e.Jobs.Add(ctx, scrubTables{Subject: subject, Immediate: isUser})
}

// forget deletes a subject's data in this node's folders and destroys its key.
func (e *Eraser) forget(ctx context.Context, subject string) error {
	mark := MarkOf(subject)
	if err := e.Remains.ScrubMail(ctx, mark); err != nil {
		return fmt.Errorf("scrub mails: %w", err)
	}
	if err := e.Vault.Erase(ctx, subject); err != nil {
		return fmt.Errorf("destroy a key: %w", err)
	}
	if err := e.Remains.ScrubMail(ctx, mark); err != nil { // a mail may have been on its way
		return fmt.Errorf("scrub mails: %w", err)
	}
	if err := e.Remains.DeletePictures(ctx, "files/"+subject+"/"); err != nil {
		return fmt.Errorf("delete files: %w", err)
	}
	return nil
}

// MarkOf returns the mark in the names of mails about a subject.
func MarkOf(subject string) string {
	_, id := event.SplitStream(subject)
	of, err := uuid.Parse(id)
	if err != nil {
		of = uuid.NewSHA1(uuid.Nil, []byte(subject))
	}
	return Mark(of)
}

// scrub makes Postgres remove old row versions of all subjects whose keys are destroyed so far, in one pass. It blocks sign-ins while it
// rewrites their tables.
func (e *Eraser) scrub(ctx context.Context, job reactors.Job[scrubTables]) error {
	if job.ID <= e.scrubbed.Load() {
		return nil
	}
	if since := e.Now().UnixNano() - e.scrubbing.Load(); !job.Args.Immediate && since < e.ScrubInterval.Nanoseconds() {
		return reactors.Snooze(time.Duration(e.ScrubInterval.Nanoseconds() - since))
	}
	newest, err := e.Jobs.Newest(ctx, job.Args.Kind()) // added after its subject's key was destroyed
	if err != nil {
		return err
	}
	head, err := e.Store.Head(ctx)
	if err != nil {
		return err
	}
	if err := e.Views.Reader.From(&readmodels.At{Min: head, Wait: foldTimeout}, e.Tables...).Await(ctx); err != nil {
		return fmt.Errorf("wait for the tables: %w", err)
	}
	denied, err := e.Remains.Scrub(ctx)
	if err != nil {
		return fmt.Errorf("scrub the tables: %w", err)
	}
	e.scrubbed.Store(newest)
	e.scrubbing.Store(e.Now().UnixNano())
	if len(denied) > 0 {
		e.warn(denied)
		return reactors.Report(ctx, keeps+": Bahi's role may not "+strings.Join(denied, "; ")+".")
	}
	e.Log.Info("scrubbed Postgres of erased users", "up_to", head)
	return nil
}

// keeps is the warning that Postgres may still have erased values.
const keeps = "Postgres may keep values of erased people until it overwrites them"

func (e *Eraser) warn(denied []string) { e.Log.Warn(keeps, "denied", denied) }

// Clean deletes the data of erased users from this node's folders. The node that erased them has other folders, and a mail may have been in
// progress. One goroutine must call it at the start and every [SweepInterval].
func (e *Eraser) Clean(ctx context.Context) error {
	began := e.Now()
	list, err := e.Vault.Erasures(ctx)
	if err != nil {
		return err
	}
	for _, erased := range list {
		if erased.At.Before(e.cleaned) {
			continue
		}
		id, isUser := userOf(erased.Subject)
		if !isUser {
			if err := e.Remains.ScrubMail(ctx, MarkOf(erased.Subject)); err != nil {
				return fmt.Errorf("scrub mails: %w", err)
			}
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
	e.cleaned = began.Add(-SweepInterval) // clocks differ, and mails may still be in progress
	return nil
}

// userOf returns a subject's user. It returns false if the subject is not a user.
func userOf(subject string) (uuid.UUID, bool) {
	text, isUser := strings.CutPrefix(subject, user.Kind.Category()+"-")
	id, err := uuid.Parse(text)
	return id, isUser && err == nil
}

// Erase erases a user who is due; otherwise it does nothing. The first event states that the erasure has begun: from then on the user does
// not exist, and the deletion cannot be cancelled. All later steps are idempotent. No step requires data that another step destroys. A
// begun erasure will finish, because the user's row remains due until [Eraser.conclude] has run. The job that follows from its event scrubs
// Postgres.
func (e *Eraser) Erase(ctx context.Context, id uuid.UUID) error {
	l, err := commands.Load(ctx, e.Commands.Fresh(), user.Kind, id.String())
	if err != nil || !l.State.Registered {
		return err
	}
	begun, of, err := e.begin(ctx, id, l.Workspace)
	if err != nil || begun.State.Active() { // the user cancelled the deletion
		return err
	}
	if err := e.shutOut(ctx, of); err != nil {
		return err
	}
	if err := e.leave(ctx, begun.Position, id); err != nil {
		return err
	}
	if err := e.wipe(ctx, of); err != nil {
		return err
	}
	if err := e.destroyKeys(ctx, begun.Position, id, of); err != nil {
		return err
	}
	if err := e.wipe(ctx, of); err != nil { // again, because a mail may have been in progress
		return err
	}
	return e.conclude(ctx, id, of)
}

// begin records that the erasure has begun, and releases the user's unique values, in one append.
func (e *Eraser) begin(ctx context.Context, id, in uuid.UUID) (begun commands.Outcome[user.State], of *memory, err error) {
	begun, err = commands.Do(ctx, e.Commands, acting(in), user.Kind, func(ctx context.Context, tx *commands.Tx) error {
		l, err := commands.Decide(ctx, tx, user.Kind, id.String(), user.BeginErasure{Now: e.Now()})
		if err != nil || l.State.Active() {
			return err
		}
		if of, err = e.remember(ctx, id); err != nil {
			return err
		}
		return errors.Join(release(ctx, tx, claim.Email, of.emailKeys, id), release(ctx, tx, claim.Identity, of.identities, id))
	})
	return begun, of, err
}

// release releases the values that the user has.
func release(ctx context.Context, tx *commands.Tx, value claims.Value, keys []string, id uuid.UUID) error {
	for _, key := range keys {
		// Claims belong to no workspace.
		if _, err := commands.Decide(ctx, tx.In(uuid.Nil), value.Kind, key, claims.Release{Value: value, Holder: id.String()}); err != nil {
			return err
		}
	}
	return nil
}

// wipe deletes the user's data in this node's folders.
func (e *Eraser) wipe(ctx context.Context, of *memory) error {
	if err := e.Remains.ScrubMail(ctx, of.marks...); err != nil {
		return fmt.Errorf("scrub mails: %w", err)
	}
	if err := e.Remains.DeletePictures(ctx, of.pictures); err != nil {
		return fmt.Errorf("delete pictures: %w", err)
	}
	return nil
}

// destroyKeys destroys the keys of the user, and of invitations to the user's addresses.
func (e *Eraser) destroyKeys(ctx context.Context, begun event.Position, id uuid.UUID, of *memory) error {
	subjects, err := e.invited(ctx, begun, of)
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

// ReapplyErasures erases the listed users who exist again after a restore of an older backup. The list is newer than the restored log and
// overrides it. Listed users who are not in the log never get a key again.
func (e *Eraser) ReapplyErasures(ctx context.Context, list []vault.Erasure) error {
	for _, erased := range list {
		id, isUser := userOf(erased.Subject)
		if !isUser { // destroying the key is all that is left to do
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
		if at.After(now) { // another machine's clock is ahead
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

// conclude appends the event that completes the erasure, and waits for the projections.
func (e *Eraser) conclude(ctx context.Context, id uuid.UUID, of *memory) error {
	out, err := commands.Handle(ctx, e.Commands, acting(of.state.Workspace), user.Kind, id.String(), user.Erase{})
	if err != nil {
		return err
	}
	if err := e.shutOut(ctx, of); err != nil { // again, because a sign-in or a mail may have been in progress
		return err
	}
	_, err = e.Views.User(ctx, new(readmodels.At).After(out.Position), id)
	if !errors.Is(err, user.ErrNotFound) {
		return fmt.Errorf("wait for the projections: %w", err)
	}
	e.Log.Info("user erased", "user", id)
	return nil
}

// shutOut deletes the user's credentials, and the targets of mailed tokens.
func (e *Eraser) shutOut(ctx context.Context, of *memory) error {
	for _, subject := range of.credentials {
		if err := e.Accounts.Credentials.Erase(ctx, subject); err != nil {
			return err
		}
	}
	return nil
}

// memory is the data that an erasure needs. None of it is personal, so it outlives the key.
type memory struct {
	state       user.State
	credentials []uuid.UUID // owners of credentials: the user, the addresses, and their changes
	emailKeys   []string
	proven      []string // keys of verified addresses that no other user has now
	identities  []string
	marks       []string // marks of mails: about the user's account, and to the user's addresses
	pictures    string   // folder
}

// remember reads the user's whole stream, which also has earlier addresses.
func (e *Eraser) remember(ctx context.Context, id uuid.UUID) (*memory, error) {
	of := &memory{credentials: []uuid.UUID{id}, marks: []string{Mark(id)}, pictures: picture.Folder(id)}
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
			of.credentials = append(of.credentials, accesscmd.ChangeOf(id, before))
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
		of.credentials = append(of.credentials, accesscmd.Addressee(id, key))
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
		of.credentials = append(of.credentials, accesscmd.Recipient(key))
		of.marks = append(of.marks, Mark(accesscmd.Recipient(key)))
	}
	return of, nil
}

// another reports whether an address now belongs to another user. Mails and invitations to it may be that user's, so they stay until they
// expire.
func (e *Eraser) another(ctx context.Context, key string, id uuid.UUID) (bool, error) {
	holder, _, err := e.Accounts.HolderOf(ctx, key)
	return holder != uuid.Nil && holder != id, err
}

// invited returns the subjects of invitations to the user's addresses.
func (e *Eraser) invited(ctx context.Context, begun event.Position, of *memory) (subjects []string, err error) {
	ids, err := e.Views.InvitationsTo(ctx, new(readmodels.At).After(begun), of.proven)
	for _, id := range ids {
		subjects = append(subjects, workspace.InvitationSubject(id))
	}
	return subjects, err
}

// leave removes the user from every workspace.
func (e *Eraser) leave(ctx context.Context, begun event.Position, id uuid.UUID) error {
	workspaces, err := e.Views.WorkspacesOf(ctx, new(readmodels.At).After(begun), id)
	if err != nil {
		return err
	}
	for _, of := range workspaces {
		_, err := commands.Handle(ctx, e.Commands, acting(of), workspace.Kind, of.String(), workspace.Remove{User: id, Erased: true})
		if err != nil {
			return fmt.Errorf("leave a workspace: %w", err)
		}
	}
	return nil
}

// acting returns the request of a command that the system itself runs in a workspace.
func acting(workspace uuid.UUID) commands.Request {
	return commands.Request{Actor: actor.Actor{Type: "system", ID: "erasure", Workspace: workspace}, Workspace: workspace}
}
