package apptest

import (
	"net/http"
	"net/url"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apitest"
	"bahi/internal/test/idptest"
)

// BeginSignIn starts a sign-in, and returns the provider's address and the browser's cookie.
func (o *Server) BeginSignIn() (consent string, cookie *http.Cookie) {
	o.T.Helper()
	a := o.Anonymous().GET(Auth + "/idp").Status(302)
	require.Equal(o.T, "no-store", a.Header("Cache-Control"))
	cookie = Cookies(a.Response)["bahi_sign_in"]
	require.NotNil(o.T, cookie)
	return a.Header("Location"), cookie
}

// FinishSignIn returns from the provider with its response.
func (o *Server) FinishSignIn(query string, cookie *http.Cookie) (a *apitest.Answer, landed url.Values) {
	o.T.Helper()
	browser := o.Anonymous()
	if cookie != nil {
		browser = browser.With("Cookie", cookie.Name+"="+cookie.Value)
	}
	a = browser.GET(Auth + "/idp/callback?" + query).Status(302)
	require.Equal(o.T, "no-store", a.Header("Cache-Control"))
	require.Equal(o.T, "no-referrer", a.Header("Referrer-Policy"))
	to, err := url.Parse(a.Header("Location"))
	require.NoError(o.T, err)
	require.Equal(o.T, "https://shop.example/app/auth/callback", to.Scheme+"://"+to.Host+to.Path, "always to the frontend")
	gone := Cookies(a.Response)["bahi_sign_in"]
	require.NotNil(o.T, gone)
	require.Negative(o.T, gone.MaxAge, "the cookie of the flow is removed")
	return a, to.Query()
}

// Through signs in the provider's next user.
func (o *Server) Through(provider *idptest.Provider) Person {
	o.T.Helper()
	consent, flow := o.BeginSignIn()
	_, landed := o.FinishSignIn(provider.Consent(consent).RawQuery, flow)
	require.NotEmpty(o.T, landed.Get("access_token"), landed)
	return Person{Client: o.Bearer(landed.Get("access_token"))}
}
