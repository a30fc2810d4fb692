package accesscmd_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/commands/accesscmd"
	"bahi/commands/accesscmd/credentials"
	"bahi/domain/access/workspace"
	"bahi/domain/actor"
	"bahi/domain/event"
	"bahi/eventstore"
)

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
		for what, hook := range map[string]func(f *failingLog) *func(context.Context, string) error{
			"before": func(f *failingLog) *func(context.Context, string) error { return &f.before },
			"after":  func(f *failingLog) *func(context.Context, string) error { return &f.after },
		} {
			t.Run(what+" "+prefix, func(t *testing.T) {
				t.Parallel()
				tn := newFixture(t, 2)
				n := tn.nodes[0]
				o, ravi := n.newWorkspace(t, "asha@example.org"), n.newWorkspace(t, "ravi@example.org")
				token := o.invite(t, "ravi@example.org", clerk)
				req := ravi.by(t, ravi.owner, workspace.Owner)
				req.Key = "k"
				n.store.set(func() {
					*hook(n.store) = func(_ context.Context, stream string) error {
						if strings.HasPrefix(stream, prefix) {
							return eventstore.ErrUnavailable
						}
						return nil
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
