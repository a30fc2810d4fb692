package pages_test

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
	"bahi/internal/test/idptest"
	"bahi/providers/idp"
)

func TestABrowserSignsInThroughTheProvider(t *testing.T) {
	t.Parallel()
	provider, s := idptest.New(t), apptest.Settings(t, apptest.Database(t))
	s.Outside.Provider = idp.Config{Issuer: provider.Issuer(), ClientID: provider.ClientID, ClientSecret: provider.ClientSecret,
		Timeout: 30 * time.Second}
	o := apptest.StartAs(t, s)
	// through signs in at the provider and returns the address to which the API then redirects.
	through := func() string {
		consent, flow := o.BeginSignIn()
		back := o.Anonymous().With("Cookie", flow.Name+"="+flow.Value).
			GET(apptest.Auth + "/idp/callback?" + provider.Consent(consent).RawQuery).Status(302)
		to, err := url.Parse(back.Header("Location"))
		require.NoError(t, err)
		return to.RequestURI()
	}
	b := visitor(o)
	b.get(through()).Is(401).Says("The sign-in through the provider failed.") // this browser did not begin it
	begin := func(b browser) {
		link := regexp.MustCompile(`href="(/app/sign-in/provider[^"]+)"`).FindStringSubmatch(b.get("/app/sign-in?next=%2Fapp%2Fsettings").Text)
		require.NotNil(t, link)
		b.get(html.UnescapeString(link[1])).Leads(apptest.Auth + "/idp")
	}
	b.get("/app/sign-in/provider?token=x").Is(403)
	begin(b)
	b.get("/auth/callback?error=access_denied").Is(401).Says("The provider did not let you in.")
	b.get("/auth/callback?access_token=x").Is(401)
	b.get(through()).Leads(settings)
	b.get(settings).Is(200).Says("Upload a picture")
	require.NotContains(t, b.get(settings).Text, `value="password"`, "the provider has it")

	other := visitor(o) // the token came behind #, and a script posts it
	begin(other)
	to, err := url.Parse(through())
	require.NoError(t, err)
	filled := form(other.get("/auth/callback").Is(200), "/auth/callback", "")
	filled.Set("access_token", to.Query().Get("access_token"))
	other.site.Ask(http.MethodPost, "/auth/callback", filled).Leads(settings)
	other.get(settings).Is(200)
}

func TestTheSignInOffersNoProviderWithoutOne(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	b := visitor(o)
	require.NotContains(t, b.get("/app/sign-in").Text, "provider")
	b.get("/app/sign-in/provider").Is(404)
	b.get("/app/register").Is(200).Says("This system has no mail server.")
}
