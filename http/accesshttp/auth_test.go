package accesshttp_test

import (
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/internal/app"
	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/internal/test/idptest"
	"bahi/internal/test/logtest"
	"bahi/providers/idp"
)

func TestAddressRegistersOnce(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	email := o.Address("asha")
	stranger := o.Anonymous()
	a := stranger.POST(apptest.Auth+"/register", `{"email":" `+strings.ToUpper(email)+` ","password":"kundan and meena",`+
		`"first_name":" Asha","last_name":"Soni "}`).Status(201)
	require.NotEmpty(t, a.Header("Bahi-Position"))
	var made struct {
		ID            uuid.UUID `json:"id"`
		Email         string    `json:"email"`
		FirstName     string    `json:"first_name"`
		LastName      string    `json:"last_name"`
		EmailVerified bool      `json:"email_verified"`
		CreatedAt     time.Time `json:"created_at"`
	}
	a.JSON(&made)
	require.Equal(t, "created_at email email_verified first_name id last_name", fieldsOf(t, a))
	require.Equal(t, []string{email, "Asha", "Soni"}, []string{made.Email, made.FirstName, made.LastName})
	require.False(t, made.EmailVerified)
	require.WithinDuration(t, time.Now(), made.CreatedAt, time.Minute)

	// The address is taken in any spelling (G4).
	for _, again := range []string{email, "ASHA" + email[len("asha"):], "\t" + strings.ToUpper(email)} {
		stranger.POST(apptest.Auth+"/register", apptest.Registration(again)).Problem(409, "Email already registered")
	}
	page, _ := apptest.Link(t, o.Mailed(email, apptest.VerifySubject, 1))
	require.Equal(t, app.OwnAddress+"/auth/verify-email", page)
	require.Len(t, o.Mails(email, apptest.VerifySubject), 1)
}

func TestSignInDoesNotRevealWhoIsRegistered(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	stranger, email := o.Anonymous(), o.Address("asha")
	stranger.POST(apptest.Auth+"/register", apptest.Registration(email)).Status(201)
	o.Mailed(email, apptest.VerifySubject, 1)
	login := func(email, password string) map[string]string {
		return map[string]string{"email": email, "password": password}
	}
	for _, body := range []map[string]string{
		login(email, "another one"), login(o.Address("nobody"), apptest.GoodPassword), login("no address", apptest.GoodPassword),
		login("", ""), login(email, ""), login(email, strings.ToUpper(apptest.GoodPassword)),
	} {
		a := stranger.POST(apptest.Auth+"/login", body).Problem(401, "Invalid email or password")
		require.Empty(t, a.Header("Retry-After"))
	}
	require.Len(t, o.Mails(email, apptest.VerifySubject), 1, "only the right password sends another mail")
	o.WaitJobs("send_verification")
	o.Sql(`update account.mailed_token set issued_at = issued_at - interval '2 minutes'`)
	stranger.POST(apptest.Auth+"/login", login(email, apptest.GoodPassword)).Problem(403, "Email not verified")
	_, second := apptest.Link(t, o.Mailed(email, apptest.VerifySubject, 2))
	stranger.POST(apptest.Auth+"/verify-email", map[string]string{"token": second}).Status(200)

	a := stranger.POST(apptest.Auth+"/login", login(" ASHA"+email[len("asha"):], apptest.GoodPassword)).Status(200)
	require.Equal(t, "no-store", a.Header("Cache-Control"))
	require.Equal(t, "access_token refresh_token token_type user", fieldsOf(t, a))
	require.Empty(t, a.Header("Set-Cookie"), "only browsers that come from a provider get a cookie")
	in := apitest.Read[apptest.SignedIn](a)
	require.Equal(t, "bearer", in.Type)
	require.Equal(t, email, in.User.Email)
	require.Equal(t, "Asha", in.User.FirstName)
	o.Bearer(in.Access).GET("/banks").Status(200).Body(`[]`)
}

func TestAResetDoesNotRevealWhoIsRegistered(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	o.Person("asha@example.com")
	request := func(email string) *apitest.Answer {
		return o.Anonymous().POST(apptest.Auth+"/password-reset/request", map[string]string{"email": email}).Status(200)
	}
	known, unknown := request("Asha@example.com "), request("nobody@example.com")
	require.Equal(t, known.Text, unknown.Text)
	require.Equal(t, known.Header("Bahi-Position"), unknown.Header("Bahi-Position"))
	require.Equal(t, "message", fieldsOf(t, known))
	page, _ := apptest.Link(t, o.Mailed("asha@example.com", apptest.ResetSubject, 1))
	require.Equal(t, app.OwnAddress+"/auth/reset-password", page)
	require.Empty(t, o.Mails("nobody@example.com", apptest.ResetSubject))
}

func TestSigningInIgnoresIdempotencyKeys(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	keyed := o.Anonymous().With("Idempotency-Key", "k")
	keyed.POST(apptest.Auth+"/register", apptest.Registration(o.Address("asha"))).Status(201)
	a := keyed.POST(apptest.Auth+"/register", apptest.Registration(o.Address("asha"))).Problem(409, "Email already registered")
	require.Empty(t, a.Header("Idempotency-Replayed"))
	keyed.POST(apptest.Auth+"/register", apptest.Registration(o.Address("ravi"))).Status(201) // and not 422
	_, token := apptest.Link(t, o.Mailed(o.Address("asha"), apptest.VerifySubject, 1))
	keyed.POST(apptest.Auth+"/verify-email", map[string]string{"token": token}).Status(200)
	sign := map[string]string{"email": o.Address("asha"), "password": apptest.GoodPassword}
	var first, second apptest.SignedIn
	keyed.POST(apptest.Auth+"/login", sign).Status(200).JSON(&first)
	keyed.POST(apptest.Auth+"/login", sign).Status(200).JSON(&second)
	require.NotEqual(t, first.Refresh, second.Refresh)
	for _, in := range []apptest.SignedIn{first, second} {
		o.Bearer(in.Access).With("Idempotency-Key", "k").POST(apptest.Auth+"/logout", nil).Status(200)
		o.Bearer(in.Access).GET("/banks").Problem(401, "Not authenticated")
	}
	keyed.With("Idempotency-Key", strings.Repeat("k", 300)).POST(apptest.Auth+"/login", sign).Status(200)
}

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
