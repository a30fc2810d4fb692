package accesscmd_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

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
	"bahi/domain/patch"
	"bahi/eventstore"
)

func TestRegistrationMakesAnAccountAndAWorkspace(t *testing.T) {
	t.Parallel()
	tn := newTown(t, 2)
	in := registration(" Asha@Example.ORG ")
	in.FirstName = " Asha "
	made, err := tn.nodes[0].Register(t.Context(), commands.Request{}, in)
	require.NoError(t, err)
	require.Equal(t, "asha@example.org", made.Email)
	require.Equal(t, "Asha", made.FirstName)
	require.NotZero(t, made.At)
	b := tn.nodes[1]
	require.Equal(t, made.ID, b.holder(t, "asha@example.org"))
	s := b.state(t, made.ID)
	require.Equal(t, user.ByEmail, s.Provider)
	require.False(t, s.Verified)
	l, err := commands.Load(t.Context(), b.Commands.Fresh(), workspace.Kind, s.Workspace.String())
	require.NoError(t, err)
	require.Equal(t, map[uuid.UUID]actor.Permissions{made.ID: workspace.Owner}, l.State.Members)
	text, err := b.Text(t.Context(), s.Email)
	require.NoError(t, err)
	require.Equal(t, "asha@example.org", text)
	_, err = b.Register(t.Context(), commands.Request{}, registration("ASHA@example.org"))
	require.Equal(t, &fault.Error{Kind: fault.Conflict, Detail: "Email already registered", Code: "email_taken"}, err)
}

func TestAnAdministratorVouchesForTheAddress(t *testing.T) {
	t.Parallel()
	n := newTown(t, 1).nodes[0]
	made, err := n.RegisterVerified(t.Context(), commands.Request{}, registration("asha@example.org"))
	require.NoError(t, err)
	_, err = n.SignIn(t.Context(), commands.Request{}, "asha@example.org", secret)
	require.NoError(t, err)
	require.True(t, n.state(t, made.ID).Verified)
}

func TestInvalidRegistrationListsAllFaultsAndClaimsNothing(t *testing.T) {
	t.Parallel()
	tn := newTown(t, 1)
	n := tn.nodes[0]
	_, err := n.Register(t.Context(), commands.Request{},
		accesscmd.Registration{Email: "asha", Password: "short", FirstName: "", LastName: "\u202e"})
	refused, ok := errors.AsType[*fault.Error](err)
	require.True(t, ok)
	var fields []string
	for _, f := range refused.Fields {
		fields = append(fields, f.Field)
	}
	require.Equal(t, []string{"email", "password", "first_name", "last_name"}, fields)
	in := registration("asha@example.org")
	in.Password = "asha@example.org"
	_, err = n.Register(t.Context(), commands.Request{}, in)
	require.Error(t, err, "the password is the address")
	head, err := tn.log.Head(t.Context())
	require.NoError(t, err)
	require.Zero(t, head)
}

// The log has no personal value as plaintext. The names are long, so that no sealed value contains one by chance: a three-letter name, in
// any case, occurs in every thirtieth text of a few hundred letters of base64.
func TestTheLogNamesNobody(t *testing.T) {
	t.Parallel()
	tn := newTown(t, 1)
	n := tn.nodes[0]
	id := n.settle(t, "ashadevika@example.org")
	_, err := n.Change(t.Context(), commands.Request{}, id,
		accesscmd.Profile{FirstName: patch.Set("Ushapriya"), Phone: patch.Set("98123 45678"), Email: patch.Set("raosaheb@example.net")})
	require.NoError(t, err)
	owner := commands.Request{Actor: actor.Actor{Type: "user", ID: id.String(), Permissions: workspace.Owner},
		Workspace: n.state(t, id).Workspace}
	_, _, err = n.Invite(t.Context(), owner, n.state(t, id).Workspace, "ravindranath@example.com", workspace.Owner)
	require.NoError(t, err)
	for e, err := range tn.log.ReadAll(t.Context(), 0, eventstore.Forwards) {
		require.NoError(t, err)
		for _, text := range []string{"ashadevika", "raosaheb", "ushapriya", "9812345678", "98123 45678", "example.org", "example.net",
			"example.com", "ravindranath", secret} {
			require.NotContains(t, strings.ToLower(e.Stream+string(e.Data)+string(e.Meta)), text, e.Type)
		}
	}
}

// steps are the streams of a registration.
var steps = []string{"user-", "workspace-", "emailclaim-"}

func TestRegistrationSurvivesADisconnectedCaller(t *testing.T) {
	t.Parallel()
	tn := newTown(t, 1)
	n := tn.nodes[0]
	for _, step := range steps {
		ctx, cancel := context.WithCancel(t.Context())
		n.store.set(func() {
			n.store.before = func(_ context.Context, stream string) error {
				if strings.HasPrefix(stream, step) {
					cancel()
				}
				return nil
			}
		})
		email := step + "1@example.org"
		_, err := n.Register(ctx, commands.Request{}, registration(email))
		require.Error(t, err)
		n.store.set(func() { n.store.before = nil })
		tn.pass(time.Minute)
		if n.holder(t, email) == uuid.Nil { // the append may still be in progress
			n.register(t, email)
		}
		require.NotEqual(t, uuid.Nil, n.holder(t, email))
	}
}

// paused makes the node wait before it appends to a stream, until goOn is called.
func (n *townNode) paused(prefix string) (reached <-chan struct{}, goOn func()) {
	at, on := make(chan struct{}), make(chan struct{})
	var once sync.Once
	n.store.set(func() {
		n.store.before = func(_ context.Context, stream string) error {
			if strings.HasPrefix(stream, prefix) {
				once.Do(func() {
					close(at)
					<-on
				})
			}
			return nil
		}
	})
	return at, func() { close(on) }
}

// registered returns all users that were ever registered with the address.
func (tn *town) registered(key string) (ids []uuid.UUID) {
	tn.t.Helper()
	for e, err := range tn.log.ReadAll(tn.t.Context(), 0, eventstore.Forwards) {
		require.NoError(tn.t, err)
		if e.Type != "UserRegistered" {
			continue
		}
		r, err := user.Kind.Decode(e)
		require.NoError(tn.t, err)
		if d := r.Data.(user.Registered); d.EmailKey == key {
			ids = append(ids, uuid.MustParse(r.StreamID()))
		}
	}
	return ids
}

func TestAnErasedUsersAddressIsFree(t *testing.T) {
	t.Parallel()
	tn := newTown(t, 1)
	n := tn.nodes[0]
	first := n.settle(t, "asha@example.org")
	n.erase(t, first, tn.clock())
	require.Equal(t, uuid.Nil, n.holder(t, "asha@example.org"))
	tn.pass(time.Minute)
	second := n.register(t, "asha@example.org")
	require.NotEqual(t, first, second)
	_, err := n.Load(t.Context(), first)
	require.ErrorIs(t, err, user.ErrNotFound)
	_, err = n.VerifyEmail(t.Context(), commands.Request{}, first.String()+".x")
	require.Equal(t, credentials.Verify.Refusal(), err)
}

func TestRequestsAreNotRefusedWhileTheLogIsAway(t *testing.T) {
	t.Parallel()
	n := newTown(t, 1).nodes[0]
	id := n.settle(t, "asha@example.org")
	n.store.set(func() { n.store.read = func(context.Context, string) error { return eventstore.ErrUnavailable } })
	_, err := n.Register(t.Context(), commands.Request{}, registration("ravi@example.org"))
	require.ErrorIs(t, err, eventstore.ErrUnavailable)
	_, err = n.SignIn(t.Context(), commands.Request{}, "asha@example.org", secret)
	require.ErrorIs(t, err, eventstore.ErrUnavailable)
	_, err = n.Load(t.Context(), id)
	require.ErrorIs(t, err, eventstore.ErrUnavailable)
	token := id.String() + ".x"
	_, err = n.VerifyEmail(t.Context(), commands.Request{}, token)
	require.Equal(t, credentials.Verify.Refusal(), err, "an invalid token needs no log")
	var none event.Personal
	text, err := n.Text(t.Context(), none)
	require.NoError(t, err)
	require.Empty(t, text)
}
