package pages_test

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
	"bahi/internal/test/browsertest"
)

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
	o := apptest.Start(t)
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
	register(asha, "asha@example.com", "Asha")
	asha.Go("/app/sign-in")
	sign(asha, "asha@example.com")
	asha.Go(settings + "/invitations")
	asha.Click(".act summary")
	asha.Type("#f-email-invite-member", "ravi@example.com")
	asha.Submit("form:has([value=invite-member]) button.primary")
	require.Contains(t, asha.Text("main"), "The invitation is on its way.")

	asha.Go(settings + "/keys")
	asha.Click(".act summary")
	asha.Type("#f-name-create-api-key", "Accountant")
	asha.Submit("form:has([value=create-api-key]) button.primary")
	require.Equal(t, "Copy", asha.Text("[data-copy]"))

	invitation := mailed(o, "ravi@example.com", apptest.InviteSubject)
	register(ravi, "ravi@example.com", "Ravi")
	ravi.Go(invitation) // leads to the sign-in, and back
	sign(ravi, "ravi@example.com")
	require.Equal(t, invitation, ravi.URL())
	ravi.Submit(".door button.primary")
	require.Equal(t, "Asha Soni", ravi.Text(".where option:checked"))
	asha.Go(settings + "/members")
	require.Contains(t, asha.Text("main"), "Ravi Soni")
}
