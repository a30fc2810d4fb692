package idp_test

import (
	"errors"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/domain/fault"
	"bahi/internal/test/idptest"
	"bahi/providers/idp"
)

const callback = "https://bahi.example/api/v1/auth/idp/callback?from=idp"

func configOf(p *idptest.Provider) idp.Config {
	return idp.Config{Issuer: p.Issuer(), ClientID: p.ClientID, ClientSecret: p.ClientSecret, RedirectURL: callback, Now: time.Now}
}

func open(t *testing.T, config idp.Config) *idp.Client {
	t.Helper()
	c, err := idp.New(config)
	require.NoError(t, err)
	return c
}

// signIn goes to the provider and back, and finishes the flow.
func signIn(t *testing.T, c *idp.Client, p *idptest.Provider) (idp.Identity, error) {
	t.Helper()
	flow, err := c.Begin(t.Context())
	require.NoError(t, err)
	return c.Finish(t.Context(), flow, p.Consent(flow.URL).Query())
}

// requireFault requires an error of this kind with this code for the browser.
func requireFault(t *testing.T, err error, kind *fault.Error, code string) {
	t.Helper()
	require.ErrorIs(t, err, kind)
	require.Equal(t, code, codeIn(t, err))
}

func codeIn(t require.TestingT, err error) string {
	f, ok := errors.AsType[*fault.Error](err)
	require.True(t, ok)
	return f.Code
}

func TestWrongSettingIsNamed(t *testing.T) {
	t.Parallel()
	good := idp.Config{Issuer: "https://idp.example", ClientID: "bahi", ClientSecret: "s", Now: time.Now}
	explicit := good
	explicit.AuthURL, explicit.TokenURL, explicit.JWKSURL = "https://idp.example/a", "https://idp.example/t", "http://localhost:9/k"
	for _, test := range []struct {
		config idp.Config
		change func(*idp.Config)
		want   string
	}{
		{good, func(c *idp.Config) { c.Issuer = "" }, "IDP_ISSUER is missing"},
		{good, func(c *idp.Config) { c.ClientID = "" }, "IDP_CLIENT_ID is missing"},
		{good, func(c *idp.Config) { c.ClientSecret = "" }, "IDP_CLIENT_SECRET is missing"},
		{good, func(c *idp.Config) { c.UserinfoURL = "https://idp.example/u" }, "IDP_AUTH_URL is missing"},
		{explicit, func(c *idp.Config) { c.TokenURL = "" }, "IDP_TOKEN_URL is missing"},
		{explicit, func(c *idp.Config) { c.JWKSURL = "" }, "IDP_JWKS_URL is missing"},
		{explicit, func(c *idp.Config) { c.TokenURL = "http://idp.example/t" }, `IDP_TOKEN_URL: "http://idp.example/t" is not https`},
		{explicit, func(c *idp.Config) { c.UserinfoURL = "ftp://idp.example" }, `IDP_USERINFO_URL: "ftp://idp.example" is not https`},
		{good, func(c *idp.Config) { c.Issuer = "http://127.0.0.1.example" }, `IDP_ISSUER: "http://127.0.0.1.example" is not https`},
		{good, func(c *idp.Config) { c.Issuer = "idp.example" }, `IDP_ISSUER: "idp.example" is not the URL of a provider`},
		{good, func(c *idp.Config) { c.Issuer = "https://idp.example#x" }, `IDP_ISSUER: "https://idp.example#x" is not the URL of a provider`},
		{good, func(c *idp.Config) { c.Issuer = "https://idp\x00" }, "IDP_ISSUER: parse"},
	} {
		test.change(&test.config)
		_, err := idp.New(test.config)
		require.ErrorContains(t, err, test.want)
	}
	_, err := idp.New(explicit)
	require.NoError(t, err)
	_, err = idp.New(good)
	require.NoError(t, err)
	require.True(t, good.Configured())
	require.False(t, idp.Config{RedirectURL: callback, Now: time.Now}.Configured())
}

func TestConsentURLAsksWithStateNonceAndPKCE(t *testing.T) {
	t.Parallel()
	p := idptest.New(t)
	c := open(t, configOf(p))
	flow, err := c.Begin(t.Context())
	require.NoError(t, err)
	u, err := url.Parse(flow.URL)
	require.NoError(t, err)
	require.Equal(t, p.URL(idptest.Authorize), u.Scheme+"://"+u.Host+u.Path)
	q := u.Query()
	require.Len(t, q.Get("code_challenge"), 43)
	q.Del("code_challenge")
	require.Equal(t, url.Values{
		"response_type": {"code"}, "client_id": {"bahi"}, "redirect_uri": {callback}, "scope": {"openid email profile"},
		"state": {flow.State}, "nonce": {flow.Nonce}, "code_challenge_method": {"S256"},
	}, q)
	require.NotContains(t, flow.URL, flow.Verifier)
	require.NotContains(t, flow.URL, p.ClientSecret)

	again, err := c.Begin(t.Context())
	require.NoError(t, err)
	require.NotEqual(t, flow.State, again.State)
	require.NotEqual(t, flow.Nonce, again.Nonce)
	require.NotEqual(t, flow.Verifier, again.Verifier)
	require.Equal(t, 1, p.Asked(idptest.Discovery))
}

func TestProviderMayComeUpAfterTheStart(t *testing.T) {
	t.Parallel()
	p := idptest.New(t)
	p.Break(idptest.Discovery, idptest.HangsUp)
	c := open(t, configOf(p))
	require.Zero(t, p.Asked(idptest.Discovery), "the start asks nothing")
	_, err := c.Begin(t.Context())
	requireFault(t, err, idp.ErrUnavailable, "temporarily_unavailable")
	_, err = c.Finish(t.Context(), idp.Flow{State: "s", Nonce: "n", Verifier: "v"}, url.Values{"state": {"s"}, "code": {"c"}})
	requireFault(t, err, idp.ErrUnavailable, "temporarily_unavailable")

	p.Mend(idptest.Discovery)
	who, err := signIn(t, c, p)
	require.NoError(t, err)
	require.Equal(t, "asha", who.Subject)
}

func TestDiscoveryIsRetriedOnceIfThatCanHelp(t *testing.T) {
	t.Parallel()
	for how, tries := range map[idptest.Trouble]int{
		idptest.Fails: 2, idptest.HangsUp: 2, idptest.Refuses: 1, idptest.Throttles: 1, idptest.Redirects: 1, idptest.Floods: 1,
		idptest.Babbles: 1,
	} {
		p := idptest.New(t)
		p.Break(idptest.Discovery, how)
		_, err := open(t, configOf(p)).Begin(t.Context())
		require.ErrorIs(t, err, idp.ErrUnavailable, how)
		require.Equal(t, tries, p.Asked(idptest.Discovery), how)
	}
	for _, once := range []idptest.Trouble{idptest.Fails, idptest.HangsUp} {
		p := idptest.New(t)
		p.BreakOnce(idptest.Discovery, once)
		_, err := open(t, configOf(p)).Begin(t.Context())
		require.NoError(t, err, once)
	}
}

func TestSlowEndpointTimesOutWithoutARetry(t *testing.T) {
	t.Parallel()
	for _, slow := range []idptest.Endpoint{idptest.Discovery, idptest.Token, idptest.JWKS, idptest.Userinfo} {
		t.Run(string(slow), func(t *testing.T) {
			t.Parallel()
			p := idptest.New(t)
			p.Misbehave(idptest.EmailInUserinfoOnly)
			p.Break(slow, idptest.Hangs)
			config := configOf(p)
			config.Timeout = 6 * time.Second // enough for a busy machine to get to the slow endpoint
			c := open(t, config)
			flow, err := c.Begin(t.Context())
			if err == nil {
				_, err = c.Finish(t.Context(), flow, p.Consent(flow.URL).Query())
			}
			requireFault(t, err, idp.ErrUnavailable, "temporarily_unavailable")
			require.Equal(t, 1, p.Asked(slow))
		})
	}
}

func TestUnsafeDiscoveryIsRefused(t *testing.T) {
	t.Parallel()
	for _, f := range []idptest.Fault{idptest.WrongDiscoveredIssuer, idptest.PlainTokenEndpoint} {
		p := idptest.New(t)
		p.Misbehave(f)
		_, err := open(t, configOf(p)).Begin(t.Context())
		require.ErrorIs(t, err, idp.ErrUnavailable, f)
	}
}

func TestExplicitEndpointsNeedNoDiscovery(t *testing.T) {
	t.Parallel()
	p := idptest.New(t)
	p.Misbehave(idptest.EmailInUserinfoOnly)
	config := configOf(p)
	config.AuthURL, config.TokenURL, config.JWKSURL = p.URL(idptest.Authorize), p.URL(idptest.Token), p.URL(idptest.JWKS)
	who, err := signIn(t, open(t, config), p)
	require.NoError(t, err)
	require.Equal(t, idp.Identity{Issuer: p.Issuer(), Subject: "asha", GivenName: "Asha", FamilyName: "Rao"}, who)

	config.UserinfoURL = p.URL(idptest.Userinfo)
	who, err = signIn(t, open(t, config), p)
	require.NoError(t, err)
	require.Equal(t, "asha@example.com", who.Email)
	require.True(t, who.EmailVerified)
	require.Zero(t, p.Asked(idptest.Discovery))
}
