package idp_test

import (
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bahi/internal/test/idptest"
	"bahi/providers/idp"
)

func TestIdentityIsTheProviders(t *testing.T) {
	t.Parallel()
	p := idptest.New(t)
	c := open(t, configOf(p))
	who, err := signIn(t, c, p)
	require.NoError(t, err)
	require.Equal(t, idp.Identity{
		Issuer: p.Issuer(), Subject: "asha", Email: "asha@example.com", EmailVerified: true,
		GivenName: "Asha", FamilyName: "Rao",
	}, who)
	require.Zero(t, p.Asked(idptest.Userinfo), "the token has all claims")

	p.NextUser(idptest.User{Subject: "ravi", Email: "ravi@example.com"})
	who, err = signIn(t, c, p)
	require.NoError(t, err)
	require.Equal(t, idp.Identity{Issuer: p.Issuer(), Subject: "ravi", Email: "ravi@example.com"}, who)
	require.Equal(t, 1, p.Asked(idptest.JWKS), "known keys are not fetched again")

	p.NextUser(idptest.User{Subject: "mira"})
	who, err = signIn(t, c, p)
	require.NoError(t, err)
	require.Equal(t, idp.Identity{Issuer: p.Issuer(), Subject: "mira"}, who, "an identity needs no address")
}

func TestOnlyTrueVerifiesAnEmail(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		verified bool
		fault    idptest.Fault
		want     bool
	}{
		{true, "", true},
		{false, "", false},
		{true, idptest.VerifiedAsText, true},
		{false, idptest.VerifiedAsText, false},
		{true, idptest.NoVerified, false},
		{true, idptest.VerifiedAsNumber, false},
	} {
		p := idptest.New(t)
		p.NextUser(idptest.User{Subject: "asha", Email: "asha@example.com", EmailVerified: test.verified})
		p.Misbehave(test.fault)
		who, err := signIn(t, open(t, configOf(p)), p)
		require.NoError(t, err)
		require.Equal(t, test.want, who.EmailVerified, "%v, %s", test.verified, test.fault)
	}
}

func TestMissingEmailComesFromUserinfo(t *testing.T) {
	t.Parallel()
	p := idptest.New(t)
	c := open(t, configOf(p))
	p.Misbehave(idptest.EmailInUserinfoOnly, idptest.VerifiedAsText)
	who, err := signIn(t, c, p)
	require.NoError(t, err)
	require.Equal(t, "asha@example.com", who.Email)
	require.True(t, who.EmailVerified)
	require.Equal(t, "Asha", who.GivenName)

	p.Misbehave(idptest.EmailInUserinfoOnly, idptest.VerifiedInTokenOnly)
	who, err = signIn(t, c, p)
	require.NoError(t, err)
	require.Equal(t, "asha@example.com", who.Email)
	require.False(t, who.EmailVerified, "the token verified no address")

	p.Misbehave(idptest.EmailInUserinfoOnly, idptest.WrongUserinfoSubject)
	_, err = signIn(t, c, p)
	requireFault(t, err, idp.ErrInvalidToken, "invalid_token")

	p.Misbehave(idptest.EmailInUserinfoOnly)
	p.Break(idptest.Userinfo, idptest.Babbles)
	_, err = signIn(t, c, p)
	requireFault(t, err, idp.ErrInvalidToken, "invalid_token")
	p.Break(idptest.Userinfo, idptest.Fails)
	_, err = signIn(t, c, p)
	requireFault(t, err, idp.ErrUnavailable, "temporarily_unavailable")
}

func TestInvalidTokenSignsNobodyIn(t *testing.T) {
	t.Parallel()
	for _, alg := range []string{"ES256", "RS256"} {
		p := idptest.New(t)
		p.Rotate(alg)
		c := open(t, configOf(p))
		for _, f := range []idptest.Fault{
			idptest.NoAccessToken, idptest.NoIDToken, idptest.WrongNonce, idptest.NoNonce, idptest.WrongAudience, idptest.SharedAudience,
			idptest.WrongAuthorizedParty, idptest.WrongIssuer, idptest.WrongAccessTokenHash, idptest.Expired, idptest.NoExpiry, idptest.NoSubject,
			idptest.EndlessSubject, idptest.EmailIsNumber, idptest.Unsigned, idptest.SignedByPublicKey, idptest.SignedByUnknownKey,
			idptest.BadSignature,
		} {
			p.Misbehave(f)
			who, err := signIn(t, c, p)
			requireFault(t, err, idp.ErrInvalidToken, "invalid_token")
			require.Zero(t, who, f)
		}
		p.Misbehave()
		_, err := signIn(t, c, p)
		require.NoError(t, err, "the same provider without faults")
	}
}

func TestTokenExpiresByTheGivenClock(t *testing.T) {
	t.Parallel()
	p := idptest.New(t)
	config := configOf(p)
	config.Now = func() time.Time { return time.Now().Add(time.Hour) }
	_, err := signIn(t, open(t, config), p)
	require.ErrorIs(t, err, idp.ErrInvalidToken)
}

func TestRotatedKeysOfAllAlgorithmsAreAccepted(t *testing.T) {
	t.Parallel()
	p := idptest.New(t)
	c := open(t, configOf(p))
	for i, alg := range []string{"RS256", "PS256", "EdDSA", "ES256"} {
		p.Rotate(alg)
		for range 2 {
			_, err := signIn(t, c, p)
			require.NoError(t, err, alg)
		}
		require.Equal(t, i+1, p.Asked(idptest.JWKS), "once a rotation")
	}
}

func TestUnavailableKeysDoNotInvalidateAToken(t *testing.T) {
	t.Parallel()
	for how, tries := range map[idptest.Trouble]int{idptest.Fails: 2, idptest.Refuses: 1, idptest.Floods: 1} {
		p := idptest.New(t)
		c := open(t, configOf(p))
		p.Break(idptest.JWKS, how)
		_, err := signIn(t, c, p)
		requireFault(t, err, idp.ErrUnavailable, "temporarily_unavailable")
		require.Equal(t, tries, p.Asked(idptest.JWKS), how)
		p.Mend(idptest.JWKS)
		_, err = signIn(t, c, p)
		require.NoError(t, err, how)
	}
	p := idptest.New(t)
	c := open(t, configOf(p))
	p.Break(idptest.JWKS, idptest.HangsUp)
	_, err := signIn(t, c, p)
	require.ErrorIs(t, err, idp.ErrUnavailable)
	p.Mend(idptest.JWKS)
	p.BreakOnce(idptest.JWKS, idptest.Fails)
	_, err = signIn(t, c, p)
	require.NoError(t, err)
}

func TestInvalidKeysVerifyNothing(t *testing.T) {
	t.Parallel()
	p := idptest.New(t)
	p.Break(idptest.JWKS, idptest.Babbles)
	_, err := signIn(t, open(t, configOf(p)), p)
	requireFault(t, err, idp.ErrInvalidToken, "invalid_token")
}

func TestCodeIsSentOnce(t *testing.T) {
	t.Parallel()
	for how, want := range map[idptest.Trouble]struct {
		kind error
		code string
	}{
		idptest.Fails:     {idp.ErrUnavailable, "temporarily_unavailable"},
		idptest.HangsUp:   {idp.ErrUnavailable, "temporarily_unavailable"},
		idptest.Throttles: {idp.ErrUnavailable, "temporarily_unavailable"},
		idptest.Floods:    {idp.ErrUnavailable, "temporarily_unavailable"},
		idptest.Refuses:   {idp.ErrRefused, "server_error"},
		idptest.Redirects: {idp.ErrRefused, "server_error"},
		idptest.Babbles:   {idp.ErrInvalidToken, "invalid_token"},
	} {
		p := idptest.New(t)
		p.Break(idptest.Token, how)
		_, err := signIn(t, open(t, configOf(p)), p)
		require.ErrorIs(t, err, want.kind, how)
		require.Equal(t, want.code, codeIn(t, err), how)
		require.Equal(t, 1, p.Asked(idptest.Token), how)
	}
}

func TestRefusalsOfTheTokenEndpoint(t *testing.T) {
	t.Parallel()
	p := idptest.New(t)
	c := open(t, configOf(p))
	flow, err := c.Begin(t.Context())
	require.NoError(t, err)
	query := p.Consent(flow.URL).Query()
	_, err = c.Finish(t.Context(), flow, query)
	require.NoError(t, err)
	_, err = c.Finish(t.Context(), flow, query)
	requireFault(t, err, idp.ErrRefused, "invalid_grant")

	query = p.Consent(flow.URL).Query()
	flow.Verifier = "another-verifier-of-somebody-who-has-the-code-only"
	_, err = c.Finish(t.Context(), flow, query)
	requireFault(t, err, idp.ErrRefused, "invalid_grant")

	config := configOf(p)
	config.ClientSecret = "hunter2"
	_, err = signIn(t, open(t, config), p)
	requireFault(t, err, idp.ErrRefused, "invalid_client")
	require.NotContains(t, err.Error(), "hunter2")
}

func TestSecretIsSentAsTheProviderWants(t *testing.T) {
	t.Parallel()
	p := idptest.New(t)
	p.Misbehave(idptest.SecretInBodyOnly)
	_, err := signIn(t, open(t, configOf(p)), p)
	require.NoError(t, err)
	require.Equal(t, 1, p.Asked(idptest.Token))
}

func TestResponseToAnotherRequestIsRefused(t *testing.T) {
	t.Parallel()
	p := idptest.New(t)
	c := open(t, configOf(p))
	for _, f := range []idptest.Fault{idptest.WrongState, idptest.WrongResponseIssuer} {
		p.Misbehave(f)
		_, err := signIn(t, c, p)
		requireFault(t, err, idp.ErrInvalidRequest, "invalid_request")
	}
	p.Misbehave(idptest.ConsentDenied)
	_, err := signIn(t, c, p)
	requireFault(t, err, idp.ErrRefused, "access_denied")
	flow := idp.Flow{State: "s", Nonce: "n", Verifier: "v"}
	for _, query := range []string{
		"", "code=c", "state=s", "state=s&code=", "state=S&code=c", "state=s&state=s&code=c", "state=s&code=c&code=c", "state=s&code=c&iss=",
		"error=access_denied", "state=x&error=access_denied",
	} {
		values, err := url.ParseQuery(query)
		require.NoError(t, err)
		_, err = c.Finish(t.Context(), flow, values)
		requireFault(t, err, idp.ErrInvalidRequest, "invalid_request")
	}
	_, err = c.Finish(t.Context(), idp.Flow{}, url.Values{"state": {""}, "code": {"c"}})
	requireFault(t, err, idp.ErrInvalidRequest, "invalid_request")
	require.Zero(t, p.Asked(idptest.Token))
}

func TestOnlyErrorCodesAreRepeated(t *testing.T) {
	t.Parallel()
	p := idptest.New(t)
	c := open(t, configOf(p))
	rapid.Check(t, func(t *rapid.T) {
		said := rapid.OneOf(rapid.StringMatching(`[a-z_]{1,64}`), rapid.String()).Draw(t, "error")
		_, err := c.Finish(t.Context(), idp.Flow{State: "s"}, url.Values{"state": {"s"}, "error": {said}})
		require.ErrorIs(t, err, idp.ErrRefused)
		code := codeIn(t, err)
		require.True(t, code == said || code == "server_error")
		require.Regexp(t, `^[!-~]{1,64}$`, code)
	})
}
