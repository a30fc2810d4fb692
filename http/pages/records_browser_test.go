package pages_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/app/apptest"
)

// TestContactsAreImportedInABrowser goes from an empty list to the report of a file, and to a contact.
func TestContactsAreImportedInABrowser(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	file := filepath.Join(t.TempDir(), "people.csv")
	require.NoError(t, os.WriteFile(file, []byte("name,phone,shoe size\nImran,9812345702,8\n,9812345703,\n"), 0o600))
	p := enter(o, trade)
	p.Go("/app/list/contacts")
	p.Click(".act:last-child > summary")
	p.Choose(`input[type=file]`, file)
	p.Submit(".act:last-child button")
	report := p.Text("#answer")
	for _, text := range []string{"Added", "1 to 100 characters", "shoe size"} {
		require.Contains(t, report, text)
	}
	require.Contains(t, p.Text("#records"), "Imran")
	p.Submit("#records th a")
	require.Contains(t, p.Text("h1"), "Imran")
	p.Click("details.act > summary")
	p.Click(`[name=optIn][type=checkbox]`)
	p.Type("[name=optInEvidence]", "Form 7")
	p.Submit("details.act button")
	require.Contains(t, p.Text(".done"), "The change is saved.")
	require.Contains(t, p.Text("#record"), "Form 7")
}

func TestPagesOfRecordsFit(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	clerk, company := shop(o, apptest.Home)
	clerk.POST("/api/channels", `{"name":"Our site","type":"web","settings":{"allowedOrigins":["https://example.com"]}}`).Status(201)
	clerk.POST("/api/contact-lists", `{"name":"Retailers of Rajkot"}`).Status(201)
	clerk.POST("/api/contacts", `{"name":"Asha Soni","phone":"9812300001","email":"asha.soni@jewellers.example.com","listIds":[1],
		"source":"manual"}`).Status(201)
	clerk.PATCH("/api/contacts/1", `{"optIn":true,"optInEvidence":"Signed form 7"}`).Status(200)
	clerk.POST("/api/bots/1/urls", `{"url":"https://example.com/about"}`).Status(201)
	clerk.POST("/api/v1/catalog", `{"name":"Payal of silver, 92 touch","price_amount":12345600,"sku":"P-1","category":"Payal",
		"description":"A pair."}`).Status(201)
	clerk.POST("/api/campaigns", `{"name":"Diwali","type":"broadcast","templateId":1,"audience":"1",
		"templateParams":{"1":"A-204","2":"{{name}}"}}`).Status(201)
	paths := []string{
		"/app/list/contacts", "/app/list/contacts/1", "/app/list/lists", "/app/list/channels?new=chat", "/app/list/channels/2", "/app/list/bots",
		"/app/list/bots/1", "/app/list/bots/1/pages", "/app/list/bots/1/tools", "/app/list/products", "/app/list/companies/" + company,
		"/app/campaigns", "/app/campaigns?new=drip", "/app/campaigns/1",
	}
	p := enter(o, trade)
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
