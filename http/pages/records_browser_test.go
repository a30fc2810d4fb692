package pages_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
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

func TestACampaignIsWatched(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	clerk, _ := shop(o, apptest.Home)
	clerk.POST("/api/contacts", `{"name":"Asha","phone":"9812300001"}`).Status(201)
	clerk.PATCH("/api/contacts/1", `{"optIn":true}`).Status(200)
	clerk.POST("/api/campaigns", `{"name":"Diwali","type":"broadcast","templateId":1,"audience":"all",
		"templateParams":{"1":"A-204","2":"{{name}}"}}`).Status(201)
	p := enter(o, trade)
	p.Go("/app/campaigns/1")
	p.Click(".act > summary")
	p.Submit(".act button")
	p.Until(`document.querySelector("#live").innerText.includes("Completed")`)
}
