package accesscmd_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/commands/accesscmd"
	"bahi/commands/accesscmd/credentials"
	"bahi/domain/access/session"
	"bahi/domain/access/user"
	"bahi/domain/actor"
	"bahi/domain/event"
)

func TestSigningInAndOutIsRecorded(t *testing.T) {
	t.Parallel()
	tn := newTown(t, 2)
	n := tn.nodes[0]
	id := n.settle(t, "asha@example.org")
	in, err := n.SignIn(t.Context(), commands.Request{}, " ASHA@example.org ", secret)
	require.NoError(t, err)
	require.Equal(t, "asha@example.org", in.Email)
	require.Equal(t, "Asha", in.FirstName)
	require.NotZero(t, in.Position)
	who, err := tn.nodes[1].ring.Authenticate(t.Context(), in.Tokens.Access)
	require.NoError(t, err)
	require.Equal(t, id.String(), who.ID)
	require.Equal(t, in.Tokens.Session, who.Session)

	l, err := commands.Load(t.Context(), n.Commands.Fresh(), session.Kind, in.Tokens.Session.String())
	require.NoError(t, err)
	require.Equal(t, session.State{User: id}, l.State)
	require.Equal(t, n.state(t, id).Workspace, l.Workspace)

	who.Workspace = uuid.New() // the request is in another workspace
	elsewhere := commands.Request{Actor: who, Workspace: who.Workspace, Key: "k", Operation: "logout"}
	at, err := n.SignOut(t.Context(), elsewhere, in.Tokens.Session)
	require.NoError(t, err)
	require.Greater(t, at.Position, in.Position)
	_, err = n.ring.Authenticate(t.Context(), in.Tokens.Access)
	require.Equal(t, credentials.ErrNotAuthenticated, err)
	again, err := n.SignOut(t.Context(), commands.Request{}, in.Tokens.Session)
	require.NoError(t, err)
	require.Equal(t, at.Position, again.Position, "once")
}

func TestCrashLeavesAVerificationTokenValid(t *testing.T) {
	t.Parallel()
	n := newTown(t, 1).nodes[0]
	id := n.register(t, "asha@example.org")
	token := n.mail(t, credentials.Verify, id)
	n.store.set(func() { n.store.before = func(context.Context, string) error { return errCrash } })
	_, err := n.VerifyEmail(t.Context(), commands.Request{}, token)
	require.ErrorIs(t, err, errCrash)
	n.store.set(func() { n.store.before = nil })
	_, err = n.VerifyEmail(t.Context(), commands.Request{}, token)
	require.NoError(t, err)
}

func TestAResetProvesTheAddress(t *testing.T) {
	t.Parallel()
	n := newTown(t, 1).nodes[0]
	id := n.register(t, "asha@example.org")
	_, err := n.ResetPassword(t.Context(), commands.Request{}, n.mail(t, credentials.Reset, id), "eight copper nails")
	require.NoError(t, err)
	_, err = n.SignIn(t.Context(), commands.Request{}, "asha@example.org", "eight copper nails")
	require.NoError(t, err)
}

func TestTokenHasItsUsersPermissions(t *testing.T) {
	t.Parallel()
	tn := newTown(t, 2).follow()
	n, ring := tn.nodes[0], tn.nodes[1].ring
	id := n.settle(t, "asha@example.org")
	in, err := n.SignIn(t.Context(), commands.Request{}, "asha@example.org", secret)
	require.NoError(t, err)
	who, err := ring.Authenticate(t.Context(), in.Tokens.Access)
	require.NoError(t, err)
	s := n.state(t, id)
	require.Equal(t, s.Workspace, who.Workspace)
	require.Equal(t, actor.Permissions{Ledger: actor.Write, Messaging: actor.Write, Marketplace: actor.Write, Audit: actor.Write},
		who.Permissions)
	require.NoError(t, n.Grant(t.Context(), commands.Request{}, id, true))
	require.Eventually(t, func() bool {
		who, err := ring.Authenticate(t.Context(), in.Tokens.Access)
		return err == nil && who.Permissions.Operator
	}, time.Minute, time.Millisecond)
	for _, wrong := range []string{"", in.Tokens.Refresh, in.Tokens.Access + "x"} {
		_, err := ring.Authenticate(t.Context(), wrong)
		require.Equal(t, credentials.ErrNotAuthenticated, err)
	}
	req := commands.Request{Workspace: s.Workspace}
	for _, c := range []event.Command[user.State]{user.RequestDeletion{DeleteAfter: tn.clock()}, user.BeginErasure{Now: tn.clock()}} {
		_, err := commands.Handle(t.Context(), n.Commands, req, user.Kind, id.String(), c)
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool {
		_, err := ring.Authenticate(t.Context(), in.Tokens.Access)
		return errors.Is(err, accesscmd.ErrUnknownKey)
	}, time.Minute, time.Millisecond, "before the sessions end")
}
