package pages_test

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/http/api"
	"bahi/internal/test/apptest"
	"bahi/internal/test/idptest"
	"bahi/internal/test/khatapages"
	"bahi/providers/idp"
)

func TestMain(m *testing.M) { apptest.Main(m) }

// TestThePagesOfAPersonAreLimitedAsPages shows that the limit of pages is higher than that of operations, and that it holds.
func TestThePagesOfAPersonAreLimitedAsPages(t *testing.T) {
	t.Parallel()
	o := apptest.StartLimited(t)
	o.Person("asha@example.com")
	b, limits := signedIn(o, "asha@example.com"), api.DefaultLimits()
	most, one := limits[api.GroupPages].Requests, limits["marketplace_general"].Requests
	require.Greater(t, most, one)
	seen := 1 // the first page after the sign-in was not followed
	for ; seen < most+2; seen++ {
		if s := b.get("/app/settings/members"); s.Header.Get("Retry-After") != "" {
			s.Is(429).Says("Too many requests")
			break
		}
	}
	require.InDelta(t, most, seen, 2)
}

// TestOthersSeeAndChangeNothing shows that only members with the permission see a page's forms, and only its workspace sees its records.
func TestOthersSeeAndChangeNothing(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	account, draft := keptBooks(o), keptOrders(o)
	clerk, company := keptTrade(o)
	talk, enquiry := keptTalks(o, clerk, company)
	khata := uploaderOf(o).read(khatapages.Typed("Party: Imran", "OUT", "1/3 silver 500 99.5 497.5"))
	const all = `{"ledger":"write","messaging":"write","marketplace":"write"}`
	owner, stranger := byKey(o, o.Home, all), byKey(o, apptest.OtherWorkspace, all)
	reader := byKey(o, o.Home, strings.ReplaceAll(all, "write", "read"))
	for _, c := range []struct {
		page, action, has string
		values            []string
		list, hidden      string // hidden: text that the list shows to no other workspace
		without           string // key without the right to read the page
	}{
		{account, account + "/rows", "", nil, "/app/accounts", "Imran", tradeRead},
		{account + "/rows/1", account + "/rows/1", `value="void"`, []string{"reason", "x"}, "", "", tradeRead},
		{"/app/orders/1", "/app/orders/1", `value="edit-client-order"`, []string{"date", "2025-03-01"}, "/app/orders", "Order 1", tradeRead},
		{"/app/orders/1/takadas/1", "/app/orders/1/takadas/1", `value="edit-takada"`, []string{"date", "2025-03-01"}, "", "", tradeRead},
		{draft, draft, `name="do"`, []string{"base", "{}", "entries[0].weight", "9"}, "/app/drafts", "slip 214", tradeRead},
		{khata, khata, "", []string{"entries[0].accepted", "yes"}, "/app/khata", khata, tradeRead},
		{talk, talk + "/messages", "", []string{"text", "x"}, "/app/inbox", "Ravi", write},
		{talk, talk, "", []string{"do", "resolved"}, "", "", write},
		{enquiry, enquiry, `value="edit-enquiry"`, []string{"notes", "x"}, "/app/enquiries", "Asha Rao", write},
	} {
		filled := form(owner.get(c.page).Is(200), c.action, c.has)
		require.NotEmpty(t, filled, c.page)
		seen := reader.get(c.page).Is(200)
		require.Empty(t, form(seen, c.action, c.has), c.page)
		theirs := with(filled, append([]string{"token", form(seen, "/app/sign-out", "").Get("token")}, c.values...)...)
		reader.site.Ask(http.MethodPost, c.action, theirs).Is(403)
		owner.site.Ask(http.MethodPost, c.action, with(filled, "workspace", apptest.OtherWorkspace)).Is(409)
		stranger.get(c.page).Is(404)
		byKey(o, o.Home, c.without).get(c.page).Is(403)
		if c.list != "" {
			require.Contains(t, owner.get(c.list).Is(200).Text, c.hidden)
			require.NotContains(t, stranger.get(c.list).Is(200).Text, c.hidden)
			byKey(o, o.Home, c.without).get(c.list).Is(403)
		}
	}
	stranger.get(account + "/statement").Is(404)
	for _, page := range []string{"/app/accounts", "/app/orders", "/app/khata", settings + "/books"} {
		require.NotRegexp(t, `type="file"|name="do"|id="open"`, reader.get(page).Is(200).Text, page)
	}
}

func TestMembersSignInAndOut(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	asha := o.Person(o.Address("asha")).User.Email
	b := visitor(o)
	b.get("/").Leads("/app/")
	b.get("/app").Leads("/app/")
	b.get("/app/").Leads("/app/sign-in")
	b.get("/app/accounts?q=a").Leads("/app/sign-in?next=%2Fapp%2Faccounts%3Fq%3Da")
	for _, pairs := range [][]string{
		{"email", asha, "password", "wrong"},
		{"email", "nobody@example.com", "password", apptest.GoodPassword}, {},
	} {
		b.submit("/app/sign-in", "/app/sign-in", pairs...).Is(401).Says("Wrong email or password.")
	}
	b.submit("/app/sign-in", "/app/sign-in", "key", "bahi_x").Is(401).Says("Wrong API key.")
	b.submit("/app/sign-in?next=//evil.example/x", "/app/sign-in",
		"email", asha, "password", apptest.GoodPassword).Leads("/app/")
	page := b.get("/app/").Is(200).Says("Today", "Sign out")
	require.Contains(t, page.Header.Get("Content-Security-Policy"), "default-src 'none'")
	thief, unsaved := b.get("/app/"), form(b.get(settings+"/members?page=1"), "", `name="here"`)
	b.submit("/app/", "/app/sign-out").Leads("/app/sign-in")
	b.get("/app/").Leads("/app/sign-in")
	b.site.Ask(http.MethodPost, "/app/sign-out", form(thief, "/app/sign-out", "")).Is(403)
	expired := b.site.Ask(http.MethodPost, settings+"/members", unsaved).Is(403).Says("This form is of an earlier session.", "Sign in")
	require.Contains(t, expired.Text, `href="/app/sign-in?next=%2Fapp%2Fsettings%2Fmembers%3Fpage%3D1"`)
}

func TestOperationsAcceptTheCookieForReadsAlone(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	b := byKey(o, o.Home, write)
	b.get("/banks").Is(200)
	require.Contains(t, b.get("/banks").Header.Values("Vary"), "Cookie")
	require.Contains(t, b.get("/banks").Header.Get("Content-Security-Policy"), "sandbox")
	b.site.Ask(http.MethodPost, "/bank", url.Values{"name": {"HDFC"}}).Is(401)
	visitor(o).get("/banks").Is(401)
}

// TestABrowserGetsAPageForARefusal shows that a browser gets a page in its language, and a program the problem, with the same status.
func TestABrowserGetsAPageForARefusal(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	site := o.Visitor()
	open := func(path string, header ...string) apptest.Page {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, o.URL+path, http.NoBody)
		require.NoError(t, err)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		return apptest.Send(t, site.HTTP, r)
	}
	const html = "text/html,application/xhtml+xml"
	open("/banks?as_of=2025-03-01", "Accept", html).Leads("/app/sign-in?next=%2Fbanks%3Fas_of%3D2025-03-01")
	key := o.Key(o.Home, write).Key
	browser{t, site}.submit("/app/sign-in", "/app/sign-in", "key", key).Leads("/app/")
	const english = "This link is wrong or has ended: ask its sender for a new one."
	for _, c := range []struct {
		path, language, says string
		status               int
	}{
		{"/s/1-2-3", "", english, 404},
		{"/s/" + strings.Repeat("x", 101), "en", english, 422},
		{"/s/1-2-3", "hi", "यह लिंक गलत है या समाप्त हो गया है:", 404},
		{"/s/1-2-3", "gu", "આ લિંક ખોટી છે અથવા પૂરી થઈ ગઈ છે:", 404},
		{"/join?token=x", "", "Not found", 404},
		{"/bank/999999", "", "Bank account not found", 404},
		{"/s/%00", "", "Malformed URL", 400},
	} {
		s := open(c.path, "Accept", html, "Accept-Language", c.language).Is(c.status).Says(c.says)
		require.Contains(t, s.Header.Get("Content-Security-Policy"), "default-src 'none'; script-src 'self'")
		require.Equal(t, "no-store", s.Header.Get("Cache-Control"))
		require.NotContains(t, s.Text, `"code"`)
		require.Equal(t, strings.HasPrefix(c.path, "/s/"), !strings.Contains(s.Text, `class="button"`), "a party has no pages")
		for _, program := range [][]string{{}, {"Accept", html, "Authorization", "Bearer " + key}} {
			p := open(c.path, program...).Is(c.status)
			require.Equal(t, "application/problem+json", p.Header.Get("Content-Type"), c.path)
		}
	}
}

func TestMailedLinksDoWhatTheySayOnAButton(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	b := visitor(o)
	registration := apptest.Registration(o.Address("ravi"))
	pairs := []string{}
	for name, value := range registration {
		pairs = append(pairs, name, value)
	}
	b.submit("/app/register", "/app/register", append(pairs, "password", "x")...).Is(422)
	b.submit("/app/register", "/app/register", pairs...).Is(200).Says("a link there confirms your address")
	b.submit("/app/sign-in", "/app/sign-in", "email", o.Address("ravi"), "password", apptest.GoodPassword).Is(401).Says("Forgot password")

	verify := mailed(o, o.Address("ravi"), apptest.VerifySubject)
	for range 2 { // a scanner of mails follows the link
		b.get(verify).Is(200).Says("Confirm your address")
	}
	b.submit(verify, "/auth/verify-email").Is(200).Says("Your address is confirmed.")
	signedIn(o, o.Address("ravi")).get("/app/").Is(200)

	b.submit("/app/forgot", "/app/forgot", "email", o.Address("ravi")).Is(200).Says("a mail is on its way")
	reset := mailed(o, o.Address("ravi"), apptest.ResetSubject)
	b.submit(reset, "/auth/reset-password", "new_password", "short").Is(422)
	b.submit(reset, "/auth/reset-password", "new_password", "a better password 12").Is(200).Says("The password is set.")
	b.submit("/app/sign-in", "/app/sign-in", "email", o.Address("ravi"), "password", "a better password 12").Leads("/app/")

	const companies = "/app/list/companies"
	b.submitOf(companies, companies, `value="create-company"`, "name", "Ravi Mills", "email", o.Address("mills")).Is(303)
	confirm := mailed(o, o.Address("mills"), "Confirm the address of Ravi Mills")
	b.get(confirm).Is(200).Says("The button confirms that enquiries may be sent to this address.")
	b.submit(confirm, "/companies/confirm-email").Is(200).Says("The address is confirmed.")

	asha := o.Person(o.Address("asha"))
	asha.POST("/api/v1/workspaces/"+asha.Workspace+"/invitations", apptest.Invite(o.Address("ravi"), `{"ledger":"read"}`)).Status(201)
	invited := mailed(o, o.Address("ravi"), apptest.InviteSubject)
	b.submit(invited, "/invitations/accept").Is(303)

	b.follow(b.submitOf(settings, settings, `value="update-me"`, "email", o.Address("thief")))
	undo := mailed(o, o.Address("ravi"), "Your email address at Bahi was changed")
	b.get(undo).Is(200).Says("The account gets its former address back")
	b.submit(undo, "/auth/undo-email-change").Is(200).Says("The account has its former address again.")
	guest := signedIn(o, o.Address("asha"))
	for _, used := range []string{verify, reset, confirm, undo, invited} {
		path, _, _ := strings.Cut(used, "?")
		for link, says := range map[string]string{
			used: "nvalid or expired", path + "?token=wrong": "nvalid or expired", path: "This link is not complete.",
		} {
			guest.submit(link, path, "new_password", "a better password 13").Says(says)
		}
	}
}

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
	filled := with(form(other.get("/auth/callback").Is(200), "/auth/callback", ""), "access_token", to.Query().Get("access_token"))
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
