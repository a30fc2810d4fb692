package accesscmd_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bahi/commands"
	"bahi/commands/accesscmd"
	"bahi/commands/accesscmd/credentials"
	"bahi/domain/access/user"
	"bahi/domain/access/workspace"
	"bahi/domain/actor"
	"bahi/domain/fault"
	"bahi/domain/patch"
	"bahi/eventstore"
	"bahi/internal/test/draws"
	"bahi/internal/test/interleavetest"
)

func TestInvalidRegistrationListsAllFaultsAndClaimsNothing(t *testing.T) {
	t.Parallel()
	tn := newFixture(t, 1)
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
	tn := newFixture(t, 1)
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

// paused makes the node wait before it appends to a stream, until goOn is called.
func (n *node) paused(prefix string) (reached <-chan struct{}, goOn func()) {
	at, on := make(chan struct{}), make(chan struct{})
	var once sync.Once
	n.store.Set(func() {
		n.store.Appending = func(_ context.Context, stream string) error {
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
func (tn *fixture) registered(key string) (ids []uuid.UUID) {
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

func TestNobodyIsRefusedWhileTheLogIsAway(t *testing.T) {
	t.Parallel()
	tn, all := rings(t, 1)
	n := tn.nodes[0]
	id := n.settle(t, "asha@example.org")
	key, _ := deploys(t, tn, all[0], nil)
	unread := strings.ReplaceAll(uuid.NewString(), "-", "") // its stream is not cached
	in, err := n.SignIn(t.Context(), commands.Request{}, "asha@example.org", secret)
	require.NoError(t, err)
	who, err := n.ring.Authenticate(t.Context(), in.Tokens.Access)
	require.NoError(t, err)
	n.store.Set(func() { n.store.Reading = func(context.Context, string) error { return eventstore.ErrUnavailable } })
	for what, ask := range map[string]func() error{
		"register": func() error {
			_, err := n.Register(t.Context(), commands.Request{}, registration("ravi@example.org"))
			return err
		},
		"sign in": func() error {
			_, err := n.SignIn(t.Context(), commands.Request{}, "asha@example.org", secret)
			return err
		},
		"load": func() error { _, err := n.Load(t.Context(), id); return err },
		"a key": func() error {
			_, err := all[0].Authenticate(t.Context(), accesscmd.KeyPrefix+unread+key[len(accesscmd.KeyPrefix)+32:])
			return err
		},
		"workspace": func() error { _, err := n.ring.Enter(t.Context(), who, uuid.New()); return err },
	} {
		require.ErrorIs(t, ask(), eventstore.ErrUnavailable, what)
	}
	_, err = n.VerifyEmail(t.Context(), commands.Request{}, id.String()+".x")
	require.Equal(t, credentials.Verify.Refusal(), err, "an invalid token needs no log")
}

// settled fails the test if a completed act was neither refused nor interrupted.
func settled(t *rapid.T, a *interleavetest.Act) {
	for _, expected := range []error{nil, interleavetest.ErrDied, accesscmd.ErrTaken, accesscmd.ErrInUse, commands.ErrBusy,
		commands.ErrStale} {
		if errors.Is(a.Err, expected) {
			return
		}
	}
	t.Fatalf("%s: %v", a.What, a.Err)
}

// TestMain makes rapid run fewer times: each run settles people and lets them race.
func TestMain(m *testing.M) {
	draws.Default(40)
	os.Exit(m.Run())
}

// Registrations and changes of addresses may interleave, be interrupted, and be slow in any way. Still, an address belongs to at most one
// active account, an account is found by its address, and a free address can be registered.
func TestRacesForAnAddressLeaveOneAccount(t *testing.T) {
	t.Parallel()
	tn := newFixture(t, 2)
	for _, n := range tn.nodes {
		n.store.Answers = true
	}
	sane := tn.nodes[0]
	round := 0
	rapid.Check(t, func(rt *rapid.T) {
		round++
		emails, users := make([]string, 3), make([]uuid.UUID, 2)
		for i := range emails {
			emails[i] = fmt.Sprintf("a%d-%d@example.org", round, i)
		}
		for i := range users {
			users[i] = sane.settle(t, emails[i])
		}
		tn.Pass(time.Minute)
		email, node := rapid.SampledFrom(emails), rapid.SampledFrom(tn.nodes)
		acts := map[int]*interleavetest.Act{}
		for i := range rapid.IntRange(2, 5).Draw(rt, "acts") {
			n, to := node.Draw(rt, "node"), email.Draw(rt, "to")
			var a *interleavetest.Act
			if who := rapid.IntRange(0, len(users)).Draw(rt, "who"); who == len(users) {
				a = interleavetest.Begin(t.Context(), "register "+to, func(ctx context.Context) error {
					_, err := n.Register(ctx, commands.Request{}, registration(to))
					return err
				})
			} else {
				a = interleavetest.Begin(t.Context(), fmt.Sprintf("move %d to %s", who, to), func(ctx context.Context) error {
					_, err := n.Change(ctx, commands.Request{}, users[who], accesscmd.Profile{Email: patch.Set(to)})
					return err
				})
			}
			if a.Waits() {
				acts[i] = a
			} else {
				settled(rt, a)
			}
		}
		for len(acts) > 0 {
			i := rapid.SampledFrom(slices.Sorted(maps.Keys(acts))).Draw(rt, "act")
			a := acts[i]
			tn.Pass(rapid.SampledFrom([]time.Duration{0, 0, 0, 20 * time.Second, 2 * time.Minute, 25 * time.Hour}).Draw(rt, "time passes"))
			goOn := a.Continue
			if rapid.IntRange(0, 9).Draw(rt, "dies") == 9 {
				goOn = a.Die
			}
			if !goOn() {
				delete(acts, i)
				settled(rt, a)
			}
		}
		tn.Pass(2 * time.Minute)
		for _, e := range emails {
			key := sane.key(t, e)
			var have []uuid.UUID
			for _, id := range append(tn.registered(key), users...) {
				if s := sane.state(t, id); s.Active() && s.EmailKey == key {
					have = append(have, id)
				}
			}
			slices.SortFunc(have, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
			have = slices.Compact(have)
			holder := sane.holder(t, e)
			switch {
			case len(have) > 1:
				rt.Fatalf("%s is the address of %d accounts", e, len(have))
			case len(have) == 1 && holder != have[0]:
				rt.Fatalf("%s is the address of %s, but the claim names %s", e, have[0], holder)
			case len(have) == 0 && holder != uuid.Nil:
				rt.Fatalf("no user has the address %s, but the claim names %s", e, holder)
			}
			unproven := len(have) == 1 && !sane.state(t, have[0]).Trusted() // its address may lapse
			_, err := sane.Register(t.Context(), commands.Request{}, registration(e))
			if len(have) == 0 && err != nil || len(have) == 1 && !unproven && !errors.Is(err, accesscmd.ErrTaken) {
				rt.Fatalf("%s, which %d have, is registered again with %v", e, len(have), err)
			}
		}
		for _, id := range users {
			key := sane.state(t, id).EmailKey
			if key == "" {
				continue // its address has lapsed
			}
			found, _, err := sane.HolderOf(t.Context(), key)
			require.NoError(t, err)
			require.Equal(t, id, found, "an account is found by its address")
		}
	})
}
