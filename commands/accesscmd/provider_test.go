package accesscmd_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/commands/accesscmd"
	"bahi/commands/accesscmd/credentials"
	"bahi/domain/patch"
)

func identity(email string) accesscmd.Identity {
	return accesscmd.Identity{
		Issuer: "https://idp.example", Subject: "sub-" + email, Email: email, EmailVerified: true, GivenName: "Asha", FamilyName: "Rao",
	}
}

func TestIssuerAndSubjectAreTheIdentity(t *testing.T) {
	t.Parallel()
	n := newFixture(t, 1).nodes[0]
	who := identity("asha@example.org")
	_, err := n.SignInByProvider(t.Context(), commands.Request{}, who)
	require.NoError(t, err)
	for _, other := range []func(*accesscmd.Identity){
		func(i *accesscmd.Identity) { i.Issuer += "/" }, func(i *accesscmd.Identity) { i.Subject += "x" },
		func(i *accesscmd.Identity) { i.Issuer, i.Subject = i.Issuer+i.Subject[:1], i.Subject[1:] },
	} {
		stranger := who
		stranger.EmailVerified = false
		other(&stranger)
		_, err := n.SignInByProvider(t.Context(), commands.Request{}, stranger)
		require.Error(t, err, "%+v", stranger)
	}
}

// A user with an account takes another person's address, by mistake or as a trap. The account and everything in it stay theirs, and the
// address goes to its owner.
func TestUserOfAnothersAddressKeepsTheAccountWithoutIt(t *testing.T) {
	t.Parallel()
	n := newFixture(t, 1).nodes[0]
	id := n.settle(t, "asha@example.org")
	in, err := n.SignIn(t.Context(), commands.Request{}, "asha@example.org", secret)
	require.NoError(t, err)
	n.moved(t, id, "victim@example.org")
	victim, err := n.SignInByProvider(t.Context(), commands.Request{}, identity("victim@example.org"))
	require.NoError(t, err)
	require.NotEqual(t, id, victim.Tokens.User)
	require.Equal(t, victim.Tokens.User, n.holder(t, "victim@example.org"))
	_, err = n.ring.Authenticate(t.Context(), in.Tokens.Access)
	require.NoError(t, err)
	_, err = n.SignIn(t.Context(), commands.Request{}, "victim@example.org", secret)
	require.ErrorIs(t, err, credentials.ErrSignIn)
	s := n.state(t, id)
	require.Empty(t, s.Identities)
	require.True(t, s.Email.IsZero())
	n.moved(t, id, "asha@example.org")
	require.Equal(t, id, n.holder(t, "asha@example.org"))
}

func TestAProviderNeedNotTellNames(t *testing.T) {
	t.Parallel()
	n := newFixture(t, 1).nodes[0]
	who := identity("asha.rao@example.org")
	who.GivenName, who.FamilyName = "\u202e", ""
	in, err := n.SignInByProvider(t.Context(), commands.Request{}, who)
	require.NoError(t, err)
	require.Equal(t, "asha.rao", in.FirstName)
	require.True(t, n.state(t, in.Tokens.User).LastName.IsZero())
	_, err = n.Change(t.Context(), commands.Request{}, in.Tokens.User, accesscmd.Profile{LastName: patch.Set("Rao")})
	require.NoError(t, err)
}

func TestANewcomerWhoSignsInTwiceAtOnceGetsOneAccount(t *testing.T) {
	t.Parallel()
	tn := newFixture(t, 2)
	slow, quick := tn.nodes[0], tn.nodes[1]
	reached, goOn := slow.paused("user-")
	type outcome struct {
		in  accesscmd.SignedIn
		err error
	}
	late := make(chan outcome, 1)
	go func() {
		in, err := slow.SignInByProvider(t.Context(), commands.Request{}, identity("asha@example.org"))
		late <- outcome{in, err}
	}()
	<-reached // the slow sign-in knows the address, and has created no account yet
	first, err := quick.SignInByProvider(t.Context(), commands.Request{}, identity("asha@example.org"))
	require.NoError(t, err)
	goOn()
	second := <-late
	require.NoError(t, second.err)
	require.Equal(t, first.Tokens.User, second.in.Tokens.User)
	require.Len(t, quick.state(t, first.Tokens.User).Identities, 1)
}

func TestProviderSignInRecoversFromACrash(t *testing.T) {
	t.Parallel()
	tn := newFixture(t, 2)
	a, b := tn.nodes[0], tn.nodes[1]
	existing := b.register(t, "known@example.org")
	for _, email := range []string{"known@example.org", "new@example.org"} {
		for die := 1; ; die++ { // at each append in turn
			err := a.dying(die, func() error {
				_, err := a.SignInByProvider(t.Context(), commands.Request{}, identity(email))
				return err
			})
			if err == nil {
				require.Greater(t, die, 3)
				break
			}
			require.ErrorIs(t, err, errCrash)
			if email == "known@example.org" {
				_, err := b.SignIn(t.Context(), commands.Request{}, email, secret)
				if b.state(t, existing).Verified {
					require.Equal(t, credentials.ErrSignIn, err)
				}
			}
		}
		first, err := b.SignInByProvider(t.Context(), commands.Request{}, identity(email))
		require.NoError(t, err)
		require.Equal(t, first.Tokens.User, b.holder(t, email))
		require.Len(t, b.state(t, first.Tokens.User).Identities, 1)
	}
	require.Equal(t, existing, b.holder(t, "known@example.org"))
}

// An attacker registers another person's address, and waits for them to sign in through a provider.
func TestPreRegisteredAddressGoesToItsOwner(t *testing.T) {
	t.Parallel()
	tn := newFixture(t, 1)
	n := tn.nodes[0]
	id := n.register(t, "victim@example.org")
	mailed := n.mail(t, credentials.Reset, id)
	in, err := n.SignInByProvider(t.Context(), commands.Request{}, identity("victim@example.org"))
	require.NoError(t, err)
	require.Equal(t, id, in.Tokens.User)
	_, err = n.SignIn(t.Context(), commands.Request{}, "victim@example.org", secret)
	require.Equal(t, credentials.ErrSignIn, err)
	require.True(t, n.state(t, id).Verified)
	_, err = n.ResetPassword(t.Context(), commands.Request{}, mailed, "eight copper nails")
	require.NoError(t, err, "mails to the address reach its owner")
}

var errNoUndo = credentials.Undo.Refusal()

// undoing returns the token that the mail about the user's last change would contain.
func (n *node) undoing(t *testing.T, id uuid.UUID) string {
	t.Helper()
	left := n.state(t, id).Left
	require.NotEmpty(t, left)
	token, err := n.IssueUndo(t.Context(), id, left[len(left)-1], jobs.Add(1))
	require.NoError(t, err)
	return token
}

// taken returns an account that an attacker took over: they know its password, changed its address, and signed in both ways.
func (n *node) taken(t *testing.T, from, to string) (id uuid.UUID, undo string, in []string) {
	t.Helper()
	id = n.settle(t, from)
	n.moved(t, id, to)
	undo = n.undoing(t, id)
	_, err := n.VerifyEmail(t.Context(), commands.Request{}, n.mail(t, credentials.Verify, id))
	require.NoError(t, err)
	byPassword, err := n.SignIn(t.Context(), commands.Request{}, to, secret)
	require.NoError(t, err)
	byProvider, err := n.SignInByProvider(t.Context(), commands.Request{}, identity(to))
	require.NoError(t, err)
	require.Equal(t, id, byProvider.Tokens.User)
	return id, undo, []string{byPassword.Tokens.Access, byProvider.Tokens.Access}
}

func TestUndoLocksTheAttackerOut(t *testing.T) {
	t.Parallel()
	tn := newFixture(t, 1)
	n := tn.nodes[0]
	id, undo, in := n.taken(t, "asha@example.org", "eve@example.net")
	reset := n.mail(t, credentials.Reset, id)
	n.moved(t, id, "mallory@example.net")
	theirs := n.undoing(t, id) // token of the change from eve@, which Bahi mailed to eve@
	at, err := n.UndoEmail(t.Context(), commands.Request{}, undo)
	require.NoError(t, err)
	require.NotZero(t, at)

	require.Equal(t, id, n.holder(t, "asha@example.org"))
	require.True(t, n.state(t, id).Verified)
	require.Equal(t, "asha@example.org", text(t, n, n.state(t, id), "email"))
	for _, access := range in {
		_, err = n.ring.Authenticate(t.Context(), access)
		require.Equal(t, credentials.ErrNotAuthenticated, err)
	}
	_, err = n.SignIn(t.Context(), commands.Request{}, "asha@example.org", secret)
	require.Equal(t, credentials.ErrSignIn, err, "the known password is gone")
	_, err = n.ResetPassword(t.Context(), commands.Request{}, reset, "eight copper nails")
	require.Equal(t, credentials.Reset.Refusal(), err, "the attacker got that mail")
	_, err = n.UndoEmail(t.Context(), commands.Request{}, theirs)
	require.Equal(t, errNoUndo, err)
	other, err := n.SignInByProvider(t.Context(), commands.Request{}, identity("eve@example.net"))
	require.NoError(t, err)
	require.NotEqual(t, id, other.Tokens.User, "the linked identity is no longer the account's")
	n.register(t, "mallory@example.net")

	_, err = n.UndoEmail(t.Context(), commands.Request{}, undo)
	require.Equal(t, errNoUndo, err, "once")
	_, err = n.ResetPassword(t.Context(), commands.Request{}, n.mail(t, credentials.Reset, id), "eight copper nails")
	require.NoError(t, err)
	_, err = n.SignIn(t.Context(), commands.Request{}, "asha@example.org", "eight copper nails")
	require.NoError(t, err)
}

func TestUndoIsValidForSevenDays(t *testing.T) {
	t.Parallel()
	tn := newFixture(t, 1)
	n := tn.nodes[0]
	id := n.settle(t, "asha@example.org")
	n.moved(t, id, "rao@example.org")
	undo := n.undoing(t, id)
	for _, wrong := range []string{
		"", ".", "..", undo + "x", strings.Replace(undo, id.String(), uuid.NewString(), 1), strings.Replace(undo, ".0.", ".1.", 1),
		strings.Replace(undo, ".0.", ".99999999999999999999.", 1), n.mail(t, credentials.Verify, id),
	} {
		_, err := n.UndoEmail(t.Context(), commands.Request{}, wrong)
		require.Equal(t, errNoUndo, err, wrong)
	}
	tn.Pass(7 * 24 * time.Hour)
	_, err := n.UndoEmail(t.Context(), commands.Request{}, undo)
	require.Equal(t, errNoUndo, err)
	require.Equal(t, id, n.holder(t, "rao@example.org"))
}

// An attacker may register the address, or change another account's address to it, to keep it from its owner. The attacker cannot verify
// the address.
func TestOnlyAVerifiedAddressBlocksAnUndo(t *testing.T) {
	t.Parallel()
	tn := newFixture(t, 1)
	n := tn.nodes[0]
	for i, squat := range []func(email string) uuid.UUID{
		func(email string) uuid.UUID { return n.register(t, email) },
		func(email string) uuid.UUID {
			id := n.settle(t, "other-"+email)
			n.moved(t, id, email)
			return id
		},
	} {
		email := strings.Repeat("a", i+1) + "@example.org"
		id, undo, _ := n.taken(t, email, "eve-"+email)
		squatter := squat(email)
		_, err := n.UndoEmail(t.Context(), commands.Request{}, undo)
		require.NoError(t, err)
		require.Equal(t, id, n.holder(t, email))
		require.Empty(t, n.state(t, squatter).EmailKey)
	}
	_, undo, _ := n.taken(t, "asha@example.org", "eve@example.net")
	n.settle(t, "asha@example.org")
	_, err := n.UndoEmail(t.Context(), commands.Request{}, undo)
	require.Equal(t, accesscmd.ErrAnothers, err)
}

func TestCrashDuringAnUndoLeavesTheAttackerOut(t *testing.T) {
	t.Parallel()
	tn := newFixture(t, 2)
	a, b := tn.nodes[0], tn.nodes[1]
	for die := 1; ; die++ {
		email := strings.Repeat("a", die) + "@example.org"
		id, undo, in := b.taken(t, email, "eve-"+email)
		err := a.dying(die, func() error {
			_, err := a.UndoEmail(t.Context(), commands.Request{}, undo)
			return err
		})
		if err == nil {
			require.Equal(t, 4, die, "one append writes to the user and to two addresses")
			break
		}
		require.ErrorIs(t, err, errCrash)
		tn.Pass(credentials.Fresh) // maximum time for which another node may trust a session
		for _, access := range in {
			_, err = b.ring.Authenticate(t.Context(), access)
			require.Equal(t, credentials.ErrNotAuthenticated, err)
		}
		_, err = b.SignIn(t.Context(), commands.Request{}, email, secret)
		require.Equal(t, credentials.ErrSignIn, err)
		_, err = b.UndoEmail(t.Context(), commands.Request{}, undo)
		require.NoError(t, err)
		require.Equal(t, id, b.holder(t, email))
	}
}
