package accesscmd_test

import (
	"testing"

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
