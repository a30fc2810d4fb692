package pages_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
)

func TestMembersSignInAndOut(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	o.Person("asha@example.com")
	b := visitor(o)
	b.get("/").Leads("/app/")
	b.get("/app").Leads("/app/")
	b.get("/app/").Leads("/app/sign-in")
	b.get("/app/accounts?q=a").Leads("/app/sign-in?next=%2Fapp%2Faccounts%3Fq%3Da")
	for _, pairs := range [][]string{
		{"email", "asha@example.com", "password", "wrong"},
		{"email", "nobody@example.com", "password", apptest.GoodPassword}, {"key", "bahi_x"}, {},
	} {
		b.submit("/app/sign-in", "/app/sign-in", pairs...).Is(401).Says("This does not sign you in.")
	}
	b.submit("/app/sign-in?next=//evil.example/x", "/app/sign-in",
		"email", "asha@example.com", "password", apptest.GoodPassword).Leads("/app/")
	page := b.get("/app/").Is(200).Says("Today", "Sign out")
	require.Contains(t, page.Header.Get("Content-Security-Policy"), "default-src 'none'")
	thief := b.get("/app/")
	b.submit("/app/", "/app/sign-out").Leads("/app/sign-in")
	b.get("/app/").Leads("/app/sign-in")
	b.site.Ask(http.MethodPost, "/app/sign-out", form(thief, "/app/sign-out", "")).Is(403)
}

func TestOperationsAcceptTheCookieForReadsAlone(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	b := byKey(o, apptest.Home, write)
	b.get("/banks").Is(200)
	require.Contains(t, b.get("/banks").Header.Values("Vary"), "Cookie")
	require.Contains(t, b.get("/banks").Header.Get("Content-Security-Policy"), "sandbox")
	b.site.Ask(http.MethodPost, "/bank", url.Values{"name": {"HDFC"}}).Is(401)
	visitor(o).get("/banks").Is(401)
}

func TestABrowserWithoutASessionIsSentToTheSignIn(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, o.URL+"/banks?as_of=2025-03-01", http.NoBody)
	require.NoError(t, err)
	r.Header.Set("Accept", "text/html,application/xhtml+xml")
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	require.Equal(t, "/app/sign-in?next=%2Fbanks%3Fas_of%3D2025-03-01", answer.Header.Get("Location"))
}

func TestMailedLinksDoWhatTheySayOnAButton(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	b := visitor(o)
	registration := apptest.Registration("ravi@example.com")
	pairs := []string{}
	for name, value := range registration {
		pairs = append(pairs, name, value)
	}
	b.submit("/app/register", "/app/register", append(pairs, "password", "x")...).Is(422)
	b.submit("/app/register", "/app/register", pairs...).Is(200).Says("a link there confirms your address")
	b.submit("/app/sign-in", "/app/sign-in", "email", "ravi@example.com", "password", apptest.GoodPassword).Is(401).Says("Forgot password")

	link := func(subject string, nth int) string {
		page, token := apptest.Link(t, o.Mailed("ravi@example.com", subject, nth))
		u, err := url.Parse(page)
		require.NoError(t, err)
		return u.Path + "?token=" + url.QueryEscape(token)
	}
	verify := link(apptest.VerifySubject, 1)
	for range 2 { // a scanner of mails follows the link
		b.get(verify).Is(200).Says("Confirm your address")
	}
	b.submit("/auth/verify-email?token=wrong", "/auth/verify-email").Is(400)
	b.submit(verify, "/auth/verify-email").Is(200).Says("Your address is confirmed.")
	signedIn(o, "ravi@example.com").get("/app/").Is(200)

	b.submit("/app/forgot", "/app/forgot", "email", "ravi@example.com").Is(200).Says("a mail is on its way")
	reset := link(apptest.ResetSubject, 1)
	b.submit(reset, "/auth/reset-password", "new_password", "short").Is(422)
	b.submit(reset, "/auth/reset-password", "new_password", "a better password 12").Is(200).Says("The password is set.")
	b.submit("/app/sign-in", "/app/sign-in", "email", "ravi@example.com", "password", "a better password 12").Leads("/app/")
}
