package pages_test

import (
	"testing"

	"bahi/http/pages/browsertest"
	"bahi/internal/app/apptest"
)

// visitAll checks pages in each window, theme and language.
func visitAll(t *testing.T, p *browsertest.Page, paths ...string) {
	t.Helper()
	for _, lang := range []string{"en", "gu"} {
		p.Speak(lang)
		for _, path := range paths {
			for _, width := range []int64{360, 1280} {
				for _, dark := range []bool{false, true} {
					fits(t, p, path, width, dark, lang)
				}
			}
		}
	}
}

func TestSettingsFit(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	asha, ravi := o.Person("asha@example.com"), o.Person("ravi.of.the.long.address@example.com")
	asha.Join(o, ravi, `{"ledger":"write","messaging":"read"}`)
	asha.POST("/api/v1/workspaces/"+asha.Workspace+"/invitations", apptest.Invite("nisha@example.com", `{"ledger":"read"}`)).Status(201)
	asha.POST("/api/v1/api-keys", `{"name":"Till at the counter","permissions":{"ledger":"write"}}`).Status(201)
	asha.POST("/api/v1/companies", `{"name":"Soni Jewellers","city":"Surat","email":"office@example.com"}`).Status(201)
	p := browsertest.Open(t, o.URL)
	p.Go("/app/sign-in")
	p.Type("#email", "asha@example.com")
	p.Type("#password", apptest.GoodPassword)
	p.Submit(".door button")
	visitAll(t, p, settings, settings+"/members", settings+"/members/"+ravi.User.ID, settings+"/keys", settings+"/company", settings+"/books")
}
