package accesshttp_test

import (
	"log/slog"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"bahi/internal/app"
	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/internal/test/idptest"
	"bahi/internal/test/logtest"
	"bahi/providers/idp"
)

// startWithProvider serves a system with an identity provider. It also returns the log of requests.
func startWithProvider(t *testing.T, change ...func(*app.Settings)) (*apptest.Server, *idptest.Provider, *logtest.Buffer) {
	t.Helper()
	provider, log := idptest.New(t), &logtest.Buffer{}
	s := apptest.Settings(t, apptest.Database(t))
	s.Outside.FrontendURL = "https://shop.example/app/"
	s.Outside.Provider = idp.Config{Issuer: provider.Issuer(), ClientID: provider.ClientID, ClientSecret: provider.ClientSecret,
		Timeout: 30 * time.Second}
	for _, c := range change {
		c(&s)
	}
	o := apptest.StartAs(t, s, func(sys *app.System) {
		sys.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	return o, provider, log
}

func TestUserSignsInThroughTheProvider(t *testing.T) {
	t.Parallel()
	o, provider, log := startWithProvider(t)
	consent, flow := o.BeginSignIn()
	asked, err := url.Parse(consent)
	require.NoError(t, err)
	require.Equal(t, app.OwnAddress+apptest.Auth+"/idp/callback", asked.Query().Get("redirect_uri"))
	require.Equal(t, "S256", asked.Query().Get("code_challenge_method"))
	for _, name := range []string{"state", "nonce", "code_challenge"} {
		require.NotEmpty(t, asked.Query().Get(name))
		require.NotContains(t, flow.Value, asked.Query().Get(name), "the cookie is sealed")
	}
	secured := func(c *http.Cookie) {
		require.Equal(t, []any{true, true, http.SameSiteLaxMode, "/api/v1/auth", ""}, []any{c.HttpOnly, c.Secure, c.SameSite, c.Path, c.Domain},
			c.Name)
	}
	secured(flow)
	require.Equal(t, 600, flow.MaxAge)

	back := provider.Consent(consent)
	a, landed := o.FinishSignIn(back.RawQuery, flow)
	require.Len(t, landed, 1)
	access := landed.Get("access_token")
	asha := apptest.Person{Client: o.Bearer(access)}
	u := asha.Me()
	require.Equal(t, []string{"asha@example.com", "Asha", "Rao", "idp"}, []string{u.Email, u.FirstName, *u.LastName, u.AuthProvider})
	require.True(t, u.EmailVerified)
	kept := apptest.Cookies(a.Response)["bahi_refresh"]
	require.NotNil(t, kept)
	secured(kept)
	require.InDelta(t, (7 * 24 * time.Hour).Seconds(), kept.MaxAge, 60)

	// The user has no password, and cannot get one (G12).
	asha.POST(apptest.Me+"/password", `{"current_password":"a","new_password":"jadau and polki"}`).Problem(400,
		"Password change is not available for this account")
	o.Anonymous().POST(apptest.Auth+"/login", `{"email":"asha@example.com","password":"jadau and polki"}`).Problem(401,
		"Invalid email or password")
	o.Anonymous().POST(apptest.Auth+"/password-reset/request", `{"email":"asha@example.com"}`).Status(200)
	o.WaitJobs("send_password_reset")
	require.Empty(t, o.Mails("asha@example.com", apptest.ResetSubject))
	require.Empty(t, o.Mails("asha@example.com", apptest.VerifySubject))

	// The browser refreshes with its cookie, which changes each time; a token in the body takes precedence (G9).
	refresh := func(cookie *http.Cookie) *apitest.Answer {
		return o.Anonymous().With("Cookie", cookie.Name+"="+cookie.Value).POST(apptest.Auth+"/refresh", nil)
	}
	a = refresh(kept).Status(200)
	require.Equal(t, "no-store", a.Header("Cache-Control"))
	next := apptest.Cookies(a.Response)["bahi_refresh"]
	secured(next)
	require.NotEqual(t, kept.Value, next.Value)
	answered := apitest.Read[apptest.Tokens](a)
	require.Equal(t, next.Value, answered.Refresh)
	a = o.Anonymous().With("Cookie", "bahi_refresh="+next.Value).POST(apptest.Auth+"/refresh", `{"refresh_token":"x"}`).Problem(401,
		"Invalid or expired refresh token")
	require.Empty(t, a.Header("Set-Cookie"), "the cookie was not refused")
	a = o.Bearer(answered.Access).POST(apptest.Auth+"/logout", `{"refresh_token":"what older clients send"}`).Status(200)
	require.Negative(t, apptest.Cookies(a.Response)["bahi_refresh"].MaxAge)
	a = refresh(next).Problem(401, "Invalid or expired refresh token")
	gone := apptest.Cookies(a.Response)["bahi_refresh"] // otherwise the browser would send it for days
	require.NotNil(t, gone)
	secured(gone)
	require.Empty(t, gone.Value)
	require.Negative(t, gone.MaxAge)
	asha.GET(apptest.Me).Problem(401, "Not authenticated")

	// The same identity is the same user, even with another address.
	provider.NextUser(idptest.User{Subject: "asha", Email: "asha@example.org", EmailVerified: true, GivenName: "A"})
	require.Equal(t, u.ID, o.Through(provider).Me().ID)

	heard := log.String()
	require.Contains(t, heard, "operation=finish-sign-in-by-provider")
	for _, secret := range []string{
		access, answered.Access, kept.Value, next.Value, flow.Value, back.Query().Get("code"), back.Query().Get("state"),
		asked.Query().Get("nonce"),
		"asha@example.com", "access_token", provider.ClientSecret,
	} {
		require.NotContains(t, heard, secret)
	}
}

func TestTheTokenCanComeBehindTheHash(t *testing.T) {
	t.Parallel()
	o, provider, _ := startWithProvider(t, func(s *app.Settings) {
		s.Outside.FrontendURL, s.Outside.Fragment, s.Outside.Access = "https://shop.example", true, 5*time.Minute
	})
	back := func(query string, flow *http.Cookie) *url.URL {
		to, err := url.Parse(o.Anonymous().With("Cookie",
			flow.Name+"="+flow.Value).GET(apptest.Auth + "/idp/callback?" + query).Status(302).Header("Location"))
		require.NoError(t, err)
		require.Equal(t, "/auth/callback", to.Path)
		return to
	}
	consent, flow := o.BeginSignIn()
	to := back(provider.Consent(consent).RawQuery, flow)
	require.Empty(t, to.RawQuery)
	landed, err := url.ParseQuery(to.Fragment)
	require.NoError(t, err)
	require.Equal(t, "idp", apptest.Person{Client: o.Bearer(landed.Get("access_token"))}.Me().AuthProvider)
	var c jwt.RegisteredClaims
	_, _, err = jwt.NewParser().ParseUnverified(landed.Get("access_token"), &c)
	require.NoError(t, err)
	require.Equal(t, 5*time.Minute, c.ExpiresAt.Sub(c.IssuedAt.Time))

	require.Equal(t, "error=invalid_request", back("code=a&state=b", flow).RawQuery, "an error is no secret")
}

func TestEveryFailureAtTheProviderReturnsToTheFrontend(t *testing.T) {
	t.Parallel()
	o, provider, log := startWithProvider(t)
	before := o.Head()
	fails := func(code string, query string, cookie *http.Cookie) {
		t.Helper()
		a, landed := o.FinishSignIn(query, cookie)
		require.Equal(t, url.Values{"error": {code}}, landed)
		require.NotContains(t, apptest.Cookies(a.Response), "bahi_refresh")
	}
	for fault, code := range map[idptest.Fault]string{
		idptest.ConsentDenied: "access_denied", idptest.WrongState: "invalid_request", idptest.WrongNonce: "invalid_token",
		idptest.NoVerified: "access_denied",
	} {
		consent, flow := o.BeginSignIn()
		provider.Misbehave(fault)
		fails(code, provider.Consent(consent).RawQuery, flow)
		provider.Misbehave()
	}

	// The flow's cookie is missing, another flow's, or expired.
	consent, flow := o.BeginSignIn()
	back := provider.Consent(consent)
	_, foreign := o.BeginSignIn()
	key, err := o.Sys.Vault.Named(t.Context(), "sign-in-flow", app.KeySize)
	require.NoError(t, err)
	old, err := idp.Flow{State: back.Query().Get("state"), Nonce: "n", Verifier: "v",
		ExpiresAt: time.Now().Add(-time.Second)}.Seal(key)
	require.NoError(t, err)
	for _, cookie := range []*http.Cookie{nil, foreign, {Name: flow.Name, Value: old}} {
		fails("invalid_request", back.RawQuery, cookie)
	}
	for _, query := range []string{"", "code=" + back.Query().Get("code"), "state=" + back.Query().Get("state"),
		back.RawQuery + "&state=another", "error=access_denied"} {
		fails("invalid_request", query, flow)
	}
	fails("invalid_grant", "code=forged&state="+back.Query().Get("state"), flow)
	require.Equal(t, before, o.Head())
	require.Contains(t, log.String(), "sign-in through the identity provider failed")
	require.Contains(t, log.String(), "code=invalid_token")

	_, landed := o.FinishSignIn(back.RawQuery, flow) // the failures did not spend the code
	require.NotEmpty(t, landed.Get("access_token"))
	fails("invalid_grant", back.RawQuery, flow) // the code is valid once

	consent, flow = o.BeginSignIn()
	provider.Break(idptest.Token, idptest.Fails)
	fails("temporarily_unavailable", provider.Consent(consent).RawQuery, flow)
	provider.Break(idptest.Discovery, idptest.Fails)
	a := apptest.StartAs(t, o.Sys.Settings).Anonymous().GET(apptest.Auth + "/idp").Status(302)
	require.Equal(t, "https://shop.example/app/auth/callback?error=temporarily_unavailable", a.Header("Location"))
}

func TestMissingProviderIsReported(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	for _, path := range []string{"/idp", "/idp/callback", "/idp/callback?code=a&state=b"} {
		o.Anonymous().GET(apptest.Auth+path).Problem(503, "No identity provider is configured")
	}
}
