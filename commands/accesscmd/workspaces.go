package accesscmd

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/commands/accesscmd/credentials"
	"bahi/domain/access/user"
	"bahi/domain/access/workspace"
	"bahi/domain/actor"
	"bahi/domain/event"
	"bahi/domain/person"
)

// invitationLifetime is the time in which an invitation can be accepted (CONTRACT.md 0.2).
const invitationLifetime = 7 * 24 * time.Hour

// Invite invites a person by email to the caller's workspace.
func (a *Accounts) Invite(ctx context.Context, req commands.Request, in uuid.UUID, email string, permissions actor.Permissions) (uuid.UUID,
	commands.Outcome[workspace.State], error) {
	var out commands.Outcome[workspace.State]
	email, err := person.Email("email", email)
	if err != nil {
		return uuid.Nil, out, err
	}
	key, err := a.EmailKey(ctx, email)
	if err != nil {
		return uuid.Nil, out, err
	}
	id, err := a.newInvitation(ctx, req)
	if err != nil {
		return uuid.Nil, out, err
	}
	now := a.Now()
	out, err = commands.Handle(ctx, a.Commands, req, workspace.Kind, in.String(), workspace.Invite{
		By: req.Actor, Invitation: id, Permissions: permissions, Now: now, ExpiresAt: now.Add(invitationLifetime),
		Email: workspace.Invitations.Personal(id.String(), email), EmailKey: key,
	})
	return id, out, err
}

// OpenInvitation is an invitation that can still be accepted.
type OpenInvitation struct {
	ID          uuid.UUID         `json:"id" doc:"ID of the invitation"`
	Email       *string           `json:"email" doc:"Email address"` // nil: the invited person is erased
	Permissions actor.Permissions `json:"permissions" doc:"Permissions by area"`
	InvitedBy   string            `json:"invited_by" doc:"Such as user:<id> or api_key:<id>"`
	ExpiresAt   time.Time         `json:"expires_at" doc:"Time of expiry"`
}

// Invitations returns the open invitations of a workspace by time of expiry. It reads the log, because no table has their addresses.
func (a *Accounts) Invitations(ctx context.Context, in uuid.UUID) ([]OpenInvitation, error) {
	l, err := commands.Load(ctx, a.Commands.Fresh(), workspace.Kind, in.String())
	if err != nil {
		return nil, err
	}
	open, now := []OpenInvitation{}, a.Now()
	for id, i := range l.State.Invitations {
		if !now.Before(i.ExpiresAt) {
			continue
		}
		o := OpenInvitation{ID: id, Permissions: i.Permissions, InvitedBy: i.By, ExpiresAt: i.ExpiresAt}
		switch address, err := a.Text(ctx, i.Email); {
		case err == nil:
			o.Email = &address
		case !errors.Is(err, event.ErrErased):
			return nil, err
		}
		open = append(open, o)
	}
	slices.SortFunc(open, func(a, b OpenInvitation) int {
		return cmp.Or(a.ExpiresAt.Compare(b.ExpiresAt), bytes.Compare(a.ID[:], b.ID[:]))
	})
	return open, nil
}

// Withdraw withdraws an invitation to the caller's workspace.
func (a *Accounts) Withdraw(ctx context.Context, req commands.Request, in, invitation uuid.UUID) (commands.Outcome[workspace.State],
	error) {
	return commands.Handle(ctx, a.Commands, req, workspace.Kind, in.String(), workspace.Withdraw{By: req.Actor, Invitation: invitation})
}

// newInvitation returns the id of the next invitation. A retry gets the same id.
func (a *Accounts) newInvitation(ctx context.Context, req commands.Request) (uuid.UUID, error) {
	if req.Key == "" {
		return uuid.New(), nil
	}
	sum, err := a.Vault.HMAC(ctx, invitationHash, []byte(req.Operation), []byte(req.Actor.String()), req.Workspace[:], []byte(req.Key),
		req.Fingerprint)
	return uuid.NewSHA1(req.Workspace, sum), err
}

// InvitationToken returns the token in an invitation's mail: the workspace's id and a mailed token.
func InvitationToken(workspace uuid.UUID, mailed string) string {
	return workspace.String() + "." + mailed
}

// Accept makes the user a member of the invitation's workspace. It checks that the workspace in the token has the invitation. The first use
// spends the token, so a retry is recognised by its key.
func (a *Accounts) Accept(ctx context.Context, req commands.Request, token string, id uuid.UUID) (in uuid.UUID,
	out commands.Outcome[workspace.State], err error) {
	s, err := a.Load(ctx, id)
	if err != nil {
		return in, out, err
	}
	own := keyed(req, id, s.Workspace) // whichever workspace its token names

	if _, _, err = commands.PreviousOutcome(ctx, a.Commands, own, workspace.Kind); err != nil { // the key was used with another token
		return in, out, err
	}
	name, mailed, _ := strings.Cut(token, ".")
	if in, err = uuid.Parse(name); err != nil {
		return in, out, credentials.Invitation.Refusal()
	}
	err = a.Credentials.Mailed.Use(ctx, credentials.Invitation, mailed, func(ctx context.Context, invitation uuid.UUID) error {
		out, err = commands.Do(ctx, a.Commands, own, workspace.Kind, func(ctx context.Context, tx *commands.Tx) error {
			inviter, err := a.inviter(ctx, tx, in, invitation)
			if err != nil {
				return err
			}
			l, err := active(ctx, tx, id)
			if err != nil {
				return err
			}
			join := workspace.Join{Invitation: invitation, Inviter: inviter, User: id, EmailKey: l.State.ProvenEmail(), Now: a.Now()}
			_, err = commands.Decide(ctx, tx.In(in), workspace.Kind, in.String(), join)
			return err
		})
		if errors.Is(err, workspace.ErrAnothers) { // the workspace's owner gets a mail, see reactors/accessreact
			_, strayErr := commands.Handle(ctx, a.Commands, as(req, id, in), workspace.Kind, in.String(),
				workspace.RecordMismatch{Invitation: invitation})
			return errors.Join(err, strayErr)
		}
		return err
	})
	if errors.Is(err, credentials.Invitation.Refusal()) { // an earlier attempt of this request may have spent the token
		earlier, done, lookErr := commands.PreviousOutcome(ctx, a.Commands, own, workspace.Kind)
		if done || lookErr != nil {
			out, err = earlier, lookErr
		}
	}
	return in, out, err
}

// inviter returns the actor who sent an invitation, or the zero Actor if there is no such invitation. The actor has the current permissions
// that are not in the workspace's own stream.
func (a *Accounts) inviter(ctx context.Context, from commands.Source, in, invitation uuid.UUID) (actor.Actor, error) {
	l, err := commands.Load(ctx, from, workspace.Kind, in.String())
	if err != nil {
		return actor.Actor{}, err
	}
	kind, name, _ := strings.Cut(l.State.Invitations[invitation].By, ":")
	who := actor.Actor{Type: kind, ID: name, Workspace: in}
	id, named := uuid.Parse(name)
	switch {
	case kind == "user":
		var u commands.Loaded[user.State]
		u, err = commands.Load(ctx, from, user.Kind, id.String())
		who.Permissions.Operator = u.State.Active() && u.State.Operator
	case kind == "api_key" && named == nil:
		who.Permissions, err = keyRights(ctx, from, id, a.Now())
	case kind == "api_key", kind == "system": // the operator's own key, and the shell
		who.Permissions.Operator = true
	}
	return who, err
}

// ChangeMember changes the permissions of a member of the caller's workspace. If-Match is the member's revision.
func (a *Accounts) ChangeMember(ctx context.Context, req commands.Request, in, member uuid.UUID,
	to actor.Permissions) (commands.Outcome[workspace.State], error) {
	return a.onMember(ctx, req, in, member, workspace.Change{By: req.Actor, User: member, To: to})
}

// RemoveMember removes a member of the caller's workspace. If-Match is the member's revision.
func (a *Accounts) RemoveMember(ctx context.Context, req commands.Request, in, member uuid.UUID) (commands.Outcome[workspace.State],
	error) {
	return a.onMember(ctx, req, in, member, workspace.Remove{By: req.Actor, User: member})
}

// onMember runs a command on a member. All members are in one stream. A member's revision is that of the newest event about the member.
// With the stream's revision, a client could not edit two members from one list, because the first edit would outdate the second.
func (a *Accounts) onMember(ctx context.Context, req commands.Request, in, member uuid.UUID,
	cmd event.Command[workspace.State]) (commands.Outcome[workspace.State], error) {
	cmd = memberAsSeen{cmd, member, req.IfMatch}
	req.IfMatch = nil
	return commands.Handle(ctx, a.Commands, req, workspace.Kind, in.String(), cmd)
}

// memberAsSeen is a command on a member at the revision that the caller has seen; nil: any.
type memberAsSeen struct {
	event.Command[workspace.State]

	member uuid.UUID
	seen   *int64
}

// Decide returns [commands.ErrStale] if the member has changed since.
func (c memberAsSeen) Decide(s workspace.State) ([]event.Event[workspace.State], error) {
	events, err := c.Command.Decide(s)
	if err == nil && c.seen != nil && *c.seen != s.Revisions[c.member] {
		return nil, commands.ErrStale
	}
	return events, err
}

// TokenRing authenticates users by their access tokens. It reads states from the cache, which a subscription to the log updates.
type TokenRing struct {
	Commands *commands.Handler
	Sessions *credentials.Sessions
}

// Authenticate returns the user of a token, in their own workspace, or [ErrUnknownKey].
func (r *TokenRing) Authenticate(ctx context.Context, token string) (actor.Actor, error) {
	b, err := r.Sessions.Authenticate(ctx, token)
	if err != nil {
		return actor.Actor{}, err
	}
	l, err := load(ctx, r.Commands, user.Kind, b.User.String())
	if err != nil {
		return actor.Actor{}, err
	}
	if !l.State.Active() {
		return actor.Actor{}, ErrUnknownKey
	}
	who := actor.Actor{Type: "user", ID: b.User.String(), Session: b.Session, Workspace: l.State.Workspace}
	home, err := load(ctx, r.Commands, workspace.Kind, who.Workspace.String())
	who.Permissions = home.State.Members[b.User]
	who.Permissions.Operator = l.State.Operator
	return who, err
}

// Enter returns the user with their permissions in another workspace, or [workspace.ErrNotFound].
func (r *TokenRing) Enter(ctx context.Context, who actor.Actor, other uuid.UUID) (actor.Actor, error) {
	id, err := uuid.Parse(who.ID)
	if err != nil || who.Type != "user" {
		return who, workspace.ErrNotFound
	}
	l, err := load(ctx, r.Commands, workspace.Kind, other.String())
	if err != nil {
		return who, err
	}
	p, member := l.State.Members[id]
	if !member {
		return who, workspace.ErrNotFound
	}
	who.Permissions = p
	return who, nil
}

// load returns a state that may lag behind the log. It reads the newest state if the cache has no such stream.
func load[S any](ctx context.Context, h *commands.Handler, kind *event.Kind[S], id string) (commands.Loaded[S], error) {
	l, err := commands.Load(ctx, h.Cached(), kind, id)
	if err == nil && l.Revision < 0 {
		l, err = commands.Load(ctx, h.Fresh(), kind, id)
	}
	return l, err
}
