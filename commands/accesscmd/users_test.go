package accesscmd_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/commands/accesscmd"
	"bahi/commands/accesscmd/credentials"
	"bahi/domain/access/user"
	"bahi/domain/access/workspace"
	"bahi/domain/actor"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/eventstore"
)

func text(t *testing.T, n *node, s user.State, which string) string {
	t.Helper()
	shown, err := n.Text(t.Context(),
		map[string]user.State{"first": {Email: s.FirstName}, "last": {Email: s.LastName}, "phone": {Email: s.Phone}, "email": s}[which].Email)
	require.NoError(t, err)
	return shown
}

// A token for one address proves nothing about the next, however late it was issued.
func TestTokenForOneAddressProvesNoOther(t *testing.T) {
	t.Parallel()
	n := newFixture(t, 1).nodes[0]
	id := n.register(t, "asha@example.org")
	old := n.state(t, id)
	verify, reset := n.mail(t, credentials.Verify, id), n.mail(t, credentials.Reset, id)
	n.moved(t, id, "victim@example.org")
	late, lateReset := n.issue(t, credentials.Verify, id, old), n.issue(t, credentials.Reset, id, old) // the jobs had read the state before
	for _, token := range []string{verify, late} {
		_, err := n.VerifyEmail(t.Context(), commands.Request{}, token)
		require.Equal(t, credentials.Verify.Refusal(), err)
	}
	for _, token := range []string{reset, lateReset} {
		_, err := n.ResetPassword(t.Context(), commands.Request{}, token, "eight copper nails")
		require.Equal(t, credentials.Reset.Refusal(), err)
	}
	require.False(t, n.state(t, id).Verified)
	_, err := n.VerifyEmail(t.Context(), commands.Request{}, n.mail(t, credentials.Verify, id))
	require.NoError(t, err)
}

// Of two concurrent uploads of one request, one picture becomes the user's, and the other is unused.
func TestRepeatedUploadLeavesOnePicture(t *testing.T) {
	t.Parallel()
	n := newFixture(t, 1).nodes[0]
	id := n.settle(t, "asha@example.org")
	once := commands.Request{
		Actor: actor.Actor{Type: "user", ID: id.String()}, Key: "upload", Operation: "upload-picture", Fingerprint: []byte("the same"),
	}
	unused, _, err := n.ChangePicture(t.Context(), once, id, "first")
	require.NoError(t, err)
	require.Empty(t, unused)
	unused, _, err = n.ChangePicture(t.Context(), once, id, "second")
	require.NoError(t, err)
	require.Equal(t, "second", unused)
	require.Equal(t, "first", n.state(t, id).Picture)
}

func TestPasswordChangeNeedsTheCurrentOneAndEndsOtherSessions(t *testing.T) {
	t.Parallel()
	tn := newFixture(t, 1)
	n := tn.nodes[0]
	id := n.settle(t, "asha@example.org")
	this, err := n.SignIn(t.Context(), commands.Request{}, "asha@example.org", secret)
	require.NoError(t, err)
	other, err := n.SignIn(t.Context(), commands.Request{}, "asha@example.org", secret)
	require.NoError(t, err)
	reset := n.mail(t, credentials.Reset, id)
	_, err = n.ChangePassword(t.Context(), commands.Request{}, id, this.Tokens.Session, "another brass hook", "eight copper nails")
	require.Equal(t, fault.Malformed, must(t, err).Kind)
	require.Equal(t, "Incorrect current password", must(t, err).Detail)
	require.Empty(t, must(t, err).Fields)
	for _, weak := range []string{"short", "asha@example.org"} {
		_, err = n.ChangePassword(t.Context(), commands.Request{}, id, this.Tokens.Session, "another brass hook", weak)
		require.ErrorIs(t, err, accesscmd.ErrWrongPassword)
		require.Equal(t, []string{"current_password", "new_password"}, fields(t, err), "a wrong current password does not hide it")
	}
	_, err = n.ResetPassword(t.Context(), commands.Request{}, "a.b", "short")
	require.ErrorIs(t, err, credentials.Reset.Refusal())
	require.Equal(t, []string{"token", "new_password"}, fields(t, err), "nor does a wrong token")
	_, err = n.ResetPassword(t.Context(), commands.Request{}, "a.b", "asha@example.org")
	require.Equal(t, credentials.Reset.Refusal(), err, "a wrong token reveals no address")
	_, err = n.ChangePassword(commands.Trial(t.Context()), commands.Request{}, id, this.Tokens.Session, "", "short")
	require.Equal(t, "new_password", must(t, err).Fields[0].Field, "an unreadable current password does not hide a weak new one")
	_, err = n.ResetPassword(commands.Trial(t.Context()), commands.Request{}, "", "short")
	require.Equal(t, "new_password", must(t, err).Fields[0].Field, "nor does an unreadable token")
	for _, weak := range []string{"short", "asha@example.org", "Rao", strings.Repeat("x", 200)} {
		_, err = n.ChangePassword(t.Context(), commands.Request{}, id, this.Tokens.Session, secret, weak)
		require.Equal(t, "new_password", must(t, err).Fields[0].Field)
	}
	_, err = n.ChangePassword(t.Context(), commands.Request{}, id, this.Tokens.Session, secret, "eight copper nails")
	require.NoError(t, err)
	_, err = n.ring.Authenticate(t.Context(), this.Tokens.Access)
	require.NoError(t, err)
	_, err = n.ring.Authenticate(t.Context(), other.Tokens.Access)
	require.Equal(t, credentials.ErrNotAuthenticated, err)
	_, err = n.SignIn(t.Context(), commands.Request{}, "asha@example.org", "eight copper nails")
	require.NoError(t, err)
	_, err = n.ResetPassword(t.Context(), commands.Request{}, reset, "nine silver pins")
	require.Equal(t, credentials.Reset.Refusal(), err, "a link mailed earlier sets no password")
}

func fields(t *testing.T, err error) (all []string) {
	t.Helper()
	for _, f := range must(t, err).Fields {
		all = append(all, f.Field)
	}
	return all
}

func must(t *testing.T, err error) *fault.Error {
	t.Helper()
	refused, ok := errors.AsType[*fault.Error](err)
	require.True(t, ok, "%v", err)
	return refused
}

func TestAResetProvesTheAddress(t *testing.T) {
	t.Parallel()
	n := newFixture(t, 1).nodes[0]
	id := n.register(t, "asha@example.org")
	_, err := n.ResetPassword(t.Context(), commands.Request{}, n.mail(t, credentials.Reset, id), "eight copper nails")
	require.NoError(t, err)
	_, err = n.SignIn(t.Context(), commands.Request{}, "asha@example.org", "eight copper nails")
	require.NoError(t, err)
}

func TestErasureEndsATokenBeforeItsSession(t *testing.T) {
	t.Parallel()
	tn := newFixture(t, 2).follow()
	n, ring := tn.nodes[0], tn.nodes[1].ring
	id := n.settle(t, "asha@example.org")
	in, err := n.SignIn(t.Context(), commands.Request{}, "asha@example.org", secret)
	require.NoError(t, err)
	_, err = ring.Authenticate(t.Context(), in.Tokens.Access)
	require.NoError(t, err)
	req := commands.Request{Workspace: n.state(t, id).Workspace}
	for _, c := range []event.Command[user.State]{user.RequestDeletion{DeleteAfter: tn.Now()}, user.BeginErasure{Now: tn.Now()}} {
		_, err := commands.Handle(t.Context(), n.Commands, req, user.Kind, id.String(), c)
		require.NoError(t, err)
	}
	tn.hear()
	_, err = ring.Authenticate(t.Context(), in.Tokens.Access)
	require.ErrorIs(t, err, accesscmd.ErrUnknownKey)
}

var clerk = actor.Permissions{Ledger: actor.Read, Marketplace: actor.Write}

// workspaceFixture is a workspace with its owner.
type workspaceFixture struct {
	n     *node
	owner uuid.UUID
	id    uuid.UUID
}

func (n *node) newWorkspace(t *testing.T, email string) *workspaceFixture {
	t.Helper()
	owner := n.settle(t, email)
	return &workspaceFixture{n, owner, n.state(t, owner).Workspace}
}

// by returns a request of a user in the workspace, with these permissions.
func (o *workspaceFixture) by(_ *testing.T, id uuid.UUID, p actor.Permissions) commands.Request {
	return commands.Request{
		Actor: actor.Actor{Type: "user", ID: id.String(), Workspace: o.id, Permissions: p}, Workspace: o.id, Operation: "op",
		Fingerprint: []byte("x"),
	}
}

func (o *workspaceFixture) members(t *testing.T) map[uuid.UUID]actor.Permissions {
	t.Helper()
	l, err := commands.Load(t.Context(), o.n.Commands.Fresh(), workspace.Kind, o.id.String())
	require.NoError(t, err)
	return l.State.Members
}

// token returns the token in the invitation's mail.
func (o *workspaceFixture) token(t *testing.T, invitation uuid.UUID) string {
	t.Helper()
	mailed, err := o.n.Credentials.Mailed.Issue(t.Context(), credentials.Invitation, credentials.Mailing{
		Subject: invitation, Recipient: uuid.New(), Number: jobs.Add(1),
	})
	require.NoError(t, err)
	return accesscmd.InvitationToken(o.id, mailed)
}

// invite invites an address and returns the token in the mail.
func (o *workspaceFixture) invite(t *testing.T, email string, p actor.Permissions) string {
	t.Helper()
	id, _, err := o.n.Invite(t.Context(), o.by(t, o.owner, workspace.Owner), o.id, email, p)
	require.NoError(t, err)
	return o.token(t, id)
}

func TestAcceptingIsIdempotentByKey(t *testing.T) {
	t.Parallel()
	tn := newFixture(t, 2)
	n, other := tn.nodes[0], tn.nodes[1]
	o, abroad := n.newWorkspace(t, "asha@example.org"), n.newWorkspace(t, "usha@example.org")
	ravi := n.newWorkspace(t, "ravi@example.org")
	keyed := func(key, fingerprint string) commands.Request {
		req := ravi.by(t, ravi.owner, workspace.Owner)
		req.Key, req.Fingerprint = key, []byte(fingerprint)
		return req
	}
	token, second, elsewhere := o.invite(t, "ravi@example.org", clerk), o.invite(t, "meena@example.org", clerk),
		abroad.invite(t, "ravi@example.org", clerk)
	_, _, err := n.Accept(t.Context(), keyed("k", "nonsense"), "x", ravi.owner)
	require.Equal(t, credentials.Invitation.Refusal(), err)
	_, out, err := n.Accept(t.Context(), keyed("k", "token"), token, ravi.owner)
	require.NoError(t, err, "a refusal does not use up the key")
	require.False(t, out.Replayed)
	written := n.store.After(out.Position - 2)
	require.Equal(t, []string{"RequestAccepted", "MemberJoined"}, []string{written[0].Type, written[1].Type})
	require.Len(t, written, 2)
	require.Equal(t, 1, event.More(written[0].Meta), "one transaction")
	for _, node := range []*node{other, n} {
		in, again, err := node.Accept(t.Context(), keyed("k", "token"), token, ravi.owner)
		require.NoError(t, err)
		require.Equal(t, o.id, in)
		require.True(t, again.Replayed)
		require.Equal(t, out.Position, again.Position)
		require.Equal(t, out.State.Members, again.State.Members)
		for _, wrong := range []string{second, elsewhere, "x", ""} {
			_, _, err = node.Accept(t.Context(), keyed("k", "another "+wrong), wrong, ravi.owner)
			require.Equal(t, commands.ErrKeyReused, err)
		}
	}
	_, _, err = n.Accept(t.Context(), keyed("l", "token"), token, ravi.owner)
	require.Equal(t, credentials.Invitation.Refusal(), err, "a different key is a different request")
	require.Len(t, abroad.members(t), 1)
	_, _, err = n.Accept(t.Context(), keyed("m", "elsewhere"), elsewhere, ravi.owner)
	require.NoError(t, err, "a refusal for the key spends no token")
}

// The process dies, or the response is lost, at each possible step.
func TestAnInvitationIsAcceptedAcrossACrash(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"request-", "workspace-"} {
		for what, refusal := range map[string]error{"before": eventstore.ErrUnavailable, "after": eventstore.ErrInDoubt} {
			t.Run(what+" "+prefix, func(t *testing.T) {
				t.Parallel()
				tn := newFixture(t, 2)
				n := tn.nodes[0]
				o, ravi := n.newWorkspace(t, "asha@example.org"), n.newWorkspace(t, "ravi@example.org")
				token := o.invite(t, "ravi@example.org", clerk)
				req := ravi.by(t, ravi.owner, workspace.Owner)
				req.Key = "k"
				hook := func(_ context.Context, stream string) error {
					if strings.HasPrefix(stream, prefix) {
						return refusal
					}
					return nil
				}
				n.store.Set(func() {
					if what == "before" {
						n.store.Appending = hook
					} else {
						n.store.Appended = hook
					}
				})
				_, _, err := n.Accept(t.Context(), req, token, ravi.owner)
				require.Error(t, err)
				in, out, err := tn.nodes[1].Accept(t.Context(), req, token, ravi.owner)
				require.NoError(t, err)
				require.Equal(t, o.id, in)
				require.Equal(t, clerk, out.State.Members[ravi.owner])
				require.Len(t, o.members(t), 2)
				_, again, err := tn.nodes[1].Accept(t.Context(), req, token, ravi.owner)
				require.NoError(t, err)
				require.True(t, again.Replayed)
				require.Equal(t, out.Position, again.Position)
			})
		}
	}
}
