package pages_test

import (
	"bytes"
	"html"
	"image"
	"image/png"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/commands/ledgercmd"
	"bahi/domain/ledger/orderdraft"
	"bahi/domain/patch"
	"bahi/domain/unit"
	"bahi/internal/test/apptest"
	"bahi/internal/test/browsertest"
)

const (
	settings = "/app/settings"
	sells    = `{"ledger":"write","marketplace":"write"}`
)

func TestTheVisitorsAccountIsChanged(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	asha := o.Person(o.Address("asha"))
	site := o.Visitor()
	b := browser{t, site}
	b.submit("/app/sign-in", "/app/sign-in", "email", o.Address("asha"), "password", apptest.GoodPassword).Leads("/app/")
	profile := func(pairs ...string) apptest.Page {
		return b.submitOf(settings, settings, `value="update-me"`, pairs...)
	}
	same := []string{"first_name", "Asha", "last_name", "Soni", "email", o.Address("asha"), "phone", ""}
	b.follow(profile(append(same, "phone", "98123 45678", "last_name", "Rao")...)).Says("Saved.")
	me := asha.Me()
	require.Equal(t, []string{"Rao", "+919812345678"}, []string{*me.LastName, *me.Phone})
	require.Contains(t, regexp.MustCompile(`<input[^>]*f-phone`).FindString(b.get(settings).Text), "919812345678")
	refused := profile(append(same, "email", "x", "first_name", "")...).Is(422)
	require.Contains(t, refused.Text, `<p class="error" id="f-email-update-me-error">expected an email address</p>`)
	require.Contains(t, refused.Text, `id="f-first_name-update-me-error"`)

	stale := form(b.get(settings), settings, `value="update-me"`)
	for range 2 { // sent twice
		b.follow(b.site.Ask(http.MethodPost, settings, with(stale, append(same, "first_name", "Usha")...))).Says("Saved.")
	}
	stale.Set("key", "another")
	b.site.Ask(http.MethodPost, settings, with(stale, append(same, "first_name", "Nisha")...)).Is(412).
		Says("Another person has changed this", "First name Usha Nisha")

	password := func(pairs ...string) apptest.Page {
		return b.submitOf(settings, settings, `value="change-password"`, pairs...)
	}
	password("current_password", "not mine at all", "new_password", "jadau and polki").Is(400).Says("Incorrect current password")
	password("current_password", "not mine at all", "new_password", "short").Is(400).Says("Incorrect current password",
		"at least 8 characters are needed")
	short := password("current_password", apptest.GoodPassword, "new_password", "short").Is(422)
	require.Contains(t, short.Text, `id="f-new_password-change-password-error"`)
	b.follow(password("current_password", apptest.GoodPassword, "new_password", "jadau and polki")).Says("The password is changed.")
	o.SignIn(o.Address("asha"), "jadau and polki")

	picture := func(content string) apptest.Page {
		return upload(t, site.HTTP, o.URL+settings, form(b.get(settings), settings, `value="upload-picture"`), "asha.png", content)
	}
	var drawn bytes.Buffer
	require.NoError(t, png.Encode(&drawn, image.NewRGBA(image.Rect(0, 0, 4, 4))))
	require.Contains(t, picture("no picture").Text, `role="alert"`)
	b.follow(picture(drawn.String()))
	link := regexp.MustCompile(`class="portrait" src="([^"]+)"`).FindStringSubmatch(b.get(settings).Text)
	require.NotNil(t, link)
	require.Equal(t, "image/png", b.get(html.UnescapeString(link[1])).Is(200).Header.Get("Content-Type"))

	b.follow(b.submitOf(settings, settings, `value="request-deletion"`)).Says("Your account will be deleted after")
	require.NotContains(t, b.get(settings).Text, `value="request-deletion"`)
	b.submitOf(settings, "/app/look", `id="theme"`, "language", "gu", "theme", "dark").Leads(settings)
	require.Contains(t, b.get(settings).Text, `data-theme="dark"`)
	byKey(o, o.Home, write).get(settings).Is(200).Says("You have signed in with a key: An API key.")
}

func TestMembersAreInvitedAndChanged(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	asha, ravi := o.Person(o.Address("asha")), o.Person(o.Address("ravi"))
	b := signedIn(o, o.Address("asha"))
	const members, invitations = settings + "/members", settings + "/invitations"
	invite := func(pairs ...string) apptest.Page {
		return b.submitOf(invitations, invitations, "permissions.ledger", pairs...)
	}
	require.Contains(t, invite("email", "ravi").Is(422).Text, `id="f-email-invite-member-error"`)
	require.Contains(t, invite("email", o.Address("ravi")).Is(422).Text, `id="f-permissions-invite-member-error"`)
	drawn := filled(b.get(invitations), `value="invite-member"`)
	for area, level := range map[string]string{"ledger": "read", "messaging": "none", "marketplace": "none", "audit": "none"} {
		require.Equal(t, level, drawn.Get("permissions."+area), "a browser shows and sends a level of each area")
	}
	nothing := []string{
		"permissions.ledger", "none", "permissions.messaging", "none", "permissions.marketplace", "none", "permissions.audit", "none",
	}
	invite(append(nothing, "email", o.Address("ravi"))...).Is(422).Says("at least one area is required")
	filled := with(form(b.get(invitations), invitations, "permissions.ledger"), "email", o.Address("ravi"), "permissions.ledger", "write")
	for range 2 { // sent twice
		b.follow(b.site.Ask(http.MethodPost, invitations, filled)).Says("The invitation is on its way.", "Its mails are kept as files")
	}
	page := b.get(invitations).Is(200).Says(o.Address("ravi"), "Books: Read and write", "Invited by You")
	require.Equal(t, 1, strings.Count(page.Text, `value="withdraw-invitation"`))
	b.follow(b.submitOf(invitations, invitations, `value="withdraw-invitation"`)).Says("The invitation is withdrawn.")

	// The first address may get another mail only after two minutes, so he is invited by another address.
	asha.Join(o, o.Person(o.Address("usha")), `{"ledger":"read"}`)
	asha.Join(o, o.Person(o.Address("nisha")), `{"marketplace":"read"}`)
	usha := regexp.MustCompile(members+`/[0-9a-f-]+`).FindAllString(b.get(members).Text, -1)[1]
	stale := form(b.get(usha).Says(o.Address("usha")), usha, `value="change-member"`)
	b.follow(b.site.Ask(http.MethodPost, usha, with(stale, "permissions.ledger", "write"))).Says("The rights are changed.")
	stale.Set("key", "another")
	b.site.Ask(http.MethodPost, usha, with(stale, "permissions.ledger", "none", "permissions.audit", "read")).Is(412).
		Says("Another person has changed this", "Rights Books: Read and write Trail: Read")
	b.submitOf(usha, usha, `value="change-member"`, "permissions.ledger", "none").Is(422).Says("Rights")
	b.submitOf(usha, usha, `value="change-member"`, "permissions.ledger", "read", "workspace", ravi.Workspace).Is(409)

	nisha := signedIn(o, o.Address("nisha"))
	nisha.submit("/app/", "/app/workspace", "workspace", asha.Workspace).Leads("/app/?done=workspace")
	nisha.submit("/app/", "/app/workspace", "workspace", o.Abroad).Is(404)
	nisha.get(members).Is(200).Says(o.Address("usha"))
	for _, path := range []string{usha, invitations} {
		require.NotContains(t, nisha.get(path).Is(200).Text, `name="do"`)
	}
	token := form(nisha.get(members), "/app/sign-out", "")
	foreign := with(token, "do", "invite-member", "email", "x@example.com", "permissions.ledger", "read")
	nisha.site.Ask(http.MethodPost, invitations, foreign).Is(403)
	nisha.site.Ask(http.MethodPost, usha, with(token, "do", "remove-member")).Is(403)

	b.follow(b.submitOf(usha, usha, `value="remove-member"`)).Says("The member is removed.")
	b.get(usha).Is(404)
	self := members + "/" + asha.User.ID
	b.submitOf(self, self, `value="remove-member"`).Is(409).Says("The last member with write access cannot be removed")
	signedIn(o, o.Address("ravi")).get(usha).Is(404)
	byKey(o, o.Home, write).get(members).Is(403)
	require.NotContains(t, byKey(o, o.Home, write).get(settings).Text, members)
}

func TestAPIKeysAreMadeAndRevoked(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	b := byKey(o, o.Home, sells)
	const keys = settings + "/keys"
	make := func(pairs ...string) apptest.Page { return b.submitOf(keys, keys, "permissions.ledger", pairs...) }
	wrong := make("name", "", "permissions.ledger", "read").Is(422)
	require.Contains(t, wrong.Text, `id="f-name-create-api-key-error"`)
	past := make("name", "Till", "permissions.ledger", "read", "expires_at", "2020-01-01").Is(422)
	require.Contains(t, past.Text, `id="f-expires_at-create-api-key-error">must be in the future`)
	require.Contains(t, past.Text, `value="2020-01-01"`)
	make("name", "Till", "permissions.audit", "write").Is(403).Says("A key cannot have more permissions than its creator")
	make("name", "Till", "permissions.ledger", "none", "permissions.audit", "none").Is(422).Says("at least one is needed")
	require.NotContains(t, b.get(keys).Text, `<option value=""></option><option value="none"`)
	filled := with(form(b.get(keys), keys, "permissions.ledger"), "name", "Till", "permissions.ledger", "read", "expires_at", "2099-01-01")
	made := b.site.Ask(http.MethodPost, keys, filled).Is(200).Says("Copy it now.", "01 Jan 2099, 23:59")
	key := regexp.MustCompile(`id="copied" readonly value="([^"]+)"`).FindStringSubmatch(made.Text)[1]
	o.Bearer(key).GET("/banks").Status(200)
	again := b.site.Ask(http.MethodPost, keys, filled).Is(200).Says("This key was made before")
	require.NotContains(t, again.Text, key)
	require.NotContains(t, b.get(keys).Text, key)

	reader := byKey(o, o.Home, `{"marketplace":"read"}`)
	require.NotContains(t, reader.get(keys).Is(200).Says("Till").Text, `name="do"`)
	require.NotContains(t, byKey(o, o.Abroad, sells).get(keys).Is(200).Words(), "Till")
	till := regexp.MustCompile(`(?s)>Till</th>.*?name="id" value="([^"]+)"`).FindStringSubmatch(b.get(keys).Text)[1]
	revoke := with(form(b.get(keys), keys, `value="revoke-api-key"`), "id", till)
	byKey(o, o.Abroad, sells).site.Ask(http.MethodPost, keys, revoke).Is(403)
	b.follow(b.site.Ask(http.MethodPost, keys, revoke)).Says("The key opens nothing any more.", "Till", "Ended")
	o.Bearer(key).GET("/banks").Status(401)
}

// mailed returns the address of the page that the link of a mail opens.
func mailed(o *apptest.Server, to, subject string) string {
	o.T.Helper()
	page, token := apptest.Link(o.T, o.Mailed(to, subject, 1))
	u, err := url.Parse(page)
	require.NoError(o.T, err)
	return u.Path + "?token=" + url.QueryEscape(token)
}

// TestTheInvitedJoins registers a user, and lets an invited second member join by mail.
func TestTheInvitedJoins(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	register := func(p *browsertest.Page, email, name string) {
		p.Go("/app/register")
		for field, value := range map[string]string{"email": email, "password": apptest.GoodPassword, "first_name": name, "last_name": "Soni"} {
			p.Type("#f-"+field, value)
		}
		p.Submit(".door button.primary")
		require.Contains(t, p.Text("main"), "a link there confirms your address")
		p.Go(mailed(o, email, apptest.VerifySubject))
		p.Submit(".door button.primary")
		require.Contains(t, p.Text("main"), "Your address is confirmed.")
	}
	sign := func(p *browsertest.Page, email string) {
		p.Type("#email", email)
		p.Type("#password", apptest.GoodPassword)
		p.Submit(".door button.primary")
	}
	asha, ravi := browsertest.Open(t, o.URL), browsertest.Open(t, o.URL)
	register(asha, o.Address("asha"), "Asha")
	asha.Go("/app/sign-in")
	sign(asha, o.Address("asha"))
	asha.Go(settings + "/invitations")
	asha.Click(".act summary")
	asha.Type("#f-email-invite-member", o.Address("ravi"))
	asha.Submit("form:has([value=invite-member]) button.primary")
	require.Contains(t, asha.Text("main"), "The invitation is on its way.")

	asha.Go(settings + "/keys")
	asha.Click(".act summary")
	asha.Type("#f-name-create-api-key", "Accountant")
	asha.Submit("form:has([value=create-api-key]) button.primary")
	require.Equal(t, "Copy", asha.Text("[data-copy]"))

	invitation := mailed(o, o.Address("ravi"), apptest.InviteSubject)
	ravi.Go(invitation) // leads to the sign-in, and back
	require.Contains(t, ravi.Text("main"), "An invitation waits for you.")
	register(ravi, o.Address("ravi"), "Ravi")
	ravi.Submit(".door a.button")
	require.Contains(t, ravi.Text("main"), "An invitation waits for you.")
	sign(ravi, o.Address("ravi"))
	require.Equal(t, invitation, ravi.URL())
	ravi.Submit(".door button.primary")
	require.Equal(t, "Asha Soni", ravi.Text(".where option:checked"))
	asha.Go(settings + "/members")
	require.Contains(t, asha.Text("main"), "Ravi Soni")
}

func TestTheYearIsClosed(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	b := byKey(o, o.Home, write)
	const lock, periods, closes = settings + "/books", settings + "/periods", `value="close-period"`
	require.Contains(t, b.get(lock).Is(200).Text, `href="`+periods+`"`)
	apptest.Post(o.Clerk(o.Home), apptest.Open(o.Clerk(o.Home), "SBI"), apptest.Deposit("2025-03-31", "10"))
	req := commands.Request{Workspace: uuid.MustParse(o.Home)}
	id, _, err := ledgercmd.ReceiveDraft(t.Context(), req, o.Sys.Books, ledgercmd.Message{ID: "m", From: "919812345678", Text: "payal 250 gm"})
	require.NoError(t, err)
	number, err := strconv.ParseInt(id, 10, 64)
	require.NoError(t, err)
	_, err = ledgercmd.EditDraft(t.Context(), req, o.Sys.Books, number, orderdraft.Edit{Date: patch.Set(unit.DateOf(apptest.MustTime(t,
		"2025-03-01T00:00:00Z")))})
	require.NoError(t, err)

	open := b.submitOf(periods, periods, closes, "through", "2025-03-31").Is(409)
	open.Says("The period through 31 Mar 2025 has open items", "order draft "+id+" is not reviewed")
	require.Contains(t, open.Text, `href="/app/drafts/`+id+`"`)
	o.Clerk(o.Home).DELETE("/order-drafts/" + id).Status(204)

	b.submitOf(periods, periods, closes, "through", "2198-03-31").Is(422).Says("must be before today")
	tried := b.submitOf(periods, periods, closes, "through", "2025-03-31", "preview", "page").Is(200)
	tried.Says("What it would do", "The books are locked through 31 Mar 2025. Digest of the balances: ")
	require.Equal(t, "2025-03-31", filled(tried, closes).Get("through"))
	tried = b.submit(lock, lock, "locked_through", "2025-03-30", "reason", "an audit", "preview", "page").Is(200).Says("What it would do")
	require.Equal(t, []string{"2025-03-30", "an audit"},
		[]string{filled(tried, `value="set-books-lock"`).Get("locked_through"), filled(tried, `value="set-books-lock"`).Get("reason")})
	require.NotContains(t, b.get(periods).Text, "31 Mar 2025")
	b.follow(b.submitOf(periods, periods, closes, "through", "2025-03-31")).Says("The period is closed.", "31 Mar 2025", "Closed")
	b.get(lock).Says("The books are locked through 31 Mar 2025.")
	refused := b.submit(lock, lock, "locked_through", "", "reason", "a late bill").Is(409).
		Says("The period through 31 Mar 2025 is closed: an operator may reopen it")
	require.NotContains(t, refused.Words(), "/books/periods")
	require.NotContains(t, b.get(periods).Text, "reopen-period")
	byKey(o, o.Home, `{"messaging":"read"}`).get(periods).Is(403)

	operator := byKey(o, o.Home, operatorRights)
	reopen := with(form(operator.get(periods), periods, `value="reopen-period"`), "reason", "")
	operator.site.Ask(http.MethodPost, periods, reopen).Is(422).Says("Say why.")
	operator.follow(operator.site.Ask(http.MethodPost, periods, with(reopen, "reason", "a late bill"))).
		Says("The period is open again.", "Opened again: a late bill")
	b.get(lock).Says("Nothing is locked.")
}
