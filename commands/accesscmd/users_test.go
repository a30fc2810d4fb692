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
	"bahi/domain/actor"
	"bahi/domain/fault"
	"bahi/domain/patch"
)

func TestProfileChangesOnlyGivenFields(t *testing.T) {
	t.Parallel()
	n := newTown(t, 1).nodes[0]
	id := n.settle(t, "asha@example.org")
	before := n.state(t, id)
	at, err := n.Change(t.Context(), commands.Request{}, id, accesscmd.Profile{})
	require.NoError(t, err)
	require.Equal(t, before, n.state(t, id))
	later, err := n.Change(t.Context(), commands.Request{}, id,
		accesscmd.Profile{FirstName: patch.Set(" आशा "), Phone: patch.Set("098123-45678")})
	require.NoError(t, err)
	require.Greater(t, later.Position, at.Position)
	s := n.state(t, id)
	for _, is := range []struct{ got, want string }{
		{text(t, n, s, "first"), "आशा"}, {text(t, n, s, "last"), "Rao"}, {text(t, n, s, "phone"), "+919812345678"},
		{text(t, n, s, "email"), "asha@example.org"},
	} {
		require.Equal(t, is.want, is.got)
	}
	_, err = n.Change(t.Context(), commands.Request{}, id, accesscmd.Profile{Phone: patch.Set(" ")})
	require.NoError(t, err)
	require.Empty(t, text(t, n, n.state(t, id), "phone"))

	unchanged := n.state(t, id)
	_, err = n.Change(t.Context(), commands.Request{}, id,
		accesscmd.Profile{Email: patch.Set("x"), FirstName: patch.Set(""), LastName: patch.Set("Rai"), Phone: patch.Set("12")})
	refused, ok := errors.AsType[*fault.Error](err)
	require.True(t, ok)
	require.Len(t, refused.Fields, 2)
	require.Equal(t, unchanged, n.state(t, id), "a refused change changes nothing")
	_, err = n.Change(t.Context(), commands.Request{}, uuid.New(), accesscmd.Profile{FirstName: patch.Set("Usha")})
	require.Equal(t, user.ErrNotFound, err)
}

func text(t *testing.T, n *townNode, s user.State, which string) string {
	t.Helper()
	shown, err := n.Text(t.Context(),
		map[string]user.State{"first": {Email: s.FirstName}, "last": {Email: s.LastName}, "phone": {Email: s.Phone}, "email": s}[which].Email)
	require.NoError(t, err)
	return shown
}

func TestChangedAddressReplacesTheOldOneAtOnce(t *testing.T) {
	t.Parallel()
	tn := newTown(t, 2)
	n := tn.nodes[0]
	id := n.settle(t, "asha@example.org")
	at, err := n.Change(t.Context(), commands.Request{}, id, accesscmd.Profile{Email: patch.Set("RAO@example.org")})
	require.NoError(t, err)
	require.NotZero(t, at)
	_, err = n.SignIn(t.Context(), commands.Request{}, "asha@example.org", secret)
	require.Equal(t, credentials.ErrSignIn, err)
	_, err = n.SignIn(t.Context(), commands.Request{}, "rao@example.org", secret)
	require.ErrorIs(t, err, accesscmd.ErrNotVerified)
	require.Equal(t, "rao@example.org", text(t, n, n.state(t, id), "email"))

	other := tn.nodes[1].register(t, "asha@example.org")
	_, err = n.Change(t.Context(), commands.Request{}, id, accesscmd.Profile{Email: patch.Set("asha@example.org")})
	require.Equal(t, &fault.Error{Kind: fault.Conflict, Detail: "Email already in use", Code: "email_taken"}, err)
	_, err = n.Change(t.Context(), commands.Request{}, other, accesscmd.Profile{Email: patch.Set("rao@example.org")})
	require.Equal(t, accesscmd.ErrInUse, err)
	revision := n.state(t, id)
	_, err = n.Change(t.Context(), commands.Request{}, id, accesscmd.Profile{Email: patch.Set(" Rao@Example.org")})
	require.NoError(t, err)
	require.Equal(t, revision, n.state(t, id), "the same address changes nothing")
}

func TestChangingTheAddressBackKeepsIt(t *testing.T) {
	t.Parallel()
	tn := newTown(t, 2)
	n := tn.nodes[0]
	id := n.settle(t, "asha@example.org")
	for range 3 {
		n.moved(t, id, "rao@example.org")
		n.moved(t, id, "asha@example.org")
	}
	require.Equal(t, id, tn.nodes[1].holder(t, "asha@example.org"))
	tn.pass(time.Minute)
	_, err := tn.nodes[1].Register(t.Context(), commands.Request{}, registration("asha@example.org"))
	require.ErrorIs(t, err, accesscmd.ErrTaken)
	tn.nodes[1].register(t, "rao@example.org")
}

// A token for one address proves nothing about the next, however late it was issued.
func TestTokenForOneAddressProvesNoOther(t *testing.T) {
	t.Parallel()
	n := newTown(t, 1).nodes[0]
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

func TestOneOfConcurrentChangesGetsTheAddress(t *testing.T) {
	t.Parallel()
	tn := newTown(t, 2).follow()
	ids := []uuid.UUID{tn.nodes[0].settle(t, "a@example.org"), tn.nodes[0].settle(t, "b@example.org"), tn.nodes[1].settle(t, "c@example.org")}
	for _, to := range []string{"x@example.org", "y@example.org", "z@example.org"} {
		var (
			all sync.WaitGroup
			mu  sync.Mutex
			won []uuid.UUID
		)
		for i, id := range ids {
			all.Go(func() {
				_, err := tn.nodes[i%2].Change(t.Context(), commands.Request{}, id, accesscmd.Profile{Email: patch.Set(to)})
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					won = append(won, id)
				case !errors.Is(err, accesscmd.ErrInUse):
					t.Error(err)
				}
			})
		}
		all.Wait()
		require.Len(t, won, 1)
		require.Equal(t, won[0], tn.nodes[0].holder(t, to))
	}
}

func TestCrashDuringAChangeOfAddressLosesNeither(t *testing.T) {
	t.Parallel()
	tn := newTown(t, 2)
	a, b := tn.nodes[0], tn.nodes[1]
	for die := 1; ; die++ {
		from, to := strings.Repeat("a", die)+"@example.org", strings.Repeat("b", die)+"@example.org"
		id := b.settle(t, from)
		count := 0
		a.store.set(func() {
			a.store.before = func(context.Context, string) error {
				if count++; count == die {
					return errCrash
				}
				return nil
			}
		})
		_, err := a.Change(t.Context(), commands.Request{}, id, accesscmd.Profile{Email: patch.Set(to)})
		a.store.set(func() { a.store.before = nil })
		if err == nil {
			require.Equal(t, 4, die, "one append writes to the user and to two addresses")
			break
		}
		require.ErrorIs(t, err, errCrash)
		tn.pass(time.Minute)
		now, free := from, to
		if b.holder(t, from) != id {
			now, free = to, from
		}
		require.Equal(t, id, b.holder(t, now), "the user has one of the two addresses")
		b.register(t, free)
		_, err = b.Register(t.Context(), commands.Request{}, registration(now))
		require.ErrorIs(t, err, accesscmd.ErrTaken)
	}
}

func TestPasswordChangeNeedsTheCurrentOneAndEndsOtherSessions(t *testing.T) {
	t.Parallel()
	tn := newTown(t, 1)
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

func must(t *testing.T, err error) *fault.Error {
	t.Helper()
	refused, ok := errors.AsType[*fault.Error](err)
	require.True(t, ok, "%v", err)
	return refused
}

func TestNewPictureReplacesThePreviousOne(t *testing.T) {
	t.Parallel()
	n := newTown(t, 1).nodes[0]
	id := n.settle(t, "asha@example.org")
	for _, is := range [][2]string{{"p1", ""}, {"p2", "p1"}, {"", "p2"}} {
		before, _, err := n.ChangePicture(t.Context(), commands.Request{}, id, is[0])
		require.NoError(t, err)
		require.Equal(t, is[1], before)
	}
}

// Of two concurrent uploads of one request, one picture is the user's, and the other is unused.
func TestRepeatedUploadLeavesOnePicture(t *testing.T) {
	t.Parallel()
	n := newTown(t, 1).nodes[0]
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

func TestDeletionIsRequestedOnceAndCanBeCancelled(t *testing.T) {
	t.Parallel()
	tn := newTown(t, 1)
	n := tn.nodes[0]
	id := n.settle(t, "asha@example.org")
	at, err := n.RequestDeletion(t.Context(), commands.Request{}, id)
	require.NoError(t, err)
	due := *n.state(t, id).DeleteAfter
	require.Equal(t, tn.clock().Add(n.Grace), due)
	tn.pass(time.Hour)
	again, err := n.RequestDeletion(t.Context(), commands.Request{}, id)
	require.NoError(t, err)
	require.Equal(t, at.Position, again.Position)
	require.Equal(t, due, *n.state(t, id).DeleteAfter)
	_, err = n.SignIn(t.Context(), commands.Request{}, "asha@example.org", secret)
	require.NoError(t, err, "the user may sign in until then")
	require.NoError(t, n.CancelDeletion(t.Context(), commands.Request{}, id))
	require.Nil(t, n.state(t, id).DeleteAfter)
	require.NoError(t, n.CancelDeletion(t.Context(), commands.Request{}, id))
	require.Equal(t, user.ErrNotFound, n.CancelDeletion(t.Context(), commands.Request{}, uuid.New()))
	require.Equal(t, user.ErrNotFound, n.Grant(t.Context(), commands.Request{}, uuid.New(), true))
}

func TestChangeOfAProfileHonoursIfMatch(t *testing.T) {
	t.Parallel()
	tn := newTown(t, 1)
	n := tn.nodes[0]
	asha := n.settle(t, "asha@example.org")
	revision := func() int64 {
		l, err := commands.Load(t.Context(), n.Commands.Fresh(), user.Kind, asha.String())
		require.NoError(t, err)
		return l.Revision
	}
	change := func(seen int64, p accesscmd.Profile) error {
		_, err := n.Change(t.Context(), commands.Request{IfMatch: &seen}, asha, p)
		return err
	}
	old := revision()
	require.NoError(t, change(old, accesscmd.Profile{FirstName: patch.Set("Usha"), Email: patch.Set("usha@example.org")}))
	require.Equal(t, n.key(t, "usha@example.org"), n.state(t, asha).EmailKey)
	require.Equal(t, commands.ErrStale, change(old, accesscmd.Profile{FirstName: patch.Set("Mina")}))
	require.Equal(t, commands.ErrStale, change(old, accesscmd.Profile{}))
	require.Equal(t, commands.ErrStale, change(old, accesscmd.Profile{Email: patch.Set("mina@example.org")}))
	require.Equal(t, uuid.Nil, n.holder(t, "mina@example.org"))
	n.settle(t, "mina@example.org") // a refused change claims nothing
	require.NoError(t, change(revision(), accesscmd.Profile{Email: patch.Set("asha@example.org")}))

	_, _, err := n.ChangePicture(t.Context(), commands.Request{IfMatch: &old}, asha, "p")
	require.Equal(t, commands.ErrStale, err)
}

// Otherwise this change would be the reason to refuse the next one.
